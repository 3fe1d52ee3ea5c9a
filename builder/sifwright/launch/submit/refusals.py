"""Say what to change if a scheduler refuses a job."""

import re
from collections.abc import Mapping, Sequence

from sifwright.launch.submit.schedulers import ask, refusal

# Messages about a value that the user may change. Slurm's are in SchedMD/slurm@0001e1b,
# src/common/slurm_errno.c. PBS's are in openpbs/openpbs@cd7ab5e, src/lib/Liblog/pbs_messages.c.
# Flux 0.88.0 answered the others.
_SAID: Mapping[str, Mapping[str, str]] = {
    "slurm": {
        "partition": "invalid partition|partition specified|use this partition|in this partition"
        "|partition not available",
        "account": "invalid account",
        "qos": "invalid qos",
        "time": "time limit is invalid",
        "size": "node configuration|required by task|cpu count|processors requested",
        "limits": "accounting/qos policy",
        "number": "maxjobcount",
    },
    "pbs": {
        "partition": "unknown queue|queue is not enabled|access to queue|default queue",
        "account": "invalid account",
        "limits": "job violates queue|limit exceeds allowable|limit on resource",
        "number": "maximum number of jobs|would exceed .*limit",
    },
    "flux": {"partition": "is not a valid queue"},
}
_DIRECTIVES: Mapping[str, Mapping[str, str]] = {
    "slurm": {
        "partition": "partition=NAME",
        "account": "account=NAME",
        "qos": "qos=NAME",
        "time": "time=HH:MM:SS",
        "size": "cpus-per-task=N or --directive mem=SIZE",
    },
    "pbs": {
        "partition": "q=NAME",
        "account": "A=NAME",
        "time": "l=walltime=HH:MM:SS",
        "size": "l=select=1:ncpus=N:mem=SIZE",
    },
    "flux": {"partition": "queue=NAME"},
}
# Seconds; a busy controller lets sbatch try again and again.
_PATIENCE = 600
_ADVICE = {
    "partition": "Choose another one: --directive {partition}",
    "account": "Name an account that may use it: --directive {account}",
    "qos": "Choose another one: --directive {qos}",
    "time": "Ask for less time, or for a partition with more: --directive {time}, {partition}",
    "size": "Ask for less, or for another partition: --directive {size}, {partition}",
    "limits": "Ask for less, or for another queue: --directive {time}, {size}, {partition}",
    "number": "Submit again when some of your jobs have ended.",
}


def accepted(scheduler: str, words: Sequence[str]) -> str:
    """Return the output of a command that submits.

    Raises `MachineError` with the scheduler's words and what to change, if it is known.
    """
    done = ask(words, timeout=_PATIENCE)
    if done.returncode:
        raise refusal(done, advice(scheduler, f"{done.stderr} {done.stdout}"))
    return done.stdout


def advice(scheduler: str, text: str) -> str:
    """Return what to change; nothing for words that are not known."""
    for name, words in _SAID.get(scheduler, {}).items():
        if re.search(words, text, flags=re.IGNORECASE):
            return _ADVICE[name].format_map(_DIRECTIVES[scheduler])
    return ""
