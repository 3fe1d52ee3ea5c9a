"""Compare with a file of the repository; SIFWRIGHT_UPDATE_GOLDENS=1 writes it instead."""

import difflib
import os
from itertools import islice
from pathlib import Path

VARIABLE = "SIFWRIGHT_UPDATE_GOLDENS"


def check(path: Path, text: str) -> None:
    if os.environ.get(VARIABLE):
        assert not os.environ.get("CI"), f"{VARIABLE} is set on CI: it would accept anything"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    how = f"{VARIABLE}=1 .venv/bin/pytest tests/unit"
    assert path.exists(), f"no golden {path.name}; write it with: {how}"
    before = path.read_text(encoding="utf-8")
    assert text == before, (
        f"differs from {path}; if it is meant: {how}, and look at the difference\n"
        + "\n".join(islice(difflib.unified_diff(before.split("\n"), text.split("\n"), n=1), 20))
    )


def check_lines(path: Path, lines: list[str]) -> None:
    """Compare line by line; a failure shows the lines that differ, and how to see the texts."""
    before = path.read_text(encoding="utf-8").splitlines(keepends=True) if path.exists() else []
    if os.environ.get(VARIABLE):
        check(path, "".join(lines))
        return
    changed = [line for line in difflib.ndiff(before, lines) if line[:2] in {"- ", "+ "}]
    assert not changed, (
        f"these texts are not those of {path.name}:\n{''.join(changed)}"
        "See them with `sifwright render --single-file SITE IMAGE` here and in the last commit."
        f" If the change is meant: {VARIABLE}=1 .venv/bin/pytest tests/unit"
    )
