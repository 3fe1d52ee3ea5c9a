"""A uv.lock as pylock.toml: uv itself converts it, and needs no project and no network for that."""

import os
import re
import sys
import tempfile
import tomllib
from pathlib import Path

from uv import find_uv_bin

from sifwright.extend.locks.model import AGAIN, refused
from sifwright.system import processes

_NAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?")
_KINDS = ("editable", "virtual", "directory")
_EXPORT = "Run in its project: uv export --frozen --format pylock.toml -o pylock.toml"


def as_pylock(text: str, path: Path) -> str:
    """Return what the project needs without extras and groups; raises `UsageError`."""
    project = _project(text, path)
    with tempfile.TemporaryDirectory(prefix="sifwright-") as name:
        folder = Path(name)
        (folder / "uv.lock").write_text(text, encoding="utf-8")
        # The lock has all facts of the user's own pyproject.toml.
        (folder / "pyproject.toml").write_text(
            f'[project]\nname = "{project}"\nversion = "0"\n', encoding="utf-8"
        )
        answer = processes.capture(_command(folder), env=_environment(folder))
    if answer.returncode:
        reason = " ".join(answer.stderr.replace(name, ".").split())
        raise refused(path, f"uv cannot read it: {reason}", _EXPORT)
    return answer.stdout


def _project(text: str, path: Path) -> str:
    """Return the name of the package in the folder of the lock."""
    try:
        packages = tomllib.loads(text).get("package", [])
        names = [
            item["name"]
            for item in packages
            if any(item["source"].get(kind) == "." for kind in _KINDS)
        ]
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        raise refused(path, f"not a lock file of uv: {error}", AGAIN) from None
    if len(names) != 1 or not _NAME.fullmatch(str(names[0])):
        raise refused(path, "it has no project in its own folder (a workspace)", _EXPORT)
    return str(names[0])


def _command(folder: Path) -> list[str]:
    return [
        *(find_uv_bin(), "export", "--frozen", "--offline", "--no-config", "--no-header"),
        *("--quiet", "--directory", str(folder), "--no-default-groups", "--format", "pylock.toml"),
        *("--no-python-downloads", "--python", sys.executable),
    ]


def _environment(folder: Path) -> dict[str, str]:
    places = ("UV_", "PYTHON", "VIRTUAL_ENV", "CONDA")
    own = {name: value for name, value in os.environ.items() if not name.startswith(places)}
    return {**own, "UV_CACHE_DIR": str(folder / "cache")}
