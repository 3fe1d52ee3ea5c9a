"""Requested extensions, each saved as a file in the folder of its image."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from sifwright.catalog.model import Catalog
from sifwright.errors import UsageError
from sifwright.system import files, small_file

if TYPE_CHECKING:
    from sifwright.extend.extended_image import Extension

FILE = "extension.json"
_MODE = 0o644
_TEXTS = ("image", "requirements", "constraints")


@dataclass(frozen=True, kw_only=True, slots=True)
class SavedExtension:
    """The content of extension.json: `held` as `image.extended` takes it.

    `is_locked` and `conda` are those of `Requirements`.
    """

    image: str
    requirements: str
    constraints: str
    held: tuple[str, ...]
    is_locked: bool = False
    conda: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, extension: Extension, held: frozenset[str]) -> SavedExtension:
        requirements = extension.requirements
        return cls(
            image=extension.image,
            requirements=requirements.text,
            constraints=requirements.constraints_text,
            held=tuple(sorted(held)),
            is_locked=requirements.is_locked,
            conda=requirements.conda,
        )

    @classmethod
    def read(cls, folder: Path) -> SavedExtension | None:
        """Read the saved extension, or None; raises `UsageError` for a file of another form."""
        path = folder / FILE
        try:
            data = small_file.read_json(path)
            # str.strip refuses a value that is no text.
            texts = {name: str.strip(data[name], "\0") for name in _TEXTS}
            conda = {name: str(value) for name, value in dict(data.get("conda", {})).items()}
            is_locked = bool(data.get("is_locked"))
            held = tuple(map(str, data["held"]))
            return cls(**texts, held=held, is_locked=is_locked, conda=conda)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except (ValueError, KeyError, TypeError):
            fix = "Run 'sifwright extend' again; it writes the file again."
            message = "not a file of 'sifwright extend'"
            raise UsageError.of(message, where=str(path), fix=fix) from None

    def write(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        text = json.dumps(asdict(self), indent=1)
        files.write(folder / FILE, f"{text}\n".encode(), mode=_MODE)


def with_known(catalog: Catalog, output: Path, site: str, image: str) -> Catalog:
    """Return the catalog with the image of that name, if it is an extension for the site."""
    if not image or image in catalog.images or site not in catalog.sites or "/" in image:
        return catalog
    known = SavedExtension.read(output / site / image)
    if known is None:
        return catalog
    from sifwright.extend.extended_image import Extension, extended  # noqa: PLC0415  # pulls in packaging
    from sifwright.extend.read_requirements import (  # noqa: PLC0415
        Requirements,
        parse_requirements,
    )

    # A lock of conda's packages alone has none.
    texts = known.requirements, known.constraints
    parsed = parse_requirements(*texts) if known.requirements else Requirements()
    requirements = replace(parsed, is_locked=known.is_locked, conda=known.conda)
    extension = Extension(name=image, image=known.image, requirements=requirements)
    return extended(catalog, extension, frozenset(known.held))
