"""Messages about a machine that lacks software; fake programs stand in for broken or old ones."""

from __future__ import annotations

import dataclasses
import os
from typing import TYPE_CHECKING

import pytest
from packaging.version import Version

from sifwright.catalog.load_catalog import load_catalog
from sifwright.errors import MachineError
from sifwright.host.engines import apptainer
from sifwright.make_image.check_machine import host_checks, preflight
from sifwright.plan.resolve import resolve
from sifwright.system import ids
from tests.conftest import ROOT

if TYPE_CHECKING:
    from pathlib import Path

    from sifwright.plan.model import Plan


@pytest.fixture
def plan() -> Plan:
    return resolve(load_catalog(ROOT / "defs", ROOT), "local", "pytorch", [])


@pytest.fixture
def in_a_user_namespace(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ids, "needs_fakeroot", lambda: True)
    monkeypatch.setenv(ids.VARIABLE, "many")


def _fake(folder: Path, name: str, version: str, help_text: str = "") -> None:
    script = f'#!/bin/sh\n[ "$1" = --version ] && echo "{version}" || echo "{help_text}"\n'
    (folder / name).write_text(script)
    (folder / name).chmod(0o755)


def _refuse(plan: Plan, output: Path) -> str:
    # Nothing is asked of the network.
    build = dataclasses.replace(preflight.cold_build(plan, output), first=len(plan.steps))
    with pytest.raises(MachineError) as caught:
        preflight.require(build, print)
    return str(caught.value)


def test_an_old_engine_and_an_old_mksquashfs(
    plan: Plan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Refuse those of RHEL 8."""
    _fake(tmp_path, "apptainer", "apptainer version 1.0.3-1.el8")
    _fake(tmp_path, "mksquashfs", "", help_text="mksquashfs version 4.3 (2014/05/12)")
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    message = _refuse(plan, tmp_path)
    assert f"{tmp_path}/apptainer: apptainer 1.0.3 is too old; apptainer 1.1.0 or" in message
    assert "install-apptainer" in message
    assert "mksquashfs 4.3 is too old" in message
    assert "Install squashfs-tools 4.4 or later." in message


def test_another_processor(plan: Plan, tmp_path: Path) -> None:
    other = "aarch64" if os.uname().machine == "x86_64" else "x86_64"
    site = dataclasses.replace(plan.site, processor=other)
    message = _refuse(dataclasses.replace(plan, site=site), tmp_path)
    assert f"site 'local' has {other} processors, this machine {os.uname().machine}" in message
    assert f"Build on a machine with {other} processors: docs/how-to/build-elsewhere.md" in message


def test_singularityce_is_an_engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _fake(tmp_path, "singularity", "singularity-ce version 4.2.1-noble")
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin")
    (tmp_path / "apptainer").write_text("#!/bin/sh\nexit 1\n")
    (tmp_path / "apptainer").chmod(0o755)
    program = apptainer.find()
    assert program is not None
    assert (program.product, str(program.version)) == ("singularity-ce", "4.2.1")
    assert not program.is_too_old
    command = program.build_command(
        tmp_path / "a.def", tmp_path / "a.sif", compression="zstd", binds=()
    )
    assert "--mksquashfs-args" not in command
    assert program.compression("zstd") == "gzip"


def test_an_apptainer_without_zstd_runs_no_steps_on_layers_of_it(plan: Plan) -> None:
    """Build at once and pack with gzip: up to 1.3.6 it calls such layers corrupted."""
    program = apptainer.find()
    assert program is not None
    old = dataclasses.replace(program, version=Version("1.3.6"), takes_squashfs_arguments=False)
    assert preflight.why_not_stepwise(old, plan) == "apptainer 1.3.6 opens no squashfs of zstd"
    gzip = dataclasses.replace(plan, site=dataclasses.replace(plan.site, compression="gzip"))
    assert "zstd" not in preflight.why_not_stepwise(old, gzip)


@pytest.mark.usefixtures("in_a_user_namespace")
def test_what_an_ordinary_user_lacks(
    plan: Plan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, limit = tmp_path / "subuid", tmp_path / "max_user_namespaces"
    file.write_text("somebody:100000:65536\n")
    limit.write_text("0\n")
    monkeypatch.setattr(ids, "FILES", (file, tmp_path / "missing"))
    monkeypatch.setattr(host_checks, "FUSE", tmp_path / "fuse")
    monkeypatch.setattr(host_checks, "USER_NAMESPACES", limit)
    monkeypatch.setattr(host_checks, "_file_system", lambda _: "lustre")
    message = _refuse(plan, tmp_path)
    for text in (
        *(f"{file}: user '", f"{tmp_path}/missing: user '"),
        "sudo usermod --add-subuids 165536-231071 --add-subgids 165536-231071",
        f"{tmp_path}/fuse: does not exist",
        f"{limit}: user namespaces are switched off",
        "it is on lustre, which does not know subordinate ids",
    ):
        assert text in message


@pytest.mark.usefixtures("in_a_user_namespace")
def test_a_site_without_builds_comes_before_an_administrators_advice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Show the message for users of LUMI; a site that gives users ids gets the advice alone."""
    monkeypatch.setattr(ids, "FILES", (tmp_path / "missing",))
    catalog = load_catalog(ROOT / "defs", ROOT)
    lumi = resolve(catalog, "lumi", "pytorch", [])
    first, *others = host_checks.problems(lumi)
    assert "site 'lumi' gives users no more there: fakeroot and" in first.what
    assert "docs/how-to/build-elsewhere.md" in first.fix
    assert any("sudo usermod" in problem.fix for problem in others)
    isambard = dataclasses.replace(lumi, site=catalog.sites["isambard-ai"])
    assert not any("cannot mend" in item.what for item in host_checks.problems(isambard))


def test_the_file_system_of_a_folder(tmp_path: Path) -> None:
    assert host_checks._file_system(tmp_path / "not" / "there") != ""  # noqa: SLF001
    assert host_checks._file_system(tmp_path.__class__("/proc/self")) == "proc"  # noqa: SLF001


def test_one_id_is_not_enough(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "subuid"
    file.write_text(f"{os.geteuid()}:100000:1\n")
    monkeypatch.setattr(ids, "FILES", (file, file))
    assert ids.subordinate_ids() is None
    file.write_text(f"{os.geteuid()}:100000:1\n{os.geteuid()}:200000:65536\n")
    assert ids.subordinate_ids() == (200000, 200000, 65536)


def test_singularity_3_is_too_old(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _fake(tmp_path, "singularity", "singularity version 3.8.7")
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin")
    monkeypatch.setattr("shutil.which", lambda name, **_: f"{tmp_path}/{name}")
    program = apptainer.find()
    assert program is not None
    assert program.is_too_old
