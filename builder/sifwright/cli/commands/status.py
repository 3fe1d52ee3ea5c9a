"""The command `status`: the jobs of submitted builds, and how far they are."""

from argparse import Namespace
from collections.abc import Sequence
from typing import Literal

from rich.console import Console
from rich.live import Live
from rich.table import Table
from rich.text import Text

from sifwright.cli.options import arguments as shared
from sifwright.cli.options import submission
from sifwright.launch.submit import job_folder, job_view
from sifwright.launch.submit.job_folder import SubmittedJob
from sifwright.launch.submit.wait import looks
from sifwright.system.terminal import print_json, print_line, print_table

HELP = "show the jobs of submitted builds"
GROUP = "build"

_STYLES = {"running": "cyan", "done": "green", "queued": "yellow"}
ARGUMENTS = (
    *submission.PLACE,
    shared.one_of(
        shared.switch("--watch", "repeat until all jobs have ended"),
        shared.switch("--json", "print JSON"),
    ),
)


def run(arguments: Namespace) -> None:
    """Print a table of the jobs."""
    home = submission.place_of(arguments)
    records = job_folder.refresh(home.jobs)
    if arguments.watch and records:
        with Live(console=Console()) as live:
            for seen in looks(home.jobs):
                live.update(_table(seen), refresh=True)
        return
    if arguments.json:
        print_json([_document(job) for job in records])
    elif records:
        print_table(_table(records))
    else:
        print_line(f"no job was submitted: {home.jobs}")


def _document(job: SubmittedJob) -> dict[str, object]:
    names = ("id", "scheduler", "state", "reason", "images", "steps", "log")
    step = job_view.running_step(job)
    running = {"step": step.name, "seconds": round(step.seconds)} if step else {}
    return {
        **{name: getattr(job, name) for name in names},
        "step": "",
        "seconds": 0,
        **running,
        "last_line": job_view.last_line(job),
    }


def _table(records: Sequence[SubmittedJob]) -> Table:
    """Return a row for each job: the step that runs, else all of its steps."""
    table = Table(box=None, pad_edge=False)
    for name in ("JOB", "STATE", "IMAGES", "STEP", "SECONDS", "LAST LINE", "LOG"):
        justify: Literal["left", "right"] = "right" if name == "SECONDS" else "left"
        table.add_column(name, overflow="fold", justify=justify)
    for job in records:
        state = Text(job.shown_state, style=_STYLES.get(job.state, "bold red"))
        step = job_view.running_step(job)
        doing = (step.name, f"{step.seconds:.0f}") if step else (", ".join(job.steps), "")
        texts = ("\n".join(job.images), *doing, job_view.last_line(job), job.log)
        table.add_row(job.id, state, *map(Text, texts))
    return table
