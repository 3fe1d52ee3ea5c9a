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


NVCC = "host_config.h:110:2: error: #error -- unsupported GNU version! gcc versions later than 15"
# From good builds, and from pip and the linker about an error of others.
OTHER_ERRORS = [
    "fatal: not a git repository (or any of the parent directories): .git",
    "fatal: No names found, cannot describe anything.",
    "fatal: no tag exactly matches '93fa84ca'",
    "fatal: detected dubious ownership in repository at '/source'",
    "ERROR: Ignored the following yanked versions: 2.0.0",
    "ERROR: Could not find a version that satisfies the requirement torch==2.13.0+cu130",
    "ERROR: No matching distribution found for torch==2.13.0+cu130",
    "error: subprocess-exited-with-error",
    "error: metadata-generation-failed",
    "ERROR: pip's dependency resolver does not currently take into account all the packages",
    "collect2: error: ld returned 1 exit status",
    "  ERROR: Failed building wheel for apex",
    "ERROR: Failed to build 'apex' when building wheel",
    "g++ -Werror: yes",
]
TRACEBACK = [f'  File "setup.py", line {number}, in run' for number in range(30)]


@pytest.mark.parametrize(
    "line",
    [
        NVCC,
        "kernel.cu(7): error: identifier __half2float is undefined",
        "a.c:1:10: fatal error: nccl.h: No such file or directory",
        "nvcc fatal   : Unsupported gpu architecture 'compute_70'",
        "CMake Error at CMakeLists.txt:12 (message):",
        "configure: error: could not find libfabric",
        "lib.o: undefined reference to `fi_getinfo'",
        "/usr/bin/ld: cannot find -lnccl: No such file or directory",
        "fatal: couldn't find remote ref v9",
    ],
)
def test_the_first_error_is_named_before_the_last_lines(line: str) -> None:
    """Name it though harmless errors come before it, and a traceback follows."""
    begin = ["sifwright: begin apex", *OTHER_ERRORS]
    problem = _problem(*begin, line, "kernel.cu(9): error: another", *TRACEBACK)
    shown = problem.what.splitlines()
    assert shown[1:3] == [f"    | first error: {line}", "    | …"]
    assert len(shown) == 15


def test_an_error_of_an_earlier_step_or_in_the_last_lines_is_not_named_twice() -> None:
    lines = ("sifwright: begin nccl", NVCC, "sifwright: end nccl", "sifwright: begin apex")
    assert "first error" not in _problem(*lines, *TRACEBACK).what
    assert _problem("sifwright: begin apex", NVCC).what == f"apptainer failed\n    | {NVCC}"


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
