"""The command `uninstall`: remove a native installation."""

from argparse import Namespace
from contextlib import nullcontext
from pathlib import Path

from sifwright.cli.options import arguments as shared
from sifwright.errors import UsageError
from sifwright.install.native.claim import claimed
from sifwright.install.native.native_folder import MOST_NAMES, NativeFolder, native_folder
from sifwright.install.native.uninstall import uninstall
from sifwright.launch.submit import job_claim, job_folder, jobs_place
from sifwright.system.terminal import first_names, print_line

HELP = "remove an installation that 'install' has made"
GROUP = "install"
ARGUMENTS = (shared.argument("prefix", metavar="DIR", help="the --prefix of the installation"),)


def run(arguments: Namespace) -> None:
    """Remove all versions and modulefiles, and what jobs left; name other files, which stay."""
    folder = native_folder(arguments.prefix)
    jobs = jobs_place.of_installation(str(folder.root)).jobs
    with job_claim.alone(jobs) if jobs.exists() else nullcontext():
        _refuse_unfinished(jobs, arguments.prefix)
        if folder.record.exists() or not job_folder.is_noted(jobs):
            others = uninstall(folder)
        else:
            others = _remove_claim(folder)
        job_folder.discard_all(jobs)
    print_line(f"uninstalled: {arguments.prefix}")
    if others:
        print_line(
            f"not from 'sifwright install', so still there: {first_names(others, MOST_NAMES)}"
        )
        print_line("Move these away before you install there again.")


def _remove_claim(folder: NativeFolder) -> list[str]:
    """Remove the claim of a job that was killed before its record."""
    if folder.root.exists():
        with claimed(folder, [str(folder.root)]):
            pass
    return []


def _refuse_unfinished(jobs: Path, prefix: str) -> None:
    """Raise `UsageError` if jobs wait or run that would install there again."""
    if waiting := job_folder.unfinished(job_folder.refresh(jobs, is_ours=True)):
        ids = ", ".join(job.id for job in waiting)
        fix = f"Cancel them: sifwright cancel --prefix {prefix}"
        raise UsageError.of(f"jobs wait or run: {ids}", where=prefix, fix=fix)
