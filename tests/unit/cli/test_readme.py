"""README and the tutorials are followed to the letter: their files are taken from their text."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from tests.unit.conftest import CHECKOUT

if TYPE_CHECKING:
    from pathlib import Path

    from tests.unit.conftest import Cli

README = (CHECKOUT / "README.md").read_text()
JOB_SCRIPTS = (CHECKOUT / "docs" / "how-to" / "job-script.md").read_text()
TUTORIALS = "".join(
    (CHECKOUT / "docs" / "tutorials" / f"first-{name}.md").read_text() for name in ("layer", "site")
)
# A file's name in backquotes, then the next fenced block is what is in it.
FILES = re.findall(r"`(defs/\w+/[\w./-]+)`(?:(?!```).)*?```\w+\n(.*?)```", TUTORIALS, re.DOTALL)
MIRROR = ("--set", "base-debian.mirror=http://mirror.example/debian")


@pytest.fixture
def followed(real_project: Path) -> Path:
    for name, text in FILES:
        path = real_project / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return real_project


def test_the_files_are_found_in_the_text() -> None:
    assert [name for name, _ in FILES] == [
        "defs/layers/einops/layer.yaml",
        "defs/layers/einops/install.sh",
        "defs/layers/einops/test.sh",
        "defs/images/mine.yaml",
        "defs/sites/mycluster.yaml",
    ]


def test_its_layer_and_image_work(followed: Path, run_cli: Cli) -> None:
    rendered = run_cli("--project", followed, "render", "local", "mine", "--output", "-", *MIRROR)
    assert (rendered.code, rendered.err) == (0, "")
    assert "OPT_VERSION=0.8.0 bash /.sifwright/step einops" in rendered.out


def test_its_site_works(followed: Path, run_cli: Cli) -> None:
    plan = run_cli("--project", followed, "plan", "mycluster", "--explain")
    assert (plan.code, plan.err) == (0, "")
    assert re.search(r"variant = cu126 +site mycluster", plan.out)


def test_its_error_is_what_is_printed(run_cli: Cli) -> None:
    message = run_cli("plan", "local", "--set", "pytorch-wheel.variant=cu126")
    assert message.code == 4
    assert message.err in README


def test_its_job_script_is_what_is_printed(run_cli: Cli) -> None:
    """Compare line by line; '…' stands for lines that are left out."""
    (command, shown) = re.findall(
        r"\$ sifwright (jobscript .*)\n(#!.*\n(?:.*\n)*?)```", JOB_SCRIPTS
    )[0]
    result = run_cli("--project", CHECKOUT, *command.split())
    assert result.code == 0
    lines = iter(result.out.splitlines())
    assert all(line in lines for line in shown.splitlines() if line != "…")
    assert shown.endswith(result.out.splitlines()[-1] + "\n")


def test_its_commands_and_targets_exist() -> None:
    targets = set(re.findall(r"\bmake ([a-z]+)", README))
    makefile = (CHECKOUT / "Makefile").read_text()
    assert targets <= set(re.findall(r"^([a-z-]+):", makefile, re.MULTILINE))
    assert {"sif", "test", "plan", "list", "def", "check", "bench"} <= targets
