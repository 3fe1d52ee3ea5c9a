"""The time that a build writes instead of today's, so that it makes the same bytes on every day."""

import os

from sifwright.errors import UsageError

# 2025-01-01. Any would do, if it is the same for all builds.
DEFAULT = 1735689600
VARIABLE = "SOURCE_DATE_EPOCH"
# Zip files know no earlier year than 1980; squashfs and bytecode have 32 bits. Layers count on.
_FIRST, _LAST = 315619200, 4294000000


def source_epoch() -> int:
    """Return SOURCE_DATE_EPOCH of the environment, or the usual time; raise `UsageError`."""
    text = os.environ.get(VARIABLE, "")
    if not text:
        return DEFAULT
    if not (text.isascii() and text.isdigit() and _FIRST <= int(text) <= _LAST):
        message = f"{text!r} is no time in seconds since 1970, or it is out of range"
        fix = f"Give a number from {_FIRST} to {_LAST}, or unset it."
        raise UsageError.of(message, where=VARIABLE, fix=fix)
    return int(text)
