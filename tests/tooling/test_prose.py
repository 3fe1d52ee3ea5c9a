"""Plain words in the program and its tests: docstrings, comments, messages, names of variables."""

import ast
import re
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

import pytest

from .conftest import BANNED_WORDS, CHECKOUT
from .test_docs import sentences

FILES = (
    *("Makefile", ".ci/*", "tools/*", "builder/sifwright/**/*", "defs/**/*"),
    *("runscripts/**/*", "examples/*", "benchmarks/**/*", "tests/**/*.py", "tests/system/**/*.sh"),
)
# Text of other projects, and files without text.
OTHERS = ("*.patch", "*.pyc", "*.squashfs")
# Folders whose strings are input of the program.
QUIET = {"tests", "benchmarks"}
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
# Shell variables where they get a value; a scratch folder may be called work there.
_NAMES = "found|one|what|made|said|place"
SHELL_VARIABLE = re.compile(
    rf"^\s*(?:for )?(?:{_NAMES})(?:=| in )"
    r"|^\s*(?:while )?(?:IFS=\S* )?(?:local|readonly|export|read|mapfile) (?:[^\s#]\S* )*?"
    rf"(?:{_NAMES})(?=[=; ]|$)",
    re.MULTILINE,
)
# Lines of Python, shell and YAML, lines of Lua, and Jinja's comments.
COMMENT = re.compile(
    r"((?:^[ \t]*#(?: .*)?\n)+)|((?:^ *--(?: .*)?\n)+)|{#-?([^}]*?)-?#}", re.MULTILINE
)
# A comment behind Python code, which may begin with "of", "as", "by" and "with".
REMARK = re.compile(r"\S  # (?!noqa|type:)(.*)$", re.MULTILINE)
REMARK_CLAUSE = re.compile(r"(?:what|whether|where|which|that|those|how|why)\b", re.IGNORECASE)
# The mark of a comment, with the text of a directive.
MARK = re.compile(r"^[ \t]*(?:#|--)? ?(?:shellcheck .*)?")
FUNCTION = ast.FunctionDef | ast.AsyncFunctionDef
STRING = re.compile(r'"((?:[^"\\\n]|\\[^n])*)"|\'([^\'\n]*)\'')
MOST_WORDS = 20
VAGUE = re.compile(r"\b(?:somebody|anybody|whoever|whatever)\b", re.IGNORECASE)
CLAUSES = re.compile(r"(?:What|Whether|Of|Those) (?!.*\?$)")


def files() -> Iterator[Path]:
    """Yield the files of the globs."""
    every = chain.from_iterable(CHECKOUT.glob(glob) for glob in FILES)
    for file in sorted(set(every)):
        if file.is_file() and not any(file.match(glob) for glob in OTHERS):
            yield file


every_file = pytest.mark.parametrize(
    "file", list(files()), ids=lambda file: str(file.relative_to(CHECKOUT))
)


def docstrings(tree: ast.Module) -> Iterator[tuple[str, str]]:
    """Yield each docstring with the words that it must not begin with."""
    for node in ast.walk(tree):
        if isinstance(node, FUNCTION | ast.ClassDef | ast.Module):
            words = f"{CLAUSE}|{OTHER}" if isinstance(node, FUNCTION) else CLAUSE
            yield ast.get_docstring(node) or "", words


def comments(text: str) -> Iterator[str]:
    """Yield each block of lines that are comments."""
    for block in COMMENT.finditer(text):
        lines = block[block.lastindex or 0].splitlines()
        yield "\n".join(MARK.sub("", line) for line in lines).strip()


def strings(text: str, tree: ast.Module) -> Iterator[str]:
    """Yield the strings of one line, those of Python in a shell script as well."""
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            parts = [getattr(part, "value", None) for part in node.values]
            yield "".join(part if isinstance(part, str) else "CODE" for part in parts)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value
    if not tree.body:
        yield from ("".join(groups) for groups in STRING.findall(COMMENT.sub("", text)))


def variables(tree: ast.Module) -> Iterator[str]:
    """Yield the names of parameters and local variables; fields of classes are free."""
    for function in ast.walk(tree):
        if isinstance(function, FUNCTION | ast.Lambda):
            for node in ast.walk(function):
                if isinstance(node, ast.arg):
                    yield node.arg
                elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                    yield node.id


