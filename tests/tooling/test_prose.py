"""Plain words in the program: first words of docstrings, banned words, names of variables."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from .conftest import CHECKOUT

PACKAGE = CHECKOUT / "builder" / "sifwright"
FILES = sorted(PACKAGE.rglob("*.py"))
# A clause in place of a sentence.
CLAUSE = r"what|whether|where|which|of|as|that|those|by|with|how|why"
# A noun in place of a verb.
NOUN = r"the|a|an|all|one|each|every|everything|no|none|nothing|it|this|these"
BANNED = re.compile(
    r"\b(?:anew|whom|theirs|(?:is|are) told|stands? there|come to mean|says so|gone without)\b",
    re.IGNORECASE,
)
VARIABLES = {"found", "one", "what", "made", "said", "work", "place"}

every_file = pytest.mark.parametrize(
    "file", FILES, ids=[str(path.relative_to(PACKAGE)) for path in FILES]
)


def wrong_beginnings(tree: ast.Module) -> Iterator[str]:
    """Yield the first line of each docstring that begins with a wrong word."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.ClassDef | ast.Module):
            words = f"{CLAUSE}|{NOUN}" if isinstance(node, ast.FunctionDef) else CLAUSE
            text = ast.get_docstring(node) or ""
            if re.match(rf"(?:{words})\b", text, re.IGNORECASE):
                yield text.splitlines()[0]


def variables(tree: ast.Module) -> Iterator[str]:
    """Yield the names of parameters and local variables; fields of classes are free."""
    for function in ast.walk(tree):
        if isinstance(function, ast.FunctionDef | ast.Lambda):
            for node in ast.walk(function):
                if isinstance(node, ast.arg):
                    yield node.arg
                elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                    yield node.id


def odd(text: str) -> list[str]:
    """Return everything in a file that the rules forbid."""
    tree = ast.parse(text)
    names = sorted(VARIABLES.intersection(variables(tree)))
    return [*wrong_beginnings(tree), *names, *BANNED.findall(text)]


@every_file
def test_words_are_plain(file: Path) -> None:
    assert odd(file.read_text()) == []


@pytest.mark.parametrize(
    "text",
    [
        '"""What a step leaves."""',
        'class Step:\n    """Where it runs."""',
        'def run():\n    """The result."""',
        "# The image is built anew.",
        "def run(what):\n    pass",
        "def run():\n    for one in ():\n        pass",
    ],
)
def test_odd_words_are_found(text: str) -> None:
    assert len(odd(text)) == 1
