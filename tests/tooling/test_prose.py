"""Plain words in the program and its tests: docstrings, comments, names of variables."""

import ast
import re
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

import pytest

from .conftest import BANNED_WORDS, CHECKOUT
from .test_docs import sentences

FILES = [
    *chain(*(sorted((CHECKOUT / top).rglob("*.py")) for top in ("builder", "tests", "benchmarks"))),
    *sorted((CHECKOUT / "tools").iterdir()),
]
# A clause in place of a sentence.
CLAUSE = r"what|whether|where|which|of|as|that|those|by|with|how|why"
# Another word in place of a verb.
OTHER = (
    r"the|an?|all|one|two|three|four|each|every|everything|no|none|nothing|some|any|another|such|both"
    r"|it|its|this|these|they|their|our|there|nobody|somebody|anybody|anything"
    r"|whoever|whatever|wherever|whichever|and|but|n?or|neither|not|also|only|even|else|so|then"
    r"|if|although|until|while|before|after|in|on|at|from|to|for|without|through|under|below"
    r"|beside|beyond|like"
)
BANNED = re.compile(rf"\b(?:{'|'.join(BANNED_WORDS)})\b", re.IGNORECASE)
VARIABLES = {"found", "one", "what", "made", "said", "work", "place"}
COMMENT = re.compile(r"(?:^ *#(?: .*)?\n)+", re.MULTILINE)
MOST_WORDS = 20

every_file = pytest.mark.parametrize(
    "file", FILES, ids=[str(path.relative_to(CHECKOUT)) for path in FILES]
)


def docstrings(tree: ast.Module) -> Iterator[tuple[str, str]]:
    """Yield each docstring with the words that it must not begin with."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.ClassDef | ast.Module):
            words = f"{CLAUSE}|{OTHER}" if isinstance(node, ast.FunctionDef) else CLAUSE
            yield ast.get_docstring(node) or "", words


def comments(text: str) -> Iterator[str]:
    """Yield each block of lines that are comments, in Python and in shell."""
    for block in COMMENT.findall(text):
        yield re.sub(r"^ *# ?", "", block, flags=re.MULTILINE)


def variables(tree: ast.Module) -> Iterator[str]:
    """Yield the names of parameters and local variables; fields of classes are free."""
    for function in ast.walk(tree):
        if isinstance(function, ast.FunctionDef | ast.Lambda):
            for node in ast.walk(function):
                if isinstance(node, ast.arg):
                    yield node.arg
                elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                    yield node.id


def is_long(sentence: str) -> bool:
    return len(re.findall(r"\S*\w\S*", sentence)) > MOST_WORDS


def odd(text: str, *, is_python: bool = True) -> list[str]:
    """Return everything in a file that the rules forbid."""
    tree = ast.parse(text if is_python else "")
    docs = list(docstrings(tree))
    beginnings = [doc for doc, words in docs if re.match(rf"(?:{words})\b", doc, re.IGNORECASE)]
    prose = chain((doc for doc, _ in docs), comments(text))
    long = [sentence for part in prose for sentence in sentences(part) if is_long(sentence)]
    names = sorted(VARIABLES.intersection(variables(tree)))
    return [*beginnings, *long, *names, *BANNED.findall(text)]


@every_file
def test_words_are_plain(file: Path) -> None:
    assert odd(file.read_text(), is_python=file.suffix == ".py") == []


@pytest.mark.parametrize(
    "text",
    [
        '"""What a step leaves."""',
        'class Step:\n    """Where it runs."""',
        'def run():\n    """The result."""',
        'def run():\n    """And the result."""',
        f'"""Run{" it" * MOST_WORDS}."""',
        f"# Run.\n#{' it' * MOST_WORDS}\n# again.\n",
        f"# The image is built {BANNED_WORDS[0]}.",
        "def run(what):\n    pass",
        "def run():\n    for one in ():\n        pass",
    ],
)
def test_odd_words_are_found(text: str) -> None:
    assert len(odd(text)) == 1
