"""Text is UTF-8 in every locale, also where ruff's rule for it (PLW1514) knows no type."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).resolve().parents[2]
SCRIPTS = sorted(
    path
    for room in ("builder", "runscripts", "defs", "benchmarks")
    for path in (CHECKOUT / room).rglob("*")
    if path.suffix == ".py"
    or re.match(rb"#!.*python", path.read_bytes() if path.is_file() else b"")
)
# Positional arguments with which the method has its encoding.
METHODS = {"read_text": 1, "write_text": 2}
MODE = re.compile(r"[rwax]\+?t?")


def _name(call: ast.Call) -> str:
    return call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")


def _is_constant(node: ast.expr, pattern: str | re.Pattern[str]) -> bool:
    value = node.value if isinstance(node, ast.Constant) else None
    return value is not None and re.fullmatch(pattern, str(value)) is not None


def _leaves_it_to_the_locale(call: ast.Call) -> bool:
    keywords = {keyword.arg: keyword.value for keyword in call.keywords}
    if "encoding" in keywords or ast.unparse(call.func).startswith("tarfile."):
        return False
    if _name(call) in METHODS:
        return len(call.args) < METHODS[_name(call)]
    if _name(call) in {"open", "fdopen"}:
        return any(_is_constant(value, MODE) for value in (*call.args, *keywords.values())) or (
            _name(call) == "open" and isinstance(call.func, ast.Name) and len(call.args) == 1
        )
    return any(
        _is_constant(keywords[name], "True")
        for name in {"text", "universal_newlines"} & keywords.keys()
    )


def _faults(text: str) -> Iterator[int]:
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Call) and _leaves_it_to_the_locale(node):
            yield node.lineno


def test_no_text_is_in_the_encoding_of_the_locale() -> None:
    assert len(SCRIPTS) > 300
    results = {path: list(_faults(path.read_text(encoding="utf-8"))) for path in SCRIPTS}
    assert {str(path): lines for path, lines in results.items() if lines} == {}


@pytest.mark.parametrize(
    ("call", "is_fault"),
    [
        ("output.record.read_text()", True),
        ("output.record.write_text(text)", True),
        ("path.open('w')", True),
        ("open(path)", True),
        ("run(command, text=True)", True),
        ("path.read_text('utf-8')", False),
        ("path.open('rb')", False),
        ("run(command, encoding='utf-8')", False),
        ("tarfile.open(path, 'w')", False),
    ],
)
def test_calls_that_count(call: str, *, is_fault: bool) -> None:
    assert bool(list(_faults(call))) == is_fault
