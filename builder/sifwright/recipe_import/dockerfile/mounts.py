"""RUN --mount: an empty folder, or files of the context, that one RUN sees."""

from dataclasses import dataclass

from sifwright.recipe_import.context import ContextError

# Type -> its further fields. A cache is a new one each time, which Docker allows as well.
_FIELDS = {
    "cache": {"id", "sharing"},
    "tmpfs": {"size"},
    "bind": {"source", "ro", "readonly", "rw", "readwrite"},
}
_NAMES = {"src": "source", "dst": "target", "destination": "target"}
FIX = "Build it with docker, and start from that (docs/how-to/base-image.md)."


@dataclass(frozen=True, kw_only=True, slots=True)
class Mount:
    """`source` is the path in the context; None for an empty folder."""

    target: str
    source: str | None


def read_mount(flag: str) -> Mount:
    """Read the value of --mount; raise `ContextError` for one that no step can have."""
    parts = (field.partition("=") for field in flag.split(","))
    fields = {_NAMES.get(name.lower(), name.lower()): value for name, _, value in parts}
    kind = fields.pop("type", "bind").lower()
    target = fields.pop("target", "")
    left = sorted(fields.keys() - _FIELDS.get(kind, set()))
    if kind not in _FIELDS or left or not target:
        shown = f" with {left[0]}" if left else " without a target" * (not target)
        raise ContextError(f"--mount of type {kind}{shown} cannot be carried", FIX)
    return Mount(target=target, source=fields.get("source", ".") if kind == "bind" else None)
