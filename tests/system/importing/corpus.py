"""Recipes in the style of public ones, and what is to be said of each."""

from __future__ import annotations

import contextlib
import io
import re
from dataclasses import dataclass
from pathlib import Path

import yaml
from spython.logger import bot
from spython.main.parse.parsers import DockerParser
from spython.main.parse.writers import SingularityWriter

from sifwright.cli.commands.import_ import imported
from sifwright.errors import UsageError
from sifwright.recipe_import.layers import write_layers

CORPUS = Path(__file__).parent / "corpus"


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """`refused` maps lines to reasons; `spython` is what spython does with the same recipe."""

    name: str
    expected: dict[int, str]
    refused: dict[int, str]
    spython: str

    @property
    def is_right(self) -> bool:
        return self.expected.keys() == self.refused.keys() and all(
            word in self.refused[line] for line, word in self.expected.items()
        )


def verdicts() -> list[Verdict]:
    listed = yaml.safe_load((CORPUS / "expected.yaml").read_text())
    return [_verdict(name, expected) for name, expected in listed.items()]


def _verdict(name: str, expected: dict[str, str]) -> Verdict:
    return Verdict(
        name=name,
        expected={int(line): word for line, word in expected.items()},
        refused=refused(CORPUS / name),
        spython=by_spython(CORPUS / name),
    )


def refused(recipe: Path) -> dict[int, str]:
    """Return the refused lines with reasons; nothing if the recipe is imported."""
    try:
        write_layers.files(imported(recipe, "case", str(CORPUS / "context")))
    except UsageError as error:
        results: dict[int, str] = {}
        for problem in error.problems:
            line = int(re.fullmatch(rf"{re.escape(str(recipe))}:(\d+)", problem.where)[1])  # type: ignore[index]
            results[line] = f"{results.get(line, '')} {problem.what}".strip()
        return results
    return {}


def converted(recipe: Path) -> str:
    """Return the definition file that spython makes of a Dockerfile; it may print and exit."""
    output = io.StringIO()
    bot.errorStream = bot.outputStream = output
    with contextlib.redirect_stdout(output), contextlib.redirect_stderr(output):
        return str(SingularityWriter(DockerParser(str(recipe)).recipe).convert())


def by_spython(recipe: Path) -> str:
    """Return whether spython alone translates a Dockerfile without a warning."""
    if recipe.suffix == ".def":
        return ""
    try:
        converted(recipe)
    except (SystemExit, Exception) as error:  # noqa: BLE001  # spython raises any class
        return f"{error!a}"
    return "converted"
