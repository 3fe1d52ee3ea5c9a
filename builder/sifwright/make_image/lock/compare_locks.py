"""Lines that say how two locks differ."""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from sifwright.make_image.lock_format.lock_file import Lock

_NONE = "none"


def changes(old: Lock, new: Lock) -> list[str]:
    """Return in lines how the second lock differs from the first."""
    lines = [
        f"{name}: {getattr(old, name)} -> {getattr(new, name)}"
        for name in ("site", "image", "python", "epoch")
        if getattr(old, name) != getattr(new, name)
    ]
    tables: dict[str, Callable[[Lock], Mapping[str, str]]] = {
        **{name: attrgetter(name) for name in ("base", "tools", "layers")},
        "debian": _debs,
        "rpm": _rpms,
        "archive": _archives,
        "python": _wheels,
        "source": _sources,
    }
    return lines + [
        line for kind, table in tables.items() for line in _changed(kind, table(old), table(new))
    ]


def _changed(kind: str, old: Mapping[str, str], new: Mapping[str, str]) -> list[str]:
    return [
        f"{kind} {name}: {old.get(name, _NONE)} -> {new.get(name, _NONE)}"
        for name in sorted(old.keys() | new.keys())
        if old.get(name) != new.get(name)
    ]


def _debs(lock: Lock) -> dict[str, str]:
    return {f"{deb.name}:{deb.architecture}": _shown(deb.version, deb.sha256) for deb in lock.debs}


def _rpms(lock: Lock) -> dict[str, str]:
    return {f"{rpm.name}:{rpm.architecture}": rpm.version for rpm in lock.rpms}


def _archives(lock: Lock) -> dict[str, str]:
    return {f"{archive.address} {archive.suite}": archive.date for archive in lock.archives}


def _wheels(lock: Lock) -> dict[str, str]:
    wheels = {f"{item.name}": _shown(item.version, item.sha256) for item in lock.wheels}
    return {**{item.name: item.version for item in lock.unlocked}, **wheels}


def _sources(lock: Lock) -> dict[str, str]:
    return {f"{item.layer} {item.name}": f"{item.ref} {item.digest}" for item in lock.sources}


def _shown(version: str, sha256: str) -> str:
    return f"{version} ({sha256[:12]})" if sha256 else version
