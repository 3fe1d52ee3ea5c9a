"""README and the pages of docs/: their links, their size, their prose, the generated page."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from . import command_reference
from .conftest import BANNED_WORDS, CHECKOUT
from .test_rooms import ALLOWED

COMMANDS = CHECKOUT / "docs" / "reference" / "commands.md"
PAGES = sorted(
    [
        *(CHECKOUT / f"{name}.md" for name in ("README", "CONTRIBUTING", "CHANGELOG")),
        *CHECKOUT.glob("docs/**/*.md"),
        CHECKOUT / "easyconfigs" / "README.md",
    ]
)
FENCE = re.compile(r"^ *```.*?^ *```$", re.MULTILINE | re.DOTALL)
CODE = re.compile(r"(?<!`)(`+)(?!`)(.+?)(?<!`)\1(?!`)", re.DOTALL)
# Banned words, and clauses in the place of a subject.
ODD = re.compile(
    rf"\b(?:{'|'.join(BANNED_WORDS)}|somebody|whatever|thereof)\b"
    r"|^(?:What|Whether|Of|Those) (?!.*\?$)"
)
LINK = re.compile(r"\]\(([^)\s]+)\)")
# A page of ours, as code and messages name it; other projects have docs/ of other folders.
NAMED = re.compile(
    rb"(?<![\w/.@-])docs/(?:(?:tutorials|how-to|reference|explanation)/)?[a-z][a-z-]*\.md"
)


def name(page: Path) -> str:
    return str(page.relative_to(CHECKOUT))


every_page = pytest.mark.parametrize("page", PAGES, ids=name)


def anchors(page: Path) -> set[str]:
    """Return the anchors that a page's headings have on GitHub."""
    headings = re.findall(r"^#+ (.*)$", FENCE.sub("", page.read_text()), re.MULTILINE)
    texts = (re.sub(r"\]\([^)]*\)", "", heading) for heading in headings)
    return {re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-") for text in texts}


@every_page
def test_links_lead_somewhere(page: Path) -> None:
    for link in LINK.findall(FENCE.sub("", page.read_text())):
        target, _, anchor = link.partition("#")
        if "://" in target:
            continue
        file = page.parent / target if target else page
        assert file.exists(), link
        assert not anchor or anchor in anchors(file), link


@every_page
def test_files_that_a_page_names_exist(page: Path) -> None:
    text = page.read_text()
    top = "builder|tests|tools|runscripts|examples|benchmarks"
    names = re.findall(rf"`((?:{top})/[\w/.-]+)`", text)
    rooms = "|".join(ALLOWED)
    names += [
        f"builder/sifwright/{name}" for name in re.findall(rf"`((?:{rooms})/[\w/]+\.py)`", text)
    ]
    assert [name for name in names if not (CHECKOUT / name).exists()] == []


def test_every_page_can_be_reached() -> None:
    index = CHECKOUT / "docs" / "README.md"
    linked = {(index.parent / link).resolve() for link in LINK.findall(index.read_text())}
    assert [name(page) for page in CHECKOUT.glob("docs/*/*.md") if page not in linked] == []


def test_pages_that_code_and_messages_name_exist() -> None:
    folders = ("builder", "defs", "runscripts", "tools", "tests", "benchmarks", "examples")
    files = [CHECKOUT / "Makefile", *(f for top in folders for f in (CHECKOUT / top).rglob("*"))]
    pages = {
        (name(file), page.decode())
        for file in files
        if file.is_file() and "__pycache__" not in file.parts
        for page in NAMED.findall(file.read_bytes())
    }
    assert pages, "take another pattern"
    assert [pair for pair in sorted(pages) if not (CHECKOUT / pair[1]).exists()] == []


def test_the_command_reference_is_that_of_the_parser() -> None:
    assert COMMANDS.read_text() == command_reference.page(), "run 'make docs'"


@every_page
def test_pages_are_short(page: Path) -> None:
    lines = page.read_text().splitlines()
    assert [line for line in lines if len(line) > 110] == []
    assert page == COMMANDS or len(lines) < 200


def sentences(text: str) -> Iterator[str]:
    """Yield the sentences of paragraphs, list items and cells of tables, without code."""
    text = re.sub(r"^(?: {4}|#).*", "\n", FENCE.sub("\n", text), flags=re.MULTILINE)
    text = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", CODE.sub("CODE", text))
    for part in re.split(r"\n\s*\n|\n(?= *(?:[-*] |\d+\. ))|\|", text):
        words = re.sub(r"^\s*(?:[-*] |\d+\. )", "", part).replace("**", "").split()
        yield from filter(None, re.split(r"(?<=[.!?])\)?\s+(?=[A-Z\"(])", " ".join(words)))


@every_page
def test_sentences_are_short(page: Path) -> None:
    """Allow at most 20 words."""
    long = [
        sentence
        for sentence in sentences(page.read_text())
        if len([word for word in sentence.split() if re.search(r"\w", word)]) > 20
    ]
    assert long == []


@every_page
def test_words_are_plain(page: Path) -> None:
    odd = [sentence for sentence in sentences(page.read_text()) if ODD.search(sentence)]
    assert odd == [], ODD.pattern


@pytest.mark.parametrize(
    "text",
    [
        "What a step keeps keeps steps together.",
        f"The image is built {BANNED_WORDS[0]}.",
        "- fine.\n- An image of\n  somebody else.",
        "| a cell | it is of somebody |",
    ],
)
def test_an_odd_word_is_found(text: str) -> None:
    assert any(ODD.search(sentence) for sentence in sentences(text))


def test_sentences_end_where_they_end_and_code_counts_as_one_word() -> None:
    text = "It has `many words of code` and\n[a link](there.md)\n\n```\nblock\n```\n"
    assert list(sentences(text)) == ["It has CODE and a link"]
    assert list(sentences("One. Two?\n\n# Three\n\n1. Four\n")) == ["One.", "Two?", "Four"]
