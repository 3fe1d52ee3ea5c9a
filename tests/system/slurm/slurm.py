"""Runs commands and jobs on the cluster of the tests. Nothing waits without a limit."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Self

from tests.conftest import DEFAULT_SIGNALS, ROOT
from tests.system.slurm.layout import LOGIN, NODES, Files
from tests.system.slurm.supervisor import READY
from tests.waiting import LIMIT_SECONDS, wait_for

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

DIE_WITH_US = ("setpriv", "--pdeathsig", "KILL", "--")
SEPARATE = ("unshare", "--net", "--mount", "--uts", "--")
ENTER = ("nsenter", "--net", "--mount", "--uts")
ENDED = {"COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "NODE_FAIL", "OUT_OF_MEMORY"}


@dataclass(frozen=True, kw_only=True)
class Job:
    """A batch job that has ended."""

    number: int
    state: str
    exit_code: str  # as Slurm writes it: status:signal
    output: str
    errors: str


@dataclass
class Running:
    """A command that was started; `finish` waits for it, the end of the `with` block kills it."""

    process: subprocess.Popen[str]

    def finish(self, timeout: float = LIMIT_SECONDS) -> subprocess.CompletedProcess[str]:
        output, errors = self.process.communicate(timeout=timeout)
        return subprocess.CompletedProcess(
            self.process.args, self.process.returncode, output, errors
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.communicate(timeout=LIMIT_SECONDS)


class Cluster:
    """A login host and three nodes, from `start` until `stop`."""

    def __init__(self) -> None:
        # Not in pytest's folders: munged's socket is for everybody. Containers see /tmp.
        self.files = Files(Path(tempfile.mkdtemp(prefix="sifwright-cluster-", dir="/tmp")))
        self.files.write()
        # The container sees the folder of the cluster, as it is below /tmp.
        self.programs = self.files.shared / "programs"
        shutil.copytree(ROOT / "tests" / "system" / "slurm" / "programs", self.programs)
        self.environment = {
            "PATH": "/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin",
            "HOME": str(self.files.shared),
            "LC_ALL": "C.UTF-8",
            "SLURM_CONF": str(self.files.slurm_conf),
            # Two mpirun that make /tmp/ompi.HOST.UID at the same moment end with "File exists".
            "OMPI_MCA_orte_tmpdir_base": str(self.files.shared),
        }
        self.supervisor = self._start_supervisor()

    def _start_supervisor(self) -> subprocess.Popen[str]:
        program = [sys.executable, "-m", "tests.system.slurm.supervisor", str(self.files.folder)]
        return subprocess.Popen(
            [*SEPARATE, *program],
            cwd=ROOT,
            env=self.environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,  # Ctrl-C is for us; the end of its input is for it
        )

    def wait_until_up(self) -> None:
        assert self.supervisor.stdout
        assert self.supervisor.stdout.readline() == f"{READY}\n", self.logs()
        self.files.pid(LOGIN).write_text(str(self.supervisor.pid))
        self.daemons = set(children(self.supervisor.pid))
        self.nodes = [int(self.files.pid(node).read_text()) for node in NODES]
        assert wait_for(self.is_idle), self.logs()

    def stop(self) -> None:
        try:
            self.supervisor.communicate(timeout=LIMIT_SECONDS)
        except subprocess.TimeoutExpired:
            self.supervisor.kill()
            raise
        finally:
            shutil.rmtree(self.files.folder, ignore_errors=True)

    def logs(self) -> str:
        """Return the last lines of every log, for a message."""
        logs = sorted((self.files.folder / "log").iterdir())
        return "\n".join(f"{log.name}:\n{log.read_text()[-2000:]}" for log in logs)

    # --- what runs on it ---------------------------------------------------------------------

    def is_idle(self) -> bool:
        words = ("--noheader", "--states=idle", "--format=%D", "--partition=all")
        nodes = self.run("sinfo", *words, check=False)
        return nodes.stdout.strip() == str(len(NODES))

    def job_processes(self) -> dict[int, str]:
        """Return the processes of jobs by id: descendants of the daemons, past ones included."""
        result = set(children(self.supervisor.pid)) - self.daemons
        for pid in (*result, *(slurmd for node in self.nodes for slurmd in children(node))):
            result |= set(descendants(pid))
        return {pid: command for pid in sorted(result) if (command := command_of(pid))}

    def cancel_everything(self) -> None:
        self.run("scancel", "--user=root")
        assert wait_for(self.is_idle), self.run("squeue").stdout

    # --- commands ----------------------------------------------------------------------------

    def start(
        self,
        *command: object,
        host: str = LOGIN,
        env: dict[str, str] | None = None,
        cwd: Path | None = None,
    ) -> Running:
        """Start a command on a host, with nothing in its environment but what is said here."""
        target = self.files.pid(host).read_text() if host != LOGIN else str(self.supervisor.pid)
        options = ["--target", target, f"--wdns={cwd or self.files.shared}"]
        process = subprocess.Popen(
            [*DEFAULT_SIGNALS, *DIE_WITH_US, *ENTER, *options, "--", *map(str, command)],
            env=self.environment | (env or {}),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        return Running(process)

    def run(
        self,
        *command: object,
        timeout: float = LIMIT_SECONDS,
        check: bool = True,
        **options: object,
    ) -> subprocess.CompletedProcess[str]:
        """Run a command to its end; unless `check` is off it has to succeed."""
        with self.start(*command, **options) as running:  # type: ignore[arg-type]
            done = running.finish(timeout)
        assert not check or done.returncode == 0, (done.args, done.stdout, done.stderr)
        return done

    def srun(self, *arguments: object, **options: object) -> subprocess.CompletedProcess[str]:
        """Run a job step; the caller looks at the exit status."""
        return self.run("srun", "--quiet", *arguments, check=False, **options)  # type: ignore[arg-type]

    # --- batch jobs --------------------------------------------------------------------------

    def submit(self, script: str, *options: object, **settings: object) -> int:
        """Submit a batch script; return the number of the job."""
        path = self.files.shared / f"script-{time.monotonic_ns()}.sh"
        path.write_text(f"#!/bin/bash\n{script}\n")
        output = f"--output={self.files.shared}/%j.out", f"--error={self.files.shared}/%j.err"
        done = self.run("sbatch", "--parsable", *output, *options, path, **settings)  # type: ignore[arg-type]
        return int(done.stdout)

    def sbatch(self, script: str, *options: object) -> Job:
        """Run a batch script to its end."""
        return self.wait(self.submit(script, *options))

    def wait(self, number: int) -> Job:
        fields: dict[str, str] = {}

        def has_ended() -> bool:
            fields.update(self.fields(number))
            return fields["JobState"] in ENDED

        assert wait_for(has_ended), f"job {number}: {fields['JobState']}"
        output, errors = (self.output(number, end) for end in ("out", "err"))
        return Job(
            number=number,
            state=fields["JobState"],
            exit_code=fields["ExitCode"],
            output=output,
            errors=errors,
        )

    def output(self, number: int, end: str = "out") -> str:
        """Return the output that a job has written so far."""
        path = self.files.shared / f"{number}.{end}"
        return path.read_text() if path.exists() else ""

    def fields(self, number: int) -> dict[str, str]:
        shown = self.run("scontrol", "show", "job", "--oneliner", number).stdout
        return dict(re.findall(r"(\S+?)=(\S*)", shown))


# --- processes --------------------------------------------------------------------------------


def children(pid: int) -> Iterator[int]:
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        with contextlib.suppress(OSError):
            yield from map(int, task.read_text().split())


def descendants(pid: int) -> Iterator[int]:
    for child in children(pid):
        yield child
        yield from descendants(child)


def command_of(pid: int) -> str:
    try:
        text = Path(f"/proc/{pid}/cmdline").read_text(errors="replace")
        return text.replace("\0", " ")
    except OSError:
        return ""


def absent(programs: Sequence[str]) -> list[str]:
    path = f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"
    return [program for program in programs if not shutil.which(program, path=path)]
