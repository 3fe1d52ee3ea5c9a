"""Write the jobs of a graph, and the commands that submit them by hand."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from sifwright.launch.jobscript import words
from sifwright.launch.submit import job_script
from sifwright.launch.submit.graph import BuildJob
from sifwright.launch.submit.schedulers import option_variables
from sifwright.launch.submit.submission import Submission

# Stands for a shell variable, as no id of a job looks like it.
_BEFORE = "THE-JOB-BEFORE"


def write(submission: Submission, planned: Sequence[BuildJob]) -> list[tuple[BuildJob, Path]]:
    """Write the folders of the jobs; return each job with its script."""
    return [(job, job_script.write(submission, job).script) for job in planned]


def commands(submission: Submission, written: Sequence[tuple[BuildJob, Path]]) -> Iterator[str]:
    """Yield lines for a shell; a job that others wait for keeps its id in a variable."""
    names = {job.key: f"job{number}" for number, (job, _) in enumerate(written, 1)}
    awaited = {job.after for job, _ in written}
    for job, script in written:
        before = _BEFORE if job.after in names else job.after
        # sbatch may print the name of a cluster behind the id.
        own = f"${{{names.get(job.after, '')}%%;*}}"
        command = [*_unset(), *submission.scheduler.submit(str(script), before)]
        line = words(command).replace(_BEFORE, own)
        yield f"{names[job.key]}=$({line})" if job.key in awaited else line


def _unset() -> list[str]:
    """Return the words that keep variables of this shell from the scheduler's command."""
    hidden = [f"--unset={name}" for name in option_variables()]
    return ["env", *hidden] if hidden else []
