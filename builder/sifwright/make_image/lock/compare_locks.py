"""Lines that say how two locks differ."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from sifwright.make_image.lock_format.lock_file import Deb, Lock

_NONE = "none"


def changes(old: Lock, new: Lock) -> list[str]:
    """Return in lines how the second lock differs from the first."""
    lines = [
        f"{name}: {getattr(old, name)} -> {getattr(new, name)}"
        for name in ("site", "image", "python", "epoch")
        if getattr(old, name) != getattr(new, name)
    ]
    for name in ("base", "tools", "layers"):
        lines += _changed(name, getattr(old, name), getattr(new, name))
    lines += _changed("debian", _debs(old.debs), _debs(new.debs))
    lines += _changed("rpm", _rpms(old), _rpms(new))
    lines += _changed("archive", _archives(old), _archives(new))
    lines += _changed("python", _wheels(old), _wheels(new))
    return lines + _changed("source", _sources(old), _sources(new))


def _changed(kind: str, old: Mapping[str, str], new: Mapping[str, str]) -> list[str]:
    return [
        f"{kind} {name}: {old.get(name, _NONE)} -> {new.get(name, _NONE)}"
        for name in sorted(old.keys() | new.keys())
        if old.get(name) != new.get(name)
    ]


def _debs(debs: Iterable[Deb]) -> dict[str, str]:
    return {f"{deb.name}:{deb.architecture}": _shown(deb.version, deb.sha256) for deb in debs}


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
