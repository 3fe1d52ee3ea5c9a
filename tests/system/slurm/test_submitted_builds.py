"""Images that jobs of the real Slurm build: one prefix for all, and what is done stays done."""

from __future__ import annotations

import json
import re
import shlex
import stat
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.system.native.project import make_project as make_native_project
from tests.system.slurm.layout import NODES
from tests.system.slurm.submitted import (
    PAUSE,
    SECRET,
    SHORT,
    Submitted,
    end_pauses,
    make_project,
    wait_for_pause,
)
from tests.waiting import wait_for

if TYPE_CHECKING:
    from tests.system.slurm.slurm import Cluster


@pytest.fixture
def project(slurm: Cluster, engine: str, tmp_path: Path) -> Submitted:
    return make_project(slurm, engine, tmp_path.name)


def two_images(project: Submitted) -> tuple[str, ...]:
    """Make two images that begin alike; return the command that submits them."""
    for name in ("first", "second", "third"):
        project.toy.layer(name, f"echo {name} on $HOSTNAME >/{name}\n")
    project.image("a", "first", "second")
    project.image("b", "first", "third")
    return ("build", "local", "a,b", *SHORT)


def test_jobs_that_wait_and_are_cancelled(project: Submitted) -> None:
    matrix = two_images(project)
    held = project.sifwright(*matrix, "--directive=hold")
    assert len(re.findall(r"^submitted: job", held.stdout, re.MULTILINE)) == 3, held.stdout
    for folder in project.folders():
        environment = folder / "settings" / "environment"
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        assert stat.S_IMODE(environment.stat().st_mode) == 0o600
        assert SECRET in environment.read_text()
        assert SECRET not in (folder / "job.sh").read_text()
    assert SECRET not in project.slurm.run("scontrol", "show", "job", "--details").stdout
    again = project.sifwright(*matrix)
    assert "submitted" not in again.stdout
    assert len(re.findall(r"^queued already: job", again.stdout, re.MULTILINE)) == 3
    project.sifwright("cancel")
    assert {job["state"] for job in project.status().values()} == {"cancelled"}
    assert not [folder for folder in project.folders() if (folder / "settings").exists()]


def test_jobs_that_are_submitted_by_hand(project: Submitted, engine: str) -> None:
    """Use the partition that the site has for builds."""
    matrix = two_images(project)
    builds = {"where": "login", "why": "it is a test", "source": "this test"}
    project.site(builds={**builds, "directives": {"partition": "short"}})
    printed = project.sifwright(*matrix, "--submit=print")
    assert "no job was submitted" in project.sifwright("status").stdout
    assert not project.slurm.run("squeue", "--noheader").stdout
    _, _, commands = printed.stdout.partition("nothing is submitted; by hand:\n")
    ids = project.slurm.run("bash", "-c", f"{commands}\necho $job1").stdout.split()
    ended = {number: project.slurm.wait(int(number)) for number in ids}
    assert {job.state for job in ended.values()} == {"COMPLETED"}, printed.stdout
    assert {project.slurm.fields(int(number))["Partition"] for number in ids} == {"short"}
    assert "second on nid" in project.read(engine, "local/a", "/second")
    assert not [folder for folder in project.folders() if (folder / "settings").exists()]


def test_a_matrix_of_sites_and_values(project: Submitted, engine: str) -> None:
    """Run the steps before the option once; each image gets a folder of its own."""
    project.toy.layer("first", "echo first on $HOSTNAME >/first\n")
    version = {"type": "string", "default": "1", "description": "a version"}
    header = {"options": {"version": version}}
    project.toy.layer("tool", 'echo "$OPT_VERSION" >/tool\n', header=header)
    project.image("a", "first", "tool")
    sites = project.toy.folder / "defs" / "sites"
    (sites / "other.yaml").write_text((sites / "local.yaml").read_text())
    words = ("build", "local,other", "a", "--matrix=tool.version=1,2.0", *SHORT)
    images = [f"{site}/a@{value}" for site in ("local", "other") for value in ("1", "2.0")]
    project.sifwright(*words, "--directive=hold")
    assert {name for job in project.jobs() for name in job["images"]} == set(images)
    cancelled = project.sifwright("cancel").stdout
    assert [image for image in images if f"({image})" in cancelled] == images
    done = project.sifwright(*words, "--wait")
    assert {job["state"] for job in project.jobs()} == {"done"}, done.stdout
    assert len(project.results) == 4
    assert [project.read(engine, image, "/tool") for image in images] == ["1\n", "2.0\n"] * 2
    (first,) = {project.read(engine, image, "/first") for image in images}
    assert first.startswith("first on nid")
    built = (project.toy.folder / "build").glob("*/*/image.sif")
    folders = {str(path.parent.relative_to(project.toy.folder / "build")) for path in built}
    assert folders == set(images)
    assert not [folder for folder in project.folders() if (folder / "settings").exists()]
    assert "no job is needed" in project.sifwright(*words).stdout


