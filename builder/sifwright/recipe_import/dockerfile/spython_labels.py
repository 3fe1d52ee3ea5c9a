"""Read the labels of a Dockerfile with spython; nothing else here knows that part of spython.

It prints, leaves by sys.exit, reads files only, and knows neither comments nor continued lines. So
it is given a file of whole instructions.
"""

import contextlib
import io
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path

from sifwright.errors import UsageError


def labels(texts: Iterable[str]) -> list[str]:
    """Return the labels in the texts of LABEL instructions."""
    if not (text := "".join(f"LABEL {text}\n" for text in texts)):
        return []
    from spython.main.parse.parsers import DockerParser  # noqa: PLC0415  # loads slowly

    with tempfile.TemporaryDirectory(prefix=".sifwright-") as folder, guarded("the recipe"):
        path = Path(folder) / "Dockerfile"
        path.write_text(f"FROM base\n{text}", encoding="utf-8")
        recipe = DockerParser(str(path)).recipe["spython-base"]
        return [label for labels in recipe.labels for label in labels]


@contextlib.contextmanager
def guarded(where: str) -> Iterator[None]:
    """Report every failure of spython in one way."""
    from spython.logger import bot  # noqa: PLC0415  # loads slowly

    output = io.StringIO()
    streams = bot.errorStream, bot.outputStream
    bot.errorStream = bot.outputStream = output
    try:
        with contextlib.redirect_stdout(output), contextlib.redirect_stderr(output):
            yield
    except (SystemExit, Exception) as error:  # noqa: BLE001  # spython raises any class
        message = f"spython cannot parse it: {error!a}"
        raise UsageError.of(message, where=where, fix="Write it more simply.") from None
    finally:
        bot.errorStream, bot.outputStream = streams
