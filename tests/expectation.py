"""The first line of a failed test: the expectation, before the output of a program."""

from __future__ import annotations

_MARK = "\nassert "
# Remains of a condition that is no comparison.
_BARE = ("assert False", "assert not True", "assert None", "assert 0")


def expectation_first(text: str, statement: str) -> str:
    """Return the text of an `AssertionError` with its assertion before its message.

    pytest writes `message`, then `assert left == right`; of `assert function()` only the value,
    so the statement itself goes first.
    """
    message, mark, assertion = f"\n{text}".partition(_MARK)
    if not mark:
        return f"{statement}\n{text}"
    shown = f"{mark.lstrip()}{assertion}{message}"
    return f"{statement}\n{shown}" if shown.startswith(_BARE) else shown
