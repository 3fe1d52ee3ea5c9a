"""The commands of Slurm, PBS and Flux that submit a job, look at jobs, and cancel them."""

import os
import re
import subprocess
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from sifwright.catalog.layer_builds import Resources
from sifwright.errors import MachineError, quoted
from sifwright.system import processes

QUEUED, RUNNING, DONE, FAILED, CANCELLED, LOST = (
    *("queued", "running", "done"),
    *("failed", "cancelled", "lost"),
)
UNFINISHED = {QUEUED, RUNNING}
_SLURM = {
    **dict.fromkeys(("PENDING", "CONFIGURING", "REQUEUED", "REQUEUE_HOLD", "SUSPENDED"), QUEUED),
    **dict.fromkeys(("SPECIAL_EXIT", "RESV_DEL_HOLD"), QUEUED),
    **dict.fromkeys(("RUNNING", "COMPLETING", "STAGE_OUT", "SIGNALING", "STOPPED"), RUNNING),
    "RESIZING": RUNNING,
    "COMPLETED": DONE,
    "CANCELLED": CANCELLED,
}
_PBS = {
    **dict.fromkeys("QHWTSU", QUEUED),
    **dict.fromkeys("REB", RUNNING),
}
# The substate of a job that qdel has ended; its exit status may be 0 (OpenPBS 23.06.06).
_TERMINATED = "91"
_FLUX = {
    **dict.fromkeys(("NEW", "DEPEND", "PRIORITY", "SCHED"), QUEUED),
    **dict.fromkeys(("RUN", "CLEANUP"), RUNNING),
    "COMPLETED": DONE,
    "CANCELED": CANCELLED,
}
_FLUX_FACTS = "--format={status}|{exception.type}|{exception.note}"

# The answer to -x where the server forgets a job that ends, its default (OpenPBS 23.06.06).
_NO_HISTORY = "not configured to maintain job history"
# Reasons of jobs that will start some time (squeue(1), JOB REASON CODES).
_USUAL = {"None", "Priority", "Resources", "Dependency", "BeginTime"}
_NEVER = "Can Never Run"
_NOT_FOUND = 127  # of processes.capture
# Variables that are options of a scheduler's commands; sbatch's win over the lines of a script.
_OPTIONS = re.compile(r"(SBATCH|SQUEUE|SACCT|SCANCEL)_\w+|PBS_DPREFIX")


class JobState(NamedTuple):
    """The state of a job.

    `reason` is the scheduler's word on a job that waits in vain, or that it ended.
    """

    state: str
    reason: str = ""


class Scheduler(ABC):
    """The commands of a scheduler; `id_form` is a regular expression.

    `canceller` is the command that cancels the jobs with the ids behind it.
    """

    name: str
    id_form: str
    canceller: tuple[str, ...]

    @abstractmethod
    def submit(self, script: str, after: str) -> list[str]:
        """Return the command that submits a script, to start after a job has succeeded."""

    def job_id(self, output: str) -> str:
        """Return the id in the last line of that command, which may name a federated cluster.

        Raises `MachineError` if there is none.
        """
        line = (output.strip().splitlines() or [""])[-1].partition(";")[0]
        if re.fullmatch(self.id_form, line):
            return line
        fix = "Cancel the job, if there is one. Submit by hand: --submit=print"
        raise MachineError.of(f"printed no id of a job: {quoted(line)}", where=self.name, fix=fix)

    @abstractmethod
    def resources(self, wanted: Resources) -> list[tuple[str, str]]:
        """Return the directives, by name and value, of one node's share."""

    def output(self, log: str) -> list[tuple[str, str]]:
        """Return the directives that send output and errors to a file."""
        return [("output", log)]

    @abstractmethod
    def states(self, ids: Sequence[str]) -> dict[str, JobState]:
        """Ask for the states of jobs; jobs that the scheduler does not know are left out.

        Raises `MachineError` if the scheduler does not answer.
        """

    def cancel(self, ids: Sequence[str]) -> list[str]:
        """Return the command that cancels jobs."""
        return [*self.canceller, *ids]


