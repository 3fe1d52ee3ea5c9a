"""A layer or a site is added by adding a folder or a file; nothing else is touched."""

from pathlib import Path

import pytest

from sifwright.catalog.model import Catalog
from tests.unit.broken import append, write
from tests.unit.conftest import Cli

SITE = """\
description: A new site
vendor: cpu
scheduler: slurm
launcher: srun
image: pytorch
"""
LAYER = "summary: A new layer\nrequires: [python]\n"
SCRIPT = "#!/bin/bash\nset -euo pipefail\ntouch /new\n"


def test_a_site_is_one_file(real_project: Path, run_cli: Cli, real: Catalog) -> None:
    write("sites/brand-new.yaml", SITE)(real_project / "defs")
    table = run_cli("--project", real_project, "list", "sites").out.splitlines()
    row = next(line for line in table if line.startswith("brand-new"))
    assert "slurm+srun" in row
    assert row.endswith("A new site")
    for command in ("plan", "render --single-file", "lint", "show site"):
        result = run_cli("--project", real_project, *command.split(), "brand-new")
        assert (result.code, result.err) == (0, "")
        assert "brand-new" in result.out
    assert set(real.sites).isdisjoint({"brand-new"})


def test_a_layer_is_one_folder(real_project: Path, run_cli: Cli) -> None:
    defs = real_project / "defs"
    write("layers/brand-new/layer.yaml", LAYER)(defs)
    write("layers/brand-new/install.sh", SCRIPT)(defs)
    assert "brand-new" in run_cli("--project", real_project, "list", "layers").out
    append("images/pytorch.yaml", "  - layer: brand-new\n")(defs)
    assert "A new layer" in run_cli("--project", real_project, "plan", "local").out
    rendered = run_cli("--project", real_project, "render", "local", "--single-file").out
    assert "touch /new\n" in rendered


def test_a_new_layer_leaves_the_others_as_they_are(real_project: Path, run_cli: Cli) -> None:
    command = ("--project", real_project, "plan", "local", "--json")
    before = run_cli(*command).out
    write("layers/brand-new/layer.yaml", LAYER)(real_project / "defs")
    write("layers/brand-new/install.sh", SCRIPT)(real_project / "defs")
    assert run_cli(*command).out == before


@pytest.mark.parametrize("name", [".hidden.yaml", ".git/x.yaml", "README.md", "x.yaml~"])
def test_other_files_are_left_alone(project: Path, run_cli: Cli, name: str) -> None:
    write(f"sites/{name}", "not: a site")(project / "defs")
    result = run_cli("--project", project, "list", "sites")
    assert (result.code, result.err) == (0, "")
