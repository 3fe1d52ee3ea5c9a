"""Refusals of a job by a scheduler: its own words, and the directive to change."""

import subprocess

import pytest

from sifwright.errors import MachineError
from sifwright.launch.submit.refusals import accepted, advice


@pytest.mark.parametrize(
    ("scheduler", "message", "change"),
    [
        ("slurm", "invalid partition specified: nowhere", "partition=NAME"),
        ("slurm", "User's group not permitted to use this partition", "partition=NAME"),
        (
            "slurm",
            "Invalid account or account/partition combination specified",
            "an account that may use it: --directive account=NAME",
        ),
        ("slurm", "Invalid qos specification", "qos=NAME"),
        (
            "slurm",
            "Requested time limit is invalid (missing or exceeds some limit)",
            "less time, or for a partition with more: --directive time=HH:MM:SS, partition=NAME",
        ),
        ("slurm", "Requested node configuration is not available", "mem=SIZE"),
        ("slurm", "Memory required by task is not available", "mem=SIZE"),
        (
            "slurm",
            "Job violates accounting/QOS policy (job submit limit, user's size and/or time limits)",
            "time=HH:MM:SS",
        ),
        ("pbs", "Unknown queue", "--directive q=NAME"),
        ("pbs", "Access to queue is denied", "--directive q=NAME"),
        ("pbs", "Invalid Account", "--directive A=NAME"),
        (
            "pbs",
            "Job violates queue and/or server resource limits",
            "l=walltime=HH:MM:SS, l=select=1:ncpus=N:mem=SIZE, q=NAME",
        ),
        ("pbs", "would exceed limit on resource ncpus in queue workq", "l=walltime=HH:MM:SS"),
        ("pbs", "would exceed queue workq's per-user limit", "when some of your jobs have ended"),
        ("pbs", "PBS server internal error", ""),
        ("flux", "'nowhere' is not a valid queue", "--directive queue=NAME"),
        ("flux", "invalid Flux standard duration", ""),
    ],
)
def test_words_of_a_scheduler(scheduler: str, message: str, change: str) -> None:
    """Take the words of Slurm's slurm_errno.c and OpenPBS's pbs_messages.c."""
    result = advice(scheduler, f"submit: error: {message}\n")
    assert change in result
    assert bool(result) == bool(change)


def test_a_refusal_is_two_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take the answer of OpenPBS 23.06.06 (dialogues/openpbs.json)."""
    done = subprocess.CompletedProcess(["qsub"], 170, "", "qsub: Unknown queue\n")
    monkeypatch.setattr("sifwright.system.processes.capture", lambda _words, **_: done)
    with pytest.raises(MachineError) as caught:
        accepted("pbs", ["qsub", "job.sh"])
    change = "    Choose another one: --directive q=NAME"
    assert str(caught.value).splitlines() == ["qsub: Unknown queue", change]
