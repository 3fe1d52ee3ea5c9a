"""What spython makes of a Dockerfile by itself, for comparing."""

from __future__ import annotations

import contextlib
import io
from typing import TYPE_CHECKING

from spython.logger import bot
from spython.main.parse.parsers import DockerParser
from spython.main.parse.writers import SingularityWriter

from sifwright.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


def converted(recipe: Path) -> str:
    """The definition file that spython makes of a Dockerfile; raises `UsageError` if it cannot."""
    with _guarded(str(recipe)):
        return str(SingularityWriter(DockerParser(str(recipe)).recipe).convert())


@contextlib.contextmanager
def _guarded(where: str) -> Iterator[None]:
    """Report every failure of spython in one way: it prints, and leaves by sys.exit."""
    output = io.StringIO()
    streams = bot.errorStream, bot.outputStream
    bot.errorStream = bot.outputStream = output
    try:
        with contextlib.redirect_stdout(output), contextlib.redirect_stderr(output):
            yield
    except (SystemExit, Exception) as error:  # noqa: BLE001  # whatever it is
        message = f"spython cannot parse it: {error!a}"
        raise UsageError.of(message, where=where, fix="Write it more simply.") from None
    finally:
        bot.errorStream, bot.outputStream = streams
