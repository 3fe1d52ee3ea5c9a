"""Apptainer or SingularityCE: find it, build a definition file with it, test a SIF with it."""

from __future__ import annotations

import os
import re
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from packaging.version import InvalidVersion, Version

from sifwright import runner

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["MINIMUM", "Apptainer", "find", "lacks_capabilities"]

# The first release whose `build` passes arguments to mksquashfs (CHANGELOG of Apptainer 1.4.0).
MINIMUM = Version("1.4.0")
ZSTD_LEVEL = 9
# mksquashfs takes a quarter of the machine's memory for its queues; on the image of site local,
# 256 MB gave the same file as fast, at a peak of 192 MB instead of 1508 MB.
QUEUE_MEMORY = "256M"


@dataclass(frozen=True, kw_only=True, slots=True)
class Apptainer:
    """An installed engine: its program, and the version it reports."""

    program: str
    version: Version

    @property
    def name(self) -> str:
        return Path(self.program).name

    def build_command(
        self, definition: Path, sif: Path, *, compression: str, binds: Sequence[str]
    ) -> list[str]:
        """Build without running %test: the tests run in the finished SIF, see `test_command`."""
        return [
            self.program,
            "build",
            *(["--fakeroot"] if needs_fakeroot() else []),
            "--notest",
            # Not for the file, which is new: without it, labels of a base image win over ours.
            "--force",
            *(word for bind in binds for word in ("--bind", bind)),
            "--mksquashfs-args",
            mksquashfs_arguments(compression),
            str(sif),
            str(definition),
        ]

    def test_command(self, sif: Path) -> list[str]:
        """Run %test in the SIF, without the user's home, environment and other mounts."""
        userns = ["--userns"] if os.geteuid() == 0 and lacks_capabilities() else []
        return [self.program, "test", "--containall", "--no-home", *userns, str(sif)]


def find() -> Apptainer | None:
    """The first engine on PATH, if any."""
    for name in ("apptainer", "singularity"):
        program = shutil.which(name)
        if program is None:
            continue
        answer = runner.capture([program, "--version"])
        match = re.search(r"version (\S+)", answer.stdout)
        if answer.returncode == 0 and match:
            return Apptainer(program=program, version=_version(match.group(1)))
    return None


def _version(text: str) -> Version:
    try:
        return Version(re.match(r"[0-9.]*[0-9]", text)[0])  # type: ignore[index]
    except (InvalidVersion, TypeError):
        return Version("0")


def mksquashfs_arguments(compression: str) -> str:
    """Compress on all cores this process may use; zstd 9 gave the smallest image per second."""
    resources = f"-processors {len(os.sched_getaffinity(0))} -mem {QUEUE_MEMORY}"
    if compression == "zstd":
        return f"-comp zstd -Xcompression-level {ZSTD_LEVEL} {resources}"
    return f"-comp gzip {resources}"


def needs_fakeroot() -> bool:
    """Only a root with every capability can run %post without a user namespace."""
    return os.geteuid() != 0 or lacks_capabilities()


def lacks_capabilities() -> bool:
    """Whether this process lacks a capability the kernel knows, as root in a container may."""
    try:
        status = Path("/proc/self/status").read_text()
        last = int(Path("/proc/sys/kernel/cap_last_cap").read_text())
    except OSError:
        return True
    match = re.search(r"^CapEff:\s*([0-9a-f]+)$", status, re.MULTILINE)
    return match is None or int(match.group(1), 16) != (1 << (last + 1)) - 1
