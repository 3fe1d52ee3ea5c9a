"""Steps in a user's environment before pip starts."""

from __future__ import annotations

import os
import runpy
import sys
from typing import TYPE_CHECKING

import pytest

from tests.conftest import ROOT

if TYPE_CHECKING:
    from pathlib import Path

HOOK = ROOT / "builder/sifwright/install/share/sifwright_pip.py"


@pytest.mark.parametrize(
    ("words", "is_kept"), [("install x", True), ("install --no-build-isolation x", False)]
)
def test_the_constraint_of_isolated_builds_is_for_these(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, words: str, *, is_kept: bool
) -> None:
    """Omit it without isolation, where pip ends with an error if there is one."""
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    monkeypatch.setattr(sys, "orig_argv", ["python", "-m", "pip", *words.split()])
    monkeypatch.setenv("PIP_BUILD_CONSTRAINT", "/constraints.txt")
    runpy.run_path(str(HOOK))
    assert ("PIP_BUILD_CONSTRAINT" in os.environ) == is_kept
