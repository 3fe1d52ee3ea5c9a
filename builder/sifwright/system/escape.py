"""Show what others chose (names of files, of packages) so that it cannot pretend to be more."""

from __future__ import annotations

__all__ = ["escape_name", "strip_control_characters"]

# The bytes from 128 that are no UTF-8, as surrogateescape (PEP 383) keeps them.
_BYTES = "".join(map(chr, range(0xDC80, 0xDD00)))


def escape_name(name: bytes | str) -> str:
    """A name on one line: what is no text, or controls a terminal, as an escape."""
    if isinstance(name, bytes):
        name = name.decode("utf-8", "surrogateescape")
    return "".join(map(_shown, name))


def strip_control_characters(text: str) -> str:
    """Lines that hold names and words of others, without what controls a terminal."""
    return "".join(c if c.isprintable() or c in "\n\t" else _shown(c) for c in text)


def _shown(character: str) -> str:
    if character in _BYTES:
        return f"\\x{_BYTES.index(character) + 128:02x}"
    if character == "\\":
        return "\\\\"
    if character.isprintable():
        return character
    return character.encode("unicode_escape", "backslashreplace").decode()
