from __future__ import annotations

import ast

import pytest

from .conftest import RUNSCRIPTS

LAUNCH = sorted((RUNSCRIPTS / "launch").glob("*.py"))
BASH_SCRIPTS = ("conda-python-simple", "conda-python-distributed")


@pytest.mark.parametrize("script", BASH_SCRIPTS)
def test_options_are_not_in_the_first_line(script: str) -> None:
    """Set -p before bash reads files; `bash conda-python-simple` would lose an option."""
    lines = (RUNSCRIPTS / script).read_text().splitlines()
    assert lines[0] == "#!/bin/bash -p"
    assert "set -euo pipefail" in lines


@pytest.mark.parametrize("file", ["get-master", *(path.name for path in LAUNCH)])
def test_is_python_3_6(file: str) -> None:
    path = next(path for path in (*LAUNCH, RUNSCRIPTS / "get-master") if path.name == file)
    ast.parse(path.read_text(), feature_version=(3, 6))
