"""Refusals of `check` and messages of `build` about a site or an image that fails lint."""

import json
from pathlib import Path
from types import SimpleNamespace

import pytest

from sifwright.errors import CatalogError, MachineError, PlanError, Problem
from sifwright.make_image.check_machine import preflight
from tests.unit.broken import SITE, append
from tests.unit.conftest import Cli
from tests.unit.lint_cases import SITES
from tests.unit.lint_image_cases import IMAGES

CASES = SITES | IMAGES
ENGINE = SimpleNamespace(program="apptainer", version="1.4.5")
REFUSED = {"memhooks": CatalogError, "gpu-arch": PlanError}


@pytest.fixture(autouse=True)
def _no_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """Return a machine that has everything, and builds nothing."""

    def build(*_: object, **__: object) -> None:
        raise MachineError.of("nothing is built here", fix="It is a test.")

    monkeypatch.setattr(preflight, "findings", lambda _: [])
    monkeypatch.setattr("sifwright.host.engines.apptainer.find", lambda: ENGINE)
    monkeypatch.setattr("sifwright.make_image.build_image.build_image", build)


def _spoil(project: Path, name: str, *, good: bool = False) -> None:
    for change in CASES[name].good if good else CASES[name].bad:
        change(project / "defs")


@pytest.mark.parametrize("name", REFUSED)
def test_check_ends_with_the_errors(project: Path, run_cli: Cli, name: str) -> None:
    _spoil(project, name)
    result = run_cli("--project", project, "check", "here")
    assert (result.code, result.out) == (REFUSED[name].exit_code, "")
    why = {"memhooks": "deadlocks", "gpu-arch": "no kernel would start"}[name]
    assert why in result.err.splitlines()[0]


def test_check_says_what_the_machine_lacks_as_well(
    project: Path, run_cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Refuse for no note; the status is of the first kind of errors."""
    disk, hole = Problem(what="too small"), Problem(what="a hole", fix="Mend it.", severity="note")
    monkeypatch.setattr(preflight, "findings", lambda _: [hole])
    noted = run_cli("--project", project, "check", "here")
    assert (noted.code, noted.out.splitlines()[0]) == (0, "a hole. Mend it.")
    monkeypatch.setattr(preflight, "findings", lambda _: [disk, hole])
    assert run_cli("--project", project, "check", "here").code == MachineError.exit_code
    _spoil(project, "gpu-arch")
    both = run_cli("--project", project, "check", "here")
    assert both.code == PlanError.exit_code
    assert "no kernel would start" in both.err
    assert "sifwright: too small" in both.err.splitlines()


def test_check_and_build_begin_with_where_images_are_built(project: Path, run_cli: Cli) -> None:
    builds = "builds: {where: elsewhere, ids: none, why: root is needed, source: a page}\n"
    append(SITE, builds)(project / "defs")
    line = (
        "here: users build no images there: root is needed."
        " Build on another machine, copy, install: docs/how-to/build-elsewhere.md"
    )
    assert run_cli("--project", project, "check", "here").out.splitlines()[0] == line
    built = run_cli("--project", project, "build", "here", "--json").out.splitlines()
    assert json.loads(built[0])["text"] == line


def test_they_name_the_command_that_builds_in_a_job(
    project: Path, run_cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Name the exact command; a job of the site needs no other."""
    text = (project / "defs" / SITE).read_text().replace("local", "slurm", 1)
    (project / "defs" / SITE).write_text(text.replace("launcher: local", "launcher: srun"))
    facts = "builds: {where: batch, ids: one, why: nodes are for it, source: a page}\n"
    append(SITE, f"{facts}job: {{account: required}}\n")(project / "defs")
    monkeypatch.delenv("SBATCH_ACCOUNT", raising=False)
    words = ["here", "small", "--set=tool.count=3", "--output", str(project / "my out")]
    line = (
        "in a job: SBATCH_ACCOUNT=PROJECT sifwright build here small --set=tool.count=3"
        f" '--output={project}/my out' --submit"
    )
    for command in ("check", "build"):
        result = run_cli("--project", project, command, *words)
        assert result.out.splitlines()[1] == line
    # In a job of Slurm, and in one of 'flux batch' (0.88.0).
    for name in ("SLURM_JOB_ID", "FLUX_ENCLOSING_ID"):
        with monkeypatch.context() as job:
            job.setenv(name, "7")
            assert "--submit" not in run_cli("--project", project, "check", *words).out


@pytest.mark.parametrize(("name", "good"), [("kdreg2", False), ("memhooks", True)])
def test_check_goes_on_with_warnings(project: Path, run_cli: Cli, name: str, *, good: bool) -> None:
    _spoil(project, name, good=good)
    result = run_cli("--project", project, "check", "here")
    assert (result.code, result.err) == (0, "")
    assert result.out.startswith("ready: ")


@pytest.mark.parametrize("name", REFUSED)
def test_build_says_them_and_builds(project: Path, run_cli: Cli, name: str) -> None:
    """Keep the build's own status and message."""
    _spoil(project, name)
    result = run_cli("--project", project, "build", "here", "--json")
    results = [json.loads(line) for line in result.out.splitlines()]
    assert [event["event"] for event in results] == ["note"]
    assert results[0]["text"].startswith("lint: ")
    assert results[0]["text"].endswith(f"[{name}]")
    assert result.err.startswith("sifwright: nothing is built here")
    assert result.code == MachineError.exit_code


def test_build_says_nothing_of_warnings(project: Path, run_cli: Cli) -> None:
    _spoil(project, "kdreg2")
    assert run_cli("--project", project, "build", "here").out == ""
