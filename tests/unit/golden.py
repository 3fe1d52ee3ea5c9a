"""Compare with a file of the repository; SIFWRIGHT_UPDATE_GOLDENS=1 writes it instead."""

import os
from pathlib import Path

VARIABLE = "SIFWRIGHT_UPDATE_GOLDENS"


def check(path: Path, text: str) -> None:
    if os.environ.get(VARIABLE):
        assert not os.environ.get("CI"), f"{VARIABLE} is set on CI: it would accept anything"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    how = f"{VARIABLE}=1 .venv/bin/pytest tests/unit"
    assert path.exists(), f"no golden {path.name}; write it with: {how}"
    assert text == path.read_text(encoding="utf-8"), (
        f"differs from {path}; if it is meant: {how}, and look at the difference"
    )
