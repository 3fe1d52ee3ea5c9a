"""The command `stage`: what a job copies to its nodes' disks, ready beforehand."""

from argparse import Namespace
from pathlib import Path

from sifwright.cli.options import arguments as shared
from sifwright.launch import job_files, staging
from sifwright.launch.model import JobRequest
from sifwright.system import access
from sifwright.system.terminal import print_line

HELP = "prepare an environment or image for 'jobscript --stage'"
GROUP = "run"
ARGUMENTS = (
    shared.argument(
        "source",
        metavar="PATH",
        help="a SIF, a virtual environment, a conda environment, or 'current' of an installation",
    ),
)


def run(arguments: Namespace) -> None:
    """Write the archive or the fingerprint, and print where it is."""
    source, fix = Path(arguments.source), "Let the owner give this command."
    if source.is_file():
        access.require_writable(source.resolve().parent, fix)
        print_line(f"fingerprint: {staging.fingerprint_file(source)}")
        return
    job_files.require(JobRequest(nodes=1, arguments=(), environment=arguments.source), "")
    access.require_writable(staging.environment_root(source), fix)
    archive = staging.pack_environment(source)
    size = archive.stat().st_size / 1e6
    print_line(f"archive: {archive} ({size:.0f} MB)")
    print_line(f"use it:  sifwright jobscript --environment {source} --stage …")
