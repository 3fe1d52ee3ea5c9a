"""Parse with spython what it parses well; nothing else here knows that part of spython.

It prints, leaves by sys.exit, reads files only, and knows neither comments nor continued lines. So
it is given a file of whole instructions, and only those whose order does not matter.
"""

from __future__ import annotations

import contextlib
import io
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sifwright.errors import UsageError
from sifwright.recipe_import.dockerfile.instructions import Instruction

_METADATA = ("CMD", "ENTRYPOINT", "LABEL")


@dataclass(frozen=True, kw_only=True, slots=True)
class Metadata:
    """The metadata of an image. A program is a list of words, or text for a shell."""

    entrypoint: list[str] | str
    command: list[str] | str
    labels: tuple[str, ...]


def metadata(instructions: Iterable[tuple[str, str]]) -> Metadata:
    """Return the metadata of these instructions (name and text); of two CMD the last counts."""
    text = "".join(f"{name} {rest}\n" for name, rest in instructions)
    recipe = _parsed(f"FROM base\n{text}")
    return Metadata(
        entrypoint=_program(recipe.entrypoint),
        command=_program(recipe.cmd),
        labels=tuple(label for labels in recipe.labels for label in labels),
    )


def metadata_of(listed: Iterable[Instruction]) -> Metadata:
    """Find the metadata among all instructions of a recipe."""
    return metadata((item.name, item.text) for item in listed if item.name in _METADATA)


def converted(recipe: Path) -> str:
    """Return the definition file that spython makes of a Dockerfile, for comparing."""
    from spython.main.parse.parsers import DockerParser  # noqa: PLC0415  # loads slowly
    from spython.main.parse.writers import SingularityWriter  # noqa: PLC0415

    with _guarded(str(recipe)):
        return str(SingularityWriter(DockerParser(str(recipe)).recipe).convert())


def _parsed(text: str) -> Any:  # noqa: ANN401  # spython has no types
    from spython.main.parse.parsers import DockerParser  # noqa: PLC0415  # loads slowly

    with tempfile.TemporaryDirectory(prefix=".sifwright-") as folder, _guarded("the recipe"):
        path = Path(folder) / "Dockerfile"
        path.write_text(text)
        return DockerParser(str(path)).recipe["spython-base"]


def _program(value: object) -> list[str] | str:
    """Return a program; JSON that is no list of words is text for a shell."""
    if isinstance(value, list) and all(isinstance(word, str) for word in value):
        return value
    return "" if value is None else str(value)


@contextlib.contextmanager
def _guarded(where: str) -> Iterator[None]:
    """Report every failure of spython in one way."""
    from spython.logger import bot  # noqa: PLC0415  # loads slowly

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
