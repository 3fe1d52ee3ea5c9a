"""The first line of a failed test: the expectation, before the output of a program."""

from __future__ import annotations

_MARK = "\nassert "


def expectation_first(text: str) -> str:
    """Return the text of an `AssertionError` with its assertion before its message.

    pytest writes `message`, then `assert left == right`.
    """
    message, mark, assertion = text.partition(_MARK)
    return f"{mark.lstrip()}{assertion}\n{message}" if mark else text
