"""Causes of failed steps: the message names them where the engine's own words hide them."""

from pathlib import Path

import pytest

from sifwright.errors import BuildError, Problem
from sifwright.make_image.pack_layers.pack import PackOptions, pack
from sifwright.make_image.resolve_request.output_parser import OutputParser
from sifwright.system.progress import QuietProgress, Timer

LOG = "Whole log: build.log"


def _problem(*lines: str) -> Problem:
    watcher = OutputParser(timer=Timer(QuietProgress()), fix=LOG)
    for line in lines:
        watcher(line)
    return watcher.problem("apptainer failed")


def test_a_package_that_needs_another_id_is_named() -> None:
    problem = _problem(
        "dpkg: error processing package dbus (--configure):",
        " installed dbus package post-installation script subprocess returned error exit status 1",
        "sifwright: one id: chown wanted 101",
    )
    assert problem.fix.startswith("package 'dbus', 'chown' wanted id 101, which this build with")
    assert "leave it out, or build with subordinate ids" in problem.fix
    assert problem.fix.endswith(LOG)


def test_a_package_that_fails_for_another_reason_is_not_blamed_on_ids() -> None:
    assert _problem("dpkg: error processing package dbus (--configure):").fix == LOG


@pytest.mark.parametrize(
    "line",
    [
        "FATAL:   container creation failed: image prohibited by ECL",
        "FATAL:   container creation failed: while checking container image with ECL: no signature",
    ],
)
def test_a_refusal_by_the_control_list_is_no_broken_image(line: str) -> None:
    problem = _problem(line)
    assert "execution control list (ecl.toml) forbids this SIF" in problem.what
    assert "--sign" in problem.fix


def test_a_program_that_a_signal_ended_is_no_lack_of_space(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Name the log that stays, too."""
    program = tmp_path / "bin" / "mksquashfs"
    program.parent.mkdir()
    program.write_text('#!/bin/sh\necho half >"$2"\nkill -s SEGV $$\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:/usr/bin:/bin")
    for name in ("tree", "into"):
        (tmp_path / name).mkdir()
    how = PackOptions(compression="gzip", log=tmp_path / "private.log", fix=LOG)
    with pytest.raises(BuildError) as caught:
        pack(tmp_path / "tree", tmp_path / "into", how)
    (problem,) = caught.value.problems
    assert problem.what == "mksquashfs was ended by SIGSEGV"
    assert problem.fix == f"Update the program, or look for a lack of memory (dmesg). {LOG}"
