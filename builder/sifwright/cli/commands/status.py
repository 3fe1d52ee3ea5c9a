"""The command `status`: the jobs of submitted builds, and how far they are."""

from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.live import Live
from rich.table import Table
from rich.text import Text

from sifwright.cli.options import arguments as shared
from sifwright.launch.submit import job_folder
from sifwright.launch.submit.job_folder import SubmittedJob
from sifwright.launch.submit.wait import looks
from sifwright.system.terminal import print_json, print_line, print_table

HELP = "show the jobs of submitted builds"
GROUP = "build"

_STYLES = {"running": "cyan", "done": "green", "queued": "yellow"}


def add_arguments(parser: ArgumentParser) -> None:
    shared.add_output_folder(parser)
    group = parser.add_mutually_exclusive_group()
    group.add_argument("--watch", action="store_true", help="until all jobs have ended")
    group.add_argument("--json", action="store_true", help="print JSON")


def run(arguments: Namespace) -> None:
    """Print a table of the jobs."""
    jobs = Path(arguments.output).absolute() / "jobs"
    if arguments.watch:
        with Live(console=Console()) as live:
            for records in looks(jobs):
                live.update(_table(records), refresh=True)
        return
    records = job_folder.refresh(jobs)
    if arguments.json:
        print_json([_document(job) for job in records])
    elif records:
        print_table(_table(records))
    else:
        print_line(f"no job was submitted from {jobs.parent}")


def _document(job: SubmittedJob) -> dict[str, object]:
    names = ("id", "scheduler", "state", "reason", "images", "steps", "log")
    return {name: getattr(job, name) for name in names}


def _table(records: Sequence[SubmittedJob]) -> Table:
    table = Table(box=None, pad_edge=False)
    for name in ("JOB", "STATE", "IMAGES", "STEPS", "LOG"):
        table.add_column(name, overflow="fold")
    for job in records:
        state = Text(job.shown_state, style=_STYLES.get(job.state, "bold red"))
        table.add_row(job.id, state, "\n".join(job.images), ", ".join(job.steps), job.log)
    return table
