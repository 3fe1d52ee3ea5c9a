"""Files in folders of sites that are no sites; tests/unit/cli/test_readme.py adds real ones."""

from pathlib import Path

import pytest

from tests.unit.broken import write
from tests.unit.conftest import Cli


@pytest.mark.parametrize("name", [".hidden.yaml", ".git/x.yaml", "README.md", "x.yaml~"])
def test_other_files_are_left_alone(project: Path, run_cli: Cli, name: str) -> None:
    write(f"sites/{name}", "not: a site")(project / "defs")
    result = run_cli("--project", project, "list", "sites")
    assert (result.code, result.err) == (0, "")
