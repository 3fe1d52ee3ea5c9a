"""Lines that say how two locks differ."""

from collections.abc import Mapping

from sifwright.make_image.lock_format.lock_file import Lock

_NONE = "none"


def changes(old: Lock, new: Lock) -> list[str]:
    """Return in lines how the second lock differs from the first."""
    lines = [
        f"{name}: {getattr(old, name)} -> {getattr(new, name)}"
        for name in ("site", "image", "python", "epoch")
        if getattr(old, name) != getattr(new, name)
    ]
    before, now = _tables(old), _tables(new)
    return lines + [line for kind in now for line in _changed(kind, before[kind], now[kind])]


def _changed(kind: str, old: Mapping[str, str], new: Mapping[str, str]) -> list[str]:
    return [
        f"{kind} {name}: {old.get(name, _NONE)} -> {new.get(name, _NONE)}"
        for name in sorted(old.keys() | new.keys())
        if old.get(name) != new.get(name)
    ]


def _tables(lock: Lock) -> dict[str, Mapping[str, str]]:
    """Return what a lock names, by kind and name, in the words of a line."""
    return {
        "base": lock.base,
        "tools": lock.tools,
        "layers": lock.layers,
        "debian": {
            f"{deb.name}:{deb.architecture}": _format_version(deb.version, deb.sha256)
            for deb in lock.debs
        },
        "rpm": {f"{rpm.name}:{rpm.architecture}": rpm.version for rpm in lock.rpms},
        "archive": {f"{item.address} {item.suite}": item.date for item in lock.archives},
        "python": {
            **{item.name: item.version for item in lock.unlocked},
            **{item.name: _format_version(item.version, item.sha256) for item in lock.wheels},
        },
        "source": {
            f"{item.layer} {item.name}": f"{item.ref} {item.digest}" for item in lock.sources
        },
    }


def _format_version(version: str, sha256: str) -> str:
    return f"{version} ({sha256[:12]})" if sha256 else version
