"""Apptainer or SingularityCE: find it, build a definition file with it, test a SIF with it."""

import os
import re
import shutil
import stat
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from packaging.version import Version

from sifwright.system import ids, processes

# Oldest version of each product, as `--version` names it. Apptainer 1.1.0 is the first that builds
# without any setuid program (its CHANGELOG). Our tests do not run SingularityCE
# (docs/reference/sif-layouts.md has what was tried): 4.0 is the oldest still described in its
# documentation. Anything else, such as Singularity 3, is too old.
MINIMUM = {"apptainer": Version("1.1.0"), "singularity-ce": Version("4.0.0")}
# Versions that close a hole of the setuid program, by product. Sources: release notes of
# apptainer/apptainer v1.5.1 and sylabs/singularity v4.4.2.
_LIMITED = "'limit container paths' also allows folders with names that begin alike"
HOLES = {
    "apptainer": [(Version("1.5.1"), f"CVE-2026-48785: {_LIMITED}")],
    "singularity-ce": [(Version("4.4.2"), f"CVE-2026-47215: {_LIMITED}")],
}
ZSTD_LEVEL = 9
# Memory of mksquashfs for its queues; its default is a quarter of the machine's. With 256 MB, it
# packed the image of site local as fast. The peak was 192 MB instead of 1508 MB.
QUEUE_MEMORY = "256M"
_HOSTS = "/etc/hosts"
# The engine's own settings, which say where it keeps things and how it logs in.
_OWN = {"CACHEDIR", "CONFIGDIR", "TMPDIR", "DOCKER_USERNAME", "DOCKER_PASSWORD", "NOHTTPS"}


@dataclass(frozen=True, kw_only=True, slots=True)
class Apptainer:
    """An installed engine: its program, and what it says of itself.

    `takes_squashfs_arguments` is false before Apptainer 1.4.0: SIFs are then compressed with gzip.
    """

    program: str
    product: str
    version: Version
    takes_squashfs_arguments: bool

    @property
    def is_too_old(self) -> bool:
        return self.product not in MINIMUM or self.version < MINIMUM[self.product]

    def compression(self, wanted: str) -> str:
        """Return the site's compression, or the one that this engine can open."""
        return wanted if self.takes_squashfs_arguments else "gzip"

    def build_command(
        self, definition: Path, sif: Path, *, compression: str, binds: Sequence[str]
    ) -> list[str]:
        """Build without running %test: the tests run in the finished SIF, see `test_command`."""
        # --force is not for the file, which is new: without it, labels of a base win over ours.
        return [
            *(self.program, "build", *_fakeroot(), "--notest", "--force", *_bound(binds)),
            *(*self._squashfs_arguments(compression), str(sif), str(definition)),
        ]

    def sandbox_command(self, definition: Path, folder: Path, *, binds: Sequence[str]) -> list[str]:
        """Build a folder with the image's tree, as `build_command` does a SIF."""
        return [
            *(self.program, "build", *_fakeroot(), "--notest", "--force", "--sandbox"),
            *_bound(binds),
            *(str(folder), str(definition)),
        ]

    def step_command(
        self, layers: Sequence[Path], upper: Path, script: str, *, binds: Sequence[str]
    ) -> list[str]:
        """Run a script of the image as %post is run, on squashfs files stacked on the first.

        The script's changes go to `upper`/upper.
        """
        base, *others = layers
        overlays = [*(f"--overlay={layer}:ro" for layer in others), f"--overlay={upper}"]
        return [*self._exec(binds), "--bind", _HOSTS, *overlays, str(base), "/bin/sh", script]

    def inside_command(self, tree: Path, script: str, *, binds: Sequence[str]) -> list[str]:
        """Return the same command for a tree, which it changes."""
        # Nothing is made there to bind to, unlike on an overlay.
        hosts = ["--bind", _HOSTS] if (tree / _HOSTS.lstrip("/")).is_file() else []
        return [*self._exec(binds), *hosts, "--writable", str(tree), "/bin/sh", script]

    def _exec(self, binds: Sequence[str]) -> list[str]:
        """Return the command that gives a step the machine's view of %post, except /tmp."""
        return [
            *(self.program, "exec", *_fakeroot(), "--cleanenv", "--no-home", "--pwd", "/"),
            *("--no-mount", "bind-paths", "--no-mount", "cwd"),
            # Keep the host's /tmp out; a step's own is bound if the tree has a /tmp.
            *("--no-mount", "tmp"),
            # Processes that a step leaves running end with it. They would hold our end of the log
            # open, and write into the tree while it is packed.
            "--pid",
            *_bound(binds),
        ]

    def test_command(self, sif: Path, layers: Sequence[str] | None = None) -> list[str]:
        """Run %test in the SIF, without the user's home, environment and other mounts.

        `layers` are the layers to test, instead of all.
        """
        only = [] if layers is None else ["--env", f"SIFWRIGHT_TESTS={' '.join(layers)}"]
        userns = ["--userns"] if os.geteuid() == 0 and ids.lacks_capabilities() else []
        return [self.program, "test", "--containall", "--no-home", *userns, *only, str(sif)]

    def _squashfs_arguments(self, compression: str) -> list[str]:
        """Compress on all cores this process may use; zstd 9 was smallest for its time."""
        if not self.takes_squashfs_arguments:
            return []
        level = f" -Xcompression-level {ZSTD_LEVEL}" if compression == "zstd" else ""
        resources = f"-processors {len(os.sched_getaffinity(0))} -mem {QUEUE_MEMORY}"
        return ["--mksquashfs-args", f"-comp {compression}{level} {resources}"]


