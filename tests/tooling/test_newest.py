"""The checks and unit tests with the newest releases, not those of constraints.txt."""

from pathlib import Path

import pytest

from tests.checkouts import copy_checkout
from tests.conftest import run

from .conftest import FROM_OUTER_MAKE

# Folders that use other packages: yaml, jsonschema, jinja2, rich, cyclonedx, cryptography.
FOLDERS = ("catalog", "cli", "host", "images", "recipe_import", "render", "report")
WITH_PACKAGES = (
    *(f"tests/unit/{folder}" for folder in FOLDERS),
    *("tests/unit/make_image/test_attest.py", "tests/unit/make_image/test_signing.py"),
)


@pytest.mark.all
def test_checks_and_unit_tests_pass_with_the_newest_releases(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in FROM_OUTER_MAKE:
        monkeypatch.delenv(name, raising=False)
    copy_checkout(tmp_path)
    (tmp_path / "tests/constraints.txt").write_text("")
    python = tmp_path / ".venv/bin/python"
    for command in (
        ["tools/make-venv", "--dev"],
        ["make", "lint"],
        [python, "-m", "pytest", "-q", "-n", "2", "-m", "unit", *WITH_PACKAGES],
    ):
        done = run(command, cwd=tmp_path, timeout=1700)
        assert done.returncode == 0, done.stdout + done.stderr
