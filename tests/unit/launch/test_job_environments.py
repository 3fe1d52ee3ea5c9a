"""Native jobs in virtual environments, in conda environments, and in what modules bring."""

from __future__ import annotations

import json
import os
import sys
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from sifwright.catalog.model import Modules

if TYPE_CHECKING:
    from pathlib import Path

    from sifwright.catalog.model import Catalog, Site
    from tests.unit.jobs import Bench, Ran

ODD = 'it\'s $(touch x) `touch x`\n"*"'


@pytest.fixture
def site(real: Catalog) -> Site:
    return replace(real.sites["slurm-generic"], cache="", modules=Modules())


@pytest.fixture
def conda(tmp_path: Path) -> Path:
    """Make the layout of `conda create -p`, with files that packages and users put into it."""
    prefix = tmp_path / "my_env"
    for folder in ("bin", "conda-meta", "etc/conda/activate.d", "etc/conda/env_vars.d"):
        (prefix / folder).mkdir(parents=True)
    (prefix / "bin" / "python").symlink_to(sys.executable)
    (prefix / "conda-meta" / "history").touch()
    return prefix


def _run(bench: Bench, site: Site, environment: object, **env: str) -> Ran:
    asked = {"environment": str(environment), "ranks_per_node": 1}
    return bench.run(bench.render(site, **asked), **env)


def test_a_conda_environment_is_activated_as_conda_does(
    bench: Bench, site: Site, conda: Path
) -> None:
    (conda / "etc/conda/activate.d/b.sh").write_text('export ORDER="$ORDER b $UNSET"\nfalse\n')
    (conda / "etc/conda/activate.d/a.sh").write_text('export ORDER="a of $CONDA_PREFIX"\n')
    (conda / "etc/conda/activate.d/c.fish").write_text("set -x SHELL_OF_ANOTHER fish\n")
    ran = _run(bench, site, conda, VIRTUAL_ENV="/stale", PYTHONHOME="/stale")
    assert (ran.code, ran.out, ran.err) == (0, "", "")
    assert ran.env["ORDER"] == f"a of {conda} b "
    assert (ran.env["CONDA_PREFIX"], ran.env["CONDA_DEFAULT_ENV"]) == (str(conda), str(conda))
    assert ran.env["PATH"].startswith(f"{conda}/bin:")
    assert {"VIRTUAL_ENV", "PYTHONHOME", "SHELL_OF_ANOTHER"}.isdisjoint(ran.env)
    assert ran.env["WITH_CONDA"] == "true"


def test_variables_of_a_conda_environment(bench: Bench, site: Site, conda: Path) -> None:
    """Set the packages' variables, and over them the values of `conda env config vars set`."""
    files = {"a.json": {"A": "1", "B": "1"}, "b.json": {"B": "2", "C": ODD}}
    for name, values in files.items():
        (conda / "etc/conda/env_vars.d" / name).write_text(json.dumps(values))
    variables = {"A": "9", "NCCL_DEBUG": "INFO", "D": "***unset***"}
    state = {"version": 1, "env_vars": variables}
    (conda / "conda-meta/state").write_text(json.dumps(state))
    ran = _run(bench, site, conda)
    assert (ran.code, ran.err) == (0, "")
    wanted = {"A": "9", "B": "2", "C": ODD, "NCCL_DEBUG": "INFO"}
    assert {name: ran.env[name] for name in wanted} == wanted
    assert "D" not in ran.env


def test_a_relative_conda_environment(bench: Bench, site: Site, conda: Path) -> None:
    path = os.path.relpath(conda, bench.empty)
    ran = _run(bench, site, path, CDPATH=str(conda.parent))
    assert ran.env["CONDA_PREFIX"] == str(conda)


def test_a_script_of_activation_that_cannot_be_read_is_left_out(
    bench: Bench, site: Site, conda: Path
) -> None:
    (conda / "etc/conda/activate.d/a.sh").symlink_to("/nowhere")
    assert _run(bench, site, conda).code == 0


@pytest.mark.parametrize("lacking", ["conda-meta", "bin/python", "everything"])
def test_a_folder_that_is_no_environment_ends_the_job(
    bench: Bench, site: Site, conda: Path, lacking: str
) -> None:
    environment = conda / "nowhere" if lacking == "everything" else conda
    if lacking != "everything":
        (conda / lacking).rename(conda / "away")
    ran = _run(bench, site, environment)
    assert (ran.code, ran.out, ran.argv) == (66, "", [])
    assert f"job: '{environment}' has neither bin/activate nor" in ran.err


def test_a_virtual_environment_comes_first(bench: Bench, site: Site, conda: Path) -> None:
    """Use bin/activate, which is there with conda itself, or after conda-pack."""
    (conda / "bin/activate").touch()
    ran = _run(bench, site, conda)
    assert ran.env["WITH_CONDA"] == f"source {conda}/bin/activate"
    assert "CONDA_PREFIX" not in ran.env


def test_a_module_may_bring_the_python(bench: Bench, site: Site) -> None:
    text = bench.render(site, run_in="host", modules=("pytorch/2.3.1-gpu",), ranks_per_node=1)
    ran = bench.run(text)
    assert (ran.code, ran.err) == (0, "")
    assert ran.env["WITH_CONDA"] == "true"
    assert ran.modules == ["module unload pytorch", "module load pytorch/2.3.1-gpu"]