def is_long(sentence: str) -> bool:
    return len(re.findall(r"\S*\w\S*", sentence)) > MOST_WORDS


def odd(text: str, *, is_python: bool = True, is_quiet: bool = False) -> list[str]:
    """Return everything in a file that the rules forbid."""
    tree = ast.parse(text if is_python else "")
    docs, notes = list(docstrings(tree)), list(comments(text))
    parts = [*docs, *((note, CLAUSE) for note in notes)]
    beginnings = [part for part, words in parts if re.match(rf"(?:{words})\b", part, re.IGNORECASE)]
    remarks = REMARK.findall(text) if is_python else []
    beginnings += filter(REMARK_CLAUSE.match, remarks)
    prose = [*(part for part, _ in parts), *remarks]
    vague = [part for part in prose if VAGUE.search(part)]
    texts = set() if is_quiet else set(strings(text, tree)).difference(doc for doc, _ in docs)
    messages = sorted(part for part in texts if "\n" not in part)
    every = [sentence for part in chain(prose, messages) for sentence in sentences(part)]
    long = [sentence for sentence in every if is_long(sentence)]
    clauses = [sentence for sentence in every if CLAUSES.match(sentence)]
    names = sorted(VARIABLES.intersection(variables(tree)))
    names += [] if is_python else SHELL_VARIABLE.findall(text)
    return sorted({*beginnings, *vague, *long, *clauses, *names, *BANNED.findall(text)})


@every_file
def test_words_are_plain(file: Path) -> None:
    text = file.read_text()
    is_python = file.suffix == ".py" or re.match(r"#!.*python", text) is not None
    is_quiet = file.relative_to(CHECKOUT).parts[0] in QUIET
    assert odd(text, is_python=is_python, is_quiet=is_quiet) == []


@pytest.mark.parametrize("glob", FILES)
def test_each_glob_finds_files(glob: str) -> None:
    assert any(CHECKOUT.glob(glob))


@pytest.mark.parametrize(
    "text",
    [
        '"""What a step leaves."""',
        'class Step:\n    """Where it runs."""',
        'def run():\n    """The result."""',
        'def run():\n    """And the result."""',
        'async def run():\n    """The result."""',
        f'"""Run{" it" * MOST_WORDS}."""',
        "# What a step leaves.\n",
        "# shellcheck shell=bash\n# Whether it runs.\n",
        "# The file is somebody's.\n",
        '"""Wait. The file is somebody\'s."""',
        'def run():\n    """Run it. Whether it runs is open."""',
        "# Run it. Those\n# of others wait.\n",
        "run()  \x23 what it leaves\n",
        "run()  # noqa: S101  \x23 whatever it leaves\n",
        f"# Run.\n#{' it' * MOST_WORDS}\n# again.\n",
        f"# The image is built {BANNED_WORDS[0]}.",
        f"fail('Run{' it' * MOST_WORDS}')",
        f"fail(f'Run {{it}}{' it' * MOST_WORDS}')",
        "fail('What is missing is a base.')",
        "def run(what):\n    pass",
        "async def run(what):\n    pass",
        "def run():\n    for one in ():\n        pass",
    ],
)
def test_odd_words_are_found(text: str) -> None:
    assert len(odd(text)) == 1


@pytest.mark.parametrize(
    "text",
    [
        f"\t# Run.\n\t# Run{' it' * MOST_WORDS}\n",
        f"-- Run{' it' * MOST_WORDS}\n",
        f"{{#- Run{' it' * MOST_WORDS} -#}}\n",
        f"say 'Run{' it' * MOST_WORDS}'",
        f'say "Run{" it" * MOST_WORDS}"',
        "run() {\n  local -r found=1\n}\n",
        "for place in *; do\n  run\ndone\n",
        "run() {\n  local name found\n}\n",
        "  mapfile -t found\n",
        f"python3 -c '\nraise SystemExit(\"Run{' it' * MOST_WORDS}\")\n'",
    ],
)
def test_odd_words_of_shell_and_templates_are_found(text: str) -> None:
    assert len(odd(text, is_python=False)) == 1
