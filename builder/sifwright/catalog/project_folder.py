"""The folder with `defs/` and `runscripts/`: of a checkout, or of the installed package."""

from pathlib import Path

from sifwright.errors import UsageError

_PACKAGE = Path(__file__).resolve().parents[1]


def project_folder(explicit: str = "") -> Path:
    """Return the folder that holds `defs/` and `runscripts/`.

    The order is: an explicit folder, the current folder or one above it, the checkout or wheel of
    this package. So a copy of a checkout is used where it lies.
    """
    if explicit:
        if _is_project(Path(explicit)):
            return Path(explicit).resolve()
        message = "no folder 'defs' with sites, images and layers in it"
        fix = "Name the folder that holds defs/ and runscripts/."
        raise UsageError.of(message, where=explicit, fix=fix)
    here = Path.cwd()
    candidates = (here, *here.parents, *_PACKAGE.parents[1:2], _PACKAGE / "_data")
    return next((path for path in candidates if _is_project(path)), _PACKAGE / "_data")


def _is_project(folder: Path) -> bool:
    return all((folder / "defs" / name).is_dir() for name in ("sites", "images", "layers"))
