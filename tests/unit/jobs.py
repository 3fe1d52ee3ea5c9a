"""Job scripts run by the real bash, with launchers and engines that record and do nothing else."""

import os
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from sifwright.catalog.model import Site
from sifwright.launch.job import decide_job
from sifwright.launch.jobscript import render_jobscript
from sifwright.launch.model import JobRequest
from tests.unit.conftest import program

RECORDED = ("srun", "mpiexec", "mpirun", "flux", "apptainer", "singularity")
# In its own process: what `env` prints is what the program was given.
RECORDER = """#!/bin/bash
printf '%s\\0' "$@" >"$RECORD/${0##*/}.argv"
env -0 >"$RECORD/${0##*/}.env"
exit "${STATUS:-0}"
"""
MODULE = '() { printf \'%s\\n\' "module $*" >>"$RECORD/modules"; }'


@dataclass(frozen=True, kw_only=True)
class Ran:
    """The result of a job script; `argv` and `env` are those of its last program."""

    code: int
    out: str
    err: str
    argv: list[str]
    env: dict[str, str]
    modules: list[str]


class Bench:
    """A PATH with recorders before the real programs, and a folder that must stay empty."""

    def __init__(self, folder: Path) -> None:
        self.record, self.empty, self.bin = (folder / name for name in ("record", "empty", "bin"))
        self.nasty, self.venv = folder / "it's $(here) *", folder / "venv"
        for path in (self.record, self.empty, self.bin, self.nasty, self.venv / "bin"):
            path.mkdir(parents=True)
        self.sif = self.nasty / "image.sif"
        self.sif.touch()
        (self.nasty / "conda-python-distributed").touch()
        (self.venv / "bin" / "activate").touch()
        self.nodes = folder / "nodes"
        self.nodes.write_text("deg1.example.org\ndeg1.example.org\ndeg2.example.org\n")
        for name in RECORDED:
            (self.bin / name).write_text(RECORDER)
            (self.bin / name).chmod(0o755)

    def render(self, site: Site, *arguments: str, **asked: object) -> str:
        """Render the script of a job with these values of `JobRequest`."""
        values = {"nodes": 2, "arguments": arguments or ("train.py",)} | self.places()
        return render_jobscript(decide_job(site, JobRequest(**(values | asked))))  # type: ignore[arg-type]

    def places(self) -> dict[str, object]:
        """Make the folders of a job's image and run scripts, whose names need quoting."""
        return {"built_sif": str(self.sif), "run_scripts": str(self.nasty)}

    def run(self, text: str, *, launcher: str = "srun", **env: str) -> Ran:
        """Run a script; the folder it runs in must be empty afterwards too."""
        done = subprocess.run(
            [program("bash"), "/dev/stdin"],
            input=text.encode(),
            env={
                "PATH": f"{self.bin}:/usr/bin:/bin",
                "RECORD": str(self.record),
                "USER": "ada",
                "PBS_O_WORKDIR": str(self.empty),
                "PBS_NODEFILE": str(self.nodes),
                "BASH_FUNC_module%%": MODULE,
                **env,
            },
            cwd=self.empty,
            check=False,
            capture_output=True,
        )
        assert list(self.empty.iterdir()) == [], "a value has run something"
        return Ran(
            code=done.returncode,
            out=os.fsdecode(done.stdout),
            err=os.fsdecode(done.stderr),
            argv=self._strings(f"{launcher}.argv"),
            env=dict(self._pairs(f"{launcher}.env")),
            modules=self._lines("modules"),
        )

    def _strings(self, name: str) -> list[str]:
        path = self.record / name
        result = os.fsdecode(path.read_bytes()).split("\0")[:-1] if path.exists() else []
        path.unlink(missing_ok=True)
        return result

    def _pairs(self, name: str) -> Iterator[tuple[str, str]]:
        for item in self._strings(name):
            key, _, value = item.partition("=")
            yield key, value

    def _lines(self, name: str) -> list[str]:
        path = self.record / name
        lines = path.read_text().splitlines() if path.exists() else []
        path.unlink(missing_ok=True)
        return lines


def script_arguments(argv: list[str]) -> list[str]:
    """Return the words after the run script on a command line."""
    last = next(n for n, word in enumerate(argv) if word.endswith("conda-python-distributed"))
    return argv[last + 1 :]


def directives(text: str) -> Mapping[str, str]:
    """Return long options of the script's #SBATCH lines."""
    lines = [line for line in text.splitlines() if line.startswith("#SBATCH --")]
    pairs = (line.removeprefix("#SBATCH --").partition("=") for line in lines)
    return {key: value for key, _, value in pairs}