def environment() -> dict[str, str]:
    """Return this machine's environment without variables that would change the image's commands.

    APPTAINERENV_X, APPTAINER_BIND and others reach a container with any options (tried on 1.4.5).
    A site's modules set them, and a cached result must not depend on them.
    """
    pattern = r"(?:APPTAINER|SINGULARITY)(?:_(\w+)|ENV_)"
    ours = {name: re.match(pattern, name) for name in os.environ}
    return {name: os.environ[name] for name, match in ours.items() if not match or match[1] in _OWN}


def find() -> Apptainer | None:
    """Return the first engine on PATH that starts, if any."""
    programs = (shutil.which(name) for name in ("apptainer", "singularity"))
    engines = (_ask(program) for program in programs if program)
    return next((engine for engine in engines if engine), None)


def _ask(program: str) -> Apptainer | None:
    """Read `apptainer version 1.4.5` or `singularity-ce version 4.2.1-noble`."""
    answer = processes.capture([program, "--version"])
    match = re.match(r"(\S+) version (\d+(\.\d+)*)", answer.stdout)
    if answer.returncode != 0 or match is None:
        return None
    help_text = processes.capture([program, "build", "--help"]).stdout
    return Apptainer(
        program=program,
        product=match.group(1),
        version=Version(match.group(2)),
        takes_squashfs_arguments="--mksquashfs-args" in help_text,
    )


def _fakeroot() -> list[str]:
    # A command with one id runs as root of a namespace already (user_namespace.py).
    return ["--fakeroot"] if ids.needs_fakeroot() and not ids.are_one() else []


def _bound(binds: Sequence[str]) -> list[str]:
    return [word for bind in binds for word in ("--bind", bind)]


@cache
def allows_overlays(engine: Apptainer) -> bool:
    """Tell whether squashfs files can be stacked; true if the engine does not say.

    If not, `exec --overlay` refuses, and a layered SIF starts with only its first partition,
    without a message (tried on 1.4.5).
    """
    command = [engine.program, "config", "global", "--get", "enable overlay"]
    return processes.capture(command).stdout.strip() != "no"


def is_setuid(engine: Apptainer) -> bool:
    """Tell whether the setuid program is installed, which packages leave out or have apart."""
    folder = processes.capture([engine.program, "buildcfg", "LIBEXECDIR"]).stdout.strip()
    name = "apptainer" if engine.product == "apptainer" else "singularity"
    try:
        mode = Path(folder, name, "bin", "starter-suid").stat().st_mode
    except OSError:
        return False
    return bool(mode & stat.S_ISUID)


def has_control_list(engine: Apptainer) -> bool:
    """Tell whether the engine's execution control list (ecl.toml) is active.

    It holds where containers are set up by a setuid program, and for SIFs.
    """
    folder = processes.capture([engine.program, "buildcfg", "APPTAINER_CONFDIR"]).stdout.strip()
    try:
        return bool(tomllib.loads((Path(folder) / "ecl.toml").read_text("utf-8"))["activated"])
    except (OSError, ValueError, KeyError):
        return False
