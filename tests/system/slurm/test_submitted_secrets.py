"""Passwords of the submitting machine: jobs use them on the nodes, and nobody else sees them."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from tests.conftest import run
from tests.servers import sha256
from tests.system.slurm.layout import INTERFACES, LOGIN_NUMBER, address
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
    from collections.abc import Iterator
    from pathlib import Path

    from tests.system.slurm.slurm import Cluster

CANARIES = (SECRET, "canary-of-the-login", "canary-of-netrc", "canary-of-a-secret")
NOBODY = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--")
# Programs that fetch-source calls.
PROGRAMS = ("curl", "sed", "awk", "mktemp", "dirname", "sha256sum", "tail", "touch")
SOURCE = "https://files.example/{name}-{{version}}"
HERE = address(LOGIN_NUMBER)


@pytest.fixture
def mirror(slurm: Cluster, tmp_path: Path) -> Iterator[tuple[str, Path]]:
    """Yield the address of a mirror with its own certificate, and the log of its clients."""
    result = ("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=mirror", "-days", "2")
    files = ("-keyout", tmp_path / "key", "-out", tmp_path / "certificate")
    assert run(["openssl", *result, "-addext", f"subjectAltName=IP:{HERE}", *files]).returncode == 0
    (tmp_path / "login").write_text(f"user:{CANARIES[1]}")
    log = tmp_path / "log"
    program = f'exec python3 "{slurm.programs}/mirror.py" "{tmp_path}" >"{log}"'
    with slurm.start("bash", "-c", program):
        assert wait_for(lambda: log.exists() and log.read_text().endswith("\n"))
        yield f"https://user:{CANARIES[1]}@{HERE}:{log.read_text().strip()}", log


@pytest.fixture
def project(slurm: Cluster, engine: str, mirror: tuple[str, Path], tmp_path: Path) -> Submitted:
    """Make a project whose sources only the mirror has."""
    toy_project = make_project(slurm, engine, tmp_path.name, *PROGRAMS)
    (tmp_path / "mirrors.yaml").write_text(
        json.dumps({"archives": {"https://files.example": mirror[0]}})
    )
    (tmp_path / "netrc").write_text(f"machine x.example login user password {CANARIES[2]}\n")
    (tmp_path / "secret").write_text(CANARIES[3])
    settings = {
        "SIFWRIGHT_MIRRORS": str(tmp_path / "mirrors.yaml"),
        "SSL_CERT_FILE": str(tmp_path / "certificate"),
        "NETRC": str(tmp_path / "netrc"),
        "no_proxy": HERE,
    }
    return replace(toy_project, environment=toy_project.environment | settings)


def fetching_layer(
    project: Submitted, name: str, content: bytes, install: str, **header: object
) -> None:
    """Add a layer that fetches a file of its name."""
    version = {"type": "string", "default": "1.0", "description": "a version"}
    script = f"fetch-source {name} {name}\n{install}\n"
    project.toy.layer(name, script, header={"options": {"version": version}, **header})
    pins = {"archive": SOURCE.format(name=name), "versions": {"1.0": {"sha256": sha256(content)}}}
    path = project.toy.folder / "defs" / "layers" / name / "pins.yaml"
    path.write_text(json.dumps({name: pins}))


def seen_by_others(project: Submitted) -> list[str]:
    """Return files of processes and of the cluster with a canary that every user can read."""
    words = ("grep", "-rlasF", "--devices=skip", "--file=-")
    script = f'{" ".join(words)} /proc/[0-9]*/{{cmdline,environ}} "{project.slurm.files.folder}"'
    return run([*NOBODY, "bash", "-c", script], input="\n".join(CANARIES)).stdout.splitlines()


def collect_output(project: Submitted, number: str) -> str:
    """Return the output of Slurm and the program about a job, and its files beside its settings."""
    slurm, build = project.slurm, project.toy.folder / "build"
    texts = [
        slurm.run("scontrol", "show", "job", "-dd", number).stdout,
        slurm.run("scontrol", "write", "batch_script", number, "-").stdout,
        project.sifwright("status", "--json").stdout,
        project.sifwright("status").stdout,
    ]
    files = [path for path in build.rglob("*") if path.is_file() and "settings" not in path.parts]
    assert any(path.name.endswith(".job.log") for path in files)
    texts += [path.read_text(errors="replace") for path in files]
    return "\n".join([*texts, slurm.logs()])


def test_no_password_is_seen_by_others(project: Submitted, mirror: tuple[str, Path]) -> None:
    """Look during a step that has used the mirror, and after one that failed because of it."""
    install = f'[[ $(<"$SIFWRIGHT_BUILD/secrets/token") == {CANARIES[3][:-1]}? ]]\n{PAUSE} || true'
    fetching_layer(project, "word", b"a word\n", install, secrets=["token"])
    fetching_layer(project, "other", b"another word", "true")
    project.image("a", "word", "other")
    secret = f"--secret=id=token,src={mirror[1].with_name('secret')}"
    submitted = project.sifwright("build", "local", "a", *SHORT, "--verbose", secret)
    wait_for_pause(project)
    (job,) = project.jobs()
    assert job["step"] == "word"
    running = collect_output(project, job["id"])
    assert seen_by_others(project) == []
    end_pauses(project.slurm)
    project.slurm.wait(int(job["id"]))
    (job,) = project.jobs()
    assert job["state"] == "failed"
    failed = collect_output(project, job["id"])
    assert "source 'other' of layer 'other' is not what was expected" in failed
    assert seen_by_others(project) == []
    texts = submitted.stdout + submitted.stderr + running + failed
    assert [canary for canary in CANARIES if canary in texts] == []
    # The mirror has answered a node, which knew its certificate and the login.
    asked = [line.split() for line in mirror[1].read_text().splitlines()[1:]]
    assert {client.rpartition(".")[0] for client, *_ in asked} == {INTERFACES["eth0"]}
    assert HERE not in {client for client, *_ in asked}
    assert len(project.results) == 2
