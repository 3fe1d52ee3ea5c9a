"""Targets of COPY, ADD and WORKDIR, as whole paths in the image."""

from __future__ import annotations

from sifwright.recipes.dockerfile import copies
from sifwright.recipes.shell_words import WordError

__all__ = ["GONE", "absolute", "uses"]

GONE = "is gone when its layer ends: /tmp is no part of an image here"


def absolute(path: str, folder: str) -> str:
    """Return the whole path of a target; WORKDIR is '' if it is not known."""
    if not path.startswith("/") and not folder:
        raise WordError(f"'{path}' starts in the base image's WORKDIR, which is not known")
    joined = path if path.startswith("/") else f"{folder.rstrip('/')}/{path}"
    if ".." in joined.split("/") or not joined.isprintable():
        raise WordError(f"{joined!a}: '..' and what cannot be printed are not for targets")
    ends = joined.endswith(("/", "/."))
    parts = [part for part in joined.split("/") if part not in {"", "."}]
    whole = "/" + "/".join(parts)
    if copies.is_kept(whole):
        raise WordError(f"'{whole}' is in a folder of the build's or the engine's own")
    return f"{whole}/" if ends and parts else whole


def uses(target: str) -> frozenset[str]:
    """Return the temporary folder that a target is in; no step keeps it."""
    return frozenset({"tmp"} if copies.own_places(target) else ())