class Slurm(Scheduler):
    name, id_form, canceller = "slurm", "[0-9]+", ("scancel",)

    def submit(self, script: str, after: str) -> list[str]:
        # NIL: the variables of this shell stay here. A job that cannot start any more is removed.
        wait = [f"--dependency=afterok:{after}", "--kill-on-invalid-dep=yes"] if after else []
        return ["sbatch", "--parsable", "--export=NIL", *wait, script]

    def resources(self, wanted: Resources) -> list[tuple[str, str]]:
        share = [("cpus-per-task", str(wanted.cores)), ("mem", f"{wanted.memory_gb}G")]
        return [("nodes", "1"), ("ntasks", "1"), *share, ("time", clock(wanted.hours))]

    def states(self, ids: Sequence[str]) -> dict[str, JobState]:
        words = ["squeue", "--me", "--noheader", "--states=all", "--format=%i|%T|%r"]
        seen = slurm_states(answer(words))
        if missing := [name for name in ids if name not in seen]:
            # The accounting remembers for longer, where there is one.
            fields = ["--allocations", "--noheader", "--parsable2", "--format=JobID,State"]
            done = ask(["sacct", f"--jobs={','.join(missing)}", *fields])
            seen = slurm_states(done.stdout) | seen
        return {name: seen[name] for name in ids if name in seen}


class Pbs(Scheduler):
    name, id_form, canceller = "pbs", r"[0-9]+(\.[\w.-]+)?", ("qdel",)

    def submit(self, script: str, after: str) -> list[str]:
        # Without -V, qsub takes no variable of this shell along.
        return ["qsub", *(["-W", f"depend=afterok:{after}"] if after else []), script]

    def resources(self, wanted: Resources) -> list[tuple[str, str]]:
        chunk = f"select=1:ncpus={wanted.cores}:mem={wanted.memory_gb}gb"
        return [("l", chunk), ("l", f"walltime={clock(wanted.hours)}")]

    def output(self, log: str) -> list[tuple[str, str]]:
        # -k doe: into the file at once; else PBS keeps the output on the node until the job ends.
        return [("o", log), ("j", "oe"), ("k", "doe")]

    def states(self, ids: Sequence[str]) -> dict[str, JobState]:
        # -x: jobs that have finished, too. For unknown ones, qstat fails and shows the others.
        done = ask(["qstat", "-x", "-f", *ids])
        if _NO_HISTORY in done.stderr:
            done = ask(["qstat", "-f", *ids])
        others = [line for line in done.stderr.splitlines() if "Unknown Job Id" not in line]
        if done.returncode and others:
            raise refusal(done)
        return pbs_states(done.stdout)


class Flux(Scheduler):
    name, id_form, canceller = "flux", r"[ƒf]\w+|[0-9]+", ("flux", "cancel")

    def submit(self, script: str, after: str) -> list[str]:
        wait = [f"--dependency=afterok:{after}"] if after else []
        # The job starts a flux of its own by PATH, and that starts shells.
        return ["flux", "batch", "--env=-*", "--env=PATH", "--env=HOME", *wait, script]

    def resources(self, wanted: Resources) -> list[tuple[str, str]]:
        # Flux schedules no memory.
        slots = ("nslots", "1"), ("cores-per-slot", str(wanted.cores))
        return [*slots, ("time-limit", f"{round(wanted.hours * 60)}m")]

    def states(self, ids: Sequence[str]) -> dict[str, JobState]:
        # One by one: for an unknown job, flux shows none of the others.
        seen: dict[str, JobState] = {}
        for name in ids:
            done = ask(["flux", "jobs", "--no-header", _FLUX_FACTS, name])
            if done.returncode == 0:
                seen[name] = _flux_state(*done.stdout.strip().split("|", 2))
            elif "unknown" not in done.stderr.lower():
                raise refusal(done)
        return seen


