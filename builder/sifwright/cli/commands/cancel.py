"""The command `cancel`: end the jobs of submitted builds."""

from argparse import Namespace

from sifwright.cli.options import submission
from sifwright.launch.submit.cancel import cancel
from sifwright.system.terminal import print_line

HELP = "cancel the jobs of submitted builds"
GROUP = "build"
ARGUMENTS = submission.PLACE


def run(arguments: Namespace) -> None:
    """Cancel all jobs that wait or run; what they finished is kept."""
    ended = cancel(submission.place_of(arguments).jobs)
    for job in ended:
        print_line(f"cancelled: job {job.id}: {', '.join(job.steps)} ({', '.join(job.images)})")
    if not ended:
        print_line("no job waits or runs")