def test_a_job_that_one_watches(project: Submitted) -> None:
    """Watch on a terminal, from the step that runs to the end."""
    project.toy.layer("slow", f"echo is slow; {PAUSE} || true\n")
    project.image("a", "slow")
    project.sifwright("build", "local", "a", *SHORT, "--verbose")
    wait_for_pause(project)

    def is_slow() -> bool:
        (job,) = project.jobs()
        return job["step"] == "slow" and "is slow" in job["last_line"]

    assert wait_for(is_slow), project.jobs()
    program = [sys.executable, "-P", "-m", "sifwright", "status", "--watch"]
    watch = shlex.join([*program, f"--output={project.toy.folder / 'build'}"])
    screen = project.toy.folder / "screen"
    screen.touch()
    on_terminal = ("bash", "-c", 'exec script -qefc "$0" "$1" >/dev/null')
    with project.slurm.start(*on_terminal, f"stty cols 200; {watch}", screen) as watching:
        assert wait_for(lambda: watching.process.poll() or "job.log" in screen.read_text())
        assert re.search(r"running.* slow +[0-9]+ .*is slow", screen.read_text())
        end_pauses(project.slurm)
        assert watching.finish().returncode == 0
    assert re.search("done.* base-local, slow, image", screen.read_text())
    (job,) = project.jobs()
    assert (job["state"], job["step"]) == ("done", "")
    assert job["last_line"].startswith("try it:")


def test_a_node_that_does_not_see_a_folder(project: Submitted) -> None:
    """End before the first step with a message; a node with the folder does the same job."""
    project.toy.layer("first", "echo first >/first\n")
    project.image("a", "first")
    folder, (blind, seeing, *_) = project.toy.folder / "cache", NODES
    folder.mkdir(exist_ok=True)
    words = ("build", "local", "a", *SHORT, "--wait")
    project.slurm.run("mount", "-t", "tmpfs", "tmpfs", folder, host=blind)
    try:
        refused = project.sifwright(*words, f"--directive=nodelist={blind}", check=False)
        assert refused.returncode == 6, refused.stdout
        (job,) = project.status().values()
        message = f"sifwright: step cache {folder}: node {blind} does not see this folder"
        assert Path(job["log"]).read_text().startswith(message)
        assert not project.results
        project.sifwright(*words, f"--directive=nodelist={seeing}")
        assert len(project.results) == 2
    finally:
        project.slurm.run("umount", folder, host=blind)


def test_an_installation_by_a_job(slurm: Cluster, tmp_path: Path) -> None:
    folder = slurm.files.shared / tmp_path.name
    folder.mkdir()
    native = make_native_project(folder)
    native.add("last")
    native.image("last")
    program = [sys.executable, "-P", "-m", "sifwright"]
    options, install = ("--prefix", native.prefix), native.words(*SHORT)
    slurm.run(*program, *install, "--directive=hold", cwd=folder)
    refused = slurm.run(*program, "uninstall", native.prefix, check=False)
    assert "jobs wait or run" in refused.stderr
    assert "cancelled: job" in slurm.run(*program, "cancel", *options).stdout
    done = slurm.run(*program, *install, "--wait", cwd=folder)
    assert "submitted: job" in done.stdout
    assert native.current.startswith("second\n")
    assert "no job is needed" in slurm.run(*program, *install, cwd=folder).stdout
    (job,) = json.loads(slurm.run(*program, "status", *options, "--json").stdout)
    assert (job["state"], job["log"]) == ("done", f"{native.prefix}.jobs/install.job.log")
    assert not (folder / "build").exists()
    slurm.run(*program, "uninstall", native.prefix)
    assert {path.name for path in folder.iterdir()} == {"project"}
