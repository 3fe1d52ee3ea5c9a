"""Read a small file that another user may have written: it may be a pipe, endless, or nested.

Every failure is an `OSError` or, for the text, a `ValueError`.
"""

import errno
import json
import os
import stat
from contextlib import suppress
from pathlib import Path
from typing import Any

from sifwright.system import files

MOST_BYTES = 16 << 20
_MOST_DEPTH = 100


class NotSmallError(OSError):
    """No regular file, or more bytes than such a file has; `strerror` says it."""

    errno: int
    strerror: str


def read_bytes(path: Path, most_bytes: int = MOST_BYTES) -> bytes:
    """Return the content of a regular file; the opening of a pipe does not wait."""
    return read_with_status(path, most_bytes)[0]


def read_with_status(path: Path, most_bytes: int = MOST_BYTES) -> tuple[bytes, os.stat_result]:
    """Return the content, and the status of the open file."""
    with files.name_file_in_errors(path), open(path, "rb", opener=_open_regular) as file:
        data, status = file.read(most_bytes + 1), os.fstat(file.fileno())
    if len(data) > most_bytes:
        most = f"{most_bytes >> 20} MiB" if most_bytes >= 1 << 20 else f"{most_bytes} bytes"
        raise NotSmallError(errno.EFBIG, f"larger than {most}", str(path))
    return data, status


def _open_regular(path: str, flags: int) -> int:
    descriptor = os.open(path, flags | os.O_NONBLOCK | os.O_NOCTTY)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise NotSmallError(errno.EINVAL, "not a regular file", path)
    return descriptor


def read_text(path: Path, most_bytes: int = MOST_BYTES) -> str:
    """Return the UTF-8 text of a file."""
    return read_bytes(path, most_bytes).decode()


def read_json(path: Path, most_bytes: int = MOST_BYTES) -> Any:  # noqa: ANN401  # it is JSON
    """Return the JSON value of a file."""
    return parse_json(read_bytes(path, most_bytes))


def read_object(path: Path) -> dict[str, Any]:
    """Return the JSON object of a file, or {} if none can be read."""
    try:
        value = read_json(path)
    except (OSError, ValueError):
        return {}
    return value if isinstance(value, dict) else {}


def parse_json(text: str | bytes) -> Any:  # noqa: ANN401  # it is JSON
    """Return the value of a JSON text, which is not nested too deeply to be walked."""
    with suppress(RecursionError):
        value = json.loads(text)
        level = [value]
        for _ in range(_MOST_DEPTH):
            level = [item for items in level for item in _inside(items)]
            if not level:
                return value
    raise ValueError(f"nested deeper than {_MOST_DEPTH} levels")


def _inside(value: object) -> list[Any]:
    if isinstance(value, dict):
        return list(value.values())
    return value if isinstance(value, list) else []