SCHEDULERS: dict[str, Scheduler] = {"slurm": Slurm(), "pbs": Pbs(), "flux": Flux()}


def slurm_states(output: str) -> dict[str, JobState]:
    """Return the states by job id; CANCELLED may be followed by the user who did it."""
    rows = (line.split("|", 2) for line in output.splitlines() if "|" in line)
    return {name: _slurm_state(state, *reason) for name, state, *reason in rows if state.strip()}


def _slurm_state(word: str, reason: str = "") -> JobState:
    word = word.split(maxsplit=1)[0].rstrip("+")
    state = _SLURM.get(word, FAILED)
    if state == FAILED:
        return JobState(state, "" if word == "FAILED" else word)
    return JobState(state, "" if state != QUEUED or reason in _USUAL else reason)


def _flux_state(status: str, exception: str, note: str) -> JobState:
    """Return the state; a job fails by the exception 'dependency' if the job before failed."""
    state = CANCELLED if exception == "dependency" else _FLUX.get(status, FAILED)
    return JobState(state, note if state == FAILED else "")


def pbs_states(output: str) -> dict[str, JobState]:
    """Return the states by job id, from the full display of qstat."""
    states: dict[str, JobState] = {}
    for block in re.split(r"^Job Id: ", output, flags=re.MULTILINE)[1:]:
        # Long values go on in lines that begin with a tab.
        unfolded = block.replace("\n\t", "")
        fields = dict(re.findall(r"^    (\w+) = (.*)$", unfolded, flags=re.MULTILINE))
        state = _PBS.get(fields.get("job_state", "")) or _pbs_end(fields)
        reason = _pbs_reason(state, fields.get("comment", "").strip())
        states[block.partition("\n")[0].strip()] = JobState(state, reason)
    return states


def _pbs_reason(state: str, comment: str) -> str:
    """Return why a job waits in vain, or which limit ended it."""
    if state == QUEUED:
        return comment if comment.startswith(_NEVER) else ""
    exceeded = re.search(r"exceeded resource \w+", comment)
    return exceeded[0] if exceeded and state == FAILED else ""


def _pbs_end(fields: Mapping[str, str]) -> str:
    """Return how a job ended; one that never ran has no exit status."""
    status = fields.get("Exit_status", "")
    if not status or fields.get("substate") == _TERMINATED:
        return CANCELLED
    return DONE if status == "0" else FAILED


def clock(hours: float) -> str:
    """Return the hours as HH:MM:SS."""
    minutes = max(1, round(hours * 60))
    return f"{minutes // 60:02d}:{minutes % 60:02d}:00"


def answer(words: Sequence[str]) -> str:
    """Run a scheduler's command; raise `MachineError` with its own words if it fails."""
    done = ask(words)
    if done.returncode:
        raise refusal(done)
    return done.stdout


def ask(words: Sequence[str], *, timeout: float = 60) -> subprocess.CompletedProcess[str]:
    """Run a scheduler's command without the variables that are options of it."""
    hidden = option_variables()
    env = {name: text for name, text in os.environ.items() if name not in hidden}
    return processes.capture(words, env=env, timeout=timeout)


def option_variables() -> list[str]:
    """Return the variables of this shell that are options of a scheduler's commands."""
    return sorted(filter(_OPTIONS.fullmatch, os.environ))


def refusal(done: subprocess.CompletedProcess[str], fix: str = "") -> MachineError:
    """Return the error with what the scheduler said, on one line, and what to do."""
    text = " ".join((done.stderr.strip() or done.stdout.strip()).split())
    program = f"{done.args[0]}: "
    message = program + (text.removeprefix(program) or f"status {done.returncode}")
    if done.returncode == _NOT_FOUND:
        fix = f"Work on a machine that has {done.args[0]}, or name another scheduler."
    return MachineError.of(message, fix=fix)
