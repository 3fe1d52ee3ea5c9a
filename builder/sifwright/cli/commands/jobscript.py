"""The command `jobscript`: the batch script of a training, on disk or on standard output."""

import os
import shlex
import sys
from argparse import Namespace
from dataclasses import replace
from pathlib import Path

from sifwright.catalog import image_name
from sifwright.catalog.model import Site
from sifwright.catalog.project_folder import project_folder
from sifwright.cli.options import arguments as shared
from sifwright.cli.options import matrix
from sifwright.cli.options.context import load
from sifwright.cli.options.output import print_lines
from sifwright.images.sif.fingerprint import expected_digests
from sifwright.install.native.native_folder import refuse_moved_environment
from sifwright.launch import image_check, job_files, job_image_mpi, job_notes
from sifwright.launch.job import decide_job
from sifwright.launch.job_rules import ACCOUNTS
from sifwright.launch.jobscript import render_jobscript
from sifwright.launch.model import JobRequest
from sifwright.plan.lint import apply_rules as lint
from sifwright.plan.resolve import get_or_suggest
from sifwright.system import files
from sifwright.system.terminal import note, print_line

HELP = "write the batch script that trains on N nodes of a site"
GROUP = "run"

_SUBMIT = {"local": "bash", "slurm": "sbatch", "pbs": "qsub", "flux": "flux batch"}
ARGUMENTS = (
    shared.argument("--site", required=True, metavar="SITE", help="a site of 'sifwright list'"),
    shared.argument("--nodes", required=True, type=int, metavar="N", help="nodes of the job"),
    shared.argument(
        "--tasks-per-node", type=int, metavar="N", help="ranks on each node; default: one per GPU"
    ),
    shared.argument(
        "--launcher",
        default="",
        help="srun, mpiexec, mpirun, flux or torchrun; default: the site's",
    ),
    shared.argument(
        "--run-in",
        default="",
        choices=("container", "host"),
        help="run in the image or in an environment of the host; default: the site's",
    ),
    shared.text("--image", "IMAGE", "which built image; default: the site's"),
    shared.text(
        "--sif", "PATH", "the SIF, or what 'deliver' made of it; default: $SIF, else what was built"
    ),
    shared.repeated(
        "--module",
        "NAME",
        "load this module in the job, and take its image and packages; may be repeated",
        dest="modules",
    ),
    shared.repeated(
        "--module-path",
        "DIR",
        "where such a module is, for 'module use'; may be repeated",
        dest="module_paths",
    ),
    shared.text(
        "--environment",
        "DIR",
        "virtual environment or conda environment of the host (--run-in host)",
    ),
    shared.switch(
        "--elsewhere", "the job will run on another machine: do not look for its files on this one"
    ),
    shared.switch(
        "--stage",
        "start from the nodes' own disks: copy the image, or the archive of 'sifwright stage'",
    ),
    shared.switch("--host-mpi", "the site's MPI in place of the image's"),
    shared.text(
        "--pmi",
        "NAME",
        "PMI of srun and the image's MPI: pmi2, pmix or none; default: the one they share",
    ),
    shared.text("--time", "HH:MM:SS", "wall time; default: the site's"),
    shared.text(
        "--account",
        "PROJECT",
        "project that pays for the job; default: SBATCH_ACCOUNT (Slurm), PBS_ACCOUNT (PBS)",
    ),
    shared.argument("--name", default="", help="name of the job; default: the script's"),
    shared.text("--signal", "NAME@SECONDS", "signal sent before the time is up"),
    shared.argument(
        "--partition",
        "--queue",
        default="",
        metavar="NAME",
        help="partition (Slurm) or queue (PBS, Flux); default: the site's",
    ),
    shared.text("--qos", "NAME", "quality of service (Slurm); default: the site's"),
    shared.text(
        "--constraint",
        "FEATURES",
        "features of the nodes (Slurm, Flux), beside those that the site asks for",
    ),
    shared.text(
        "--job-output",
        "FILE",
        "file for output and errors, with the scheduler's patterns, as in %%x-%%j.out",
    ),
    shared.directive("a further option of the scheduler, as in mem=480G"),
    shared.switch(
        "--expand-variables",
        "replace $NAME and ${NAME} in the script's arguments in each rank, as in "
        "--master_addr=$MASTER_ADDR",
    ),
    shared.OUTPUT_FILE,
    shared.argument(
        "arguments", nargs="+", metavar="SCRIPT", help="-- and the Python script with its arguments"
    ),
)


def run(arguments: Namespace) -> None:
    """Write the script to standard output or to a file."""
    arguments.image, values = matrix.split_name(arguments.image)
    catalog = load(arguments)
    site = get_or_suggest(catalog.sites, arguments.site, "site")
    project = project_folder(arguments.project)
    # A launch that hangs costs a job's hours: no script for a site that does not pass lint.
    lint.refuse(site, lint.locator(project / "defs", site))
    image = get_or_suggest(catalog.images, arguments.image or site.image, "image")
    request = _request(arguments, site, _built(site, image.name, values), project)
    decide_job(site, request)  # a wrong word is refused before any image is looked at
    mpi = job_image_mpi.mpi(catalog, site, image, request)
    job = decide_job(site, replace(request, mpi=mpi))
    if not arguments.elsewhere:
        job_files.require(job.request, site.delivery)
        if job.request.environment:
            refuse_moved_environment(Path(job.request.environment))
    if job.run_in == "container" and site.delivery == "sif":
        job = replace(job, request=_with_check(job.request))
    data = render_jobscript(job).encode()
    print_lines(job_notes.notes_about_job(job, os.environ), note)
    if not arguments.output:
        # Not through the text layer: a terminal that knows ASCII only would change arguments.
        sys.stdout.flush()
        sys.stdout.buffer.write(data)
        return
    files.write(Path(arguments.output), data, mode=0o755)
    print_line(f"submit it:  {_SUBMIT[site.scheduler]} {shlex.quote(arguments.output)}")


def _built(site: Site, image: str, values: str) -> str:
    """Return the image of this checkout, in the form that the site's engine runs.

    `values` is the end of the name of its folder, of `build --matrix`.
    """
    folder = Path("build", site.name, f"{image}{values}").absolute()
    names = {"sif": folder / "image.sif", "squashfs": folder / f"{image}.sqsh"}
    name = image_name.of_engine(image, site.name, values)
    return str(names.get(site.delivery, f"localhost/{name}"))


def _with_check(request: JobRequest) -> JobRequest:
    """Return the request with the program that compares the image, and its digests if known.

    The image of a module has its record in the module's installation.
    """
    of_module = request.modules and not request.sif
    sif = Path(request.sif or request.built_sif)
    return replace(
        request,
        check_program=image_check.check_program(Path(request.run_scripts)),
        image_digests="" if of_module else expected_digests(sif),
    )


def _request(arguments: Namespace, site: Site, built: str, project: Path) -> JobRequest:
    variable = "" if arguments.account else ACCOUNTS.get(site.scheduler, "")
    account = arguments.account or os.environ.get(variable, "")
    size = ("nodes", "launcher", "run_in", "time", "name", "signal", "expand_variables")
    queue = ("partition", "qos", "constraint", "job_output")
    places = ("sif", "environment", "host_mpi", "pmi", "stage")
    return JobRequest(
        **{name: getattr(arguments, name) for name in (*size, *queue, *places)},
        account=account,
        account_variable=variable if account else "",
        arguments=tuple(arguments.arguments),
        directives=tuple(arguments.directives),
        modules=tuple(arguments.modules),
        module_paths=tuple(arguments.module_paths),
        ranks_per_node=arguments.tasks_per_node,
        built_sif=built,
        run_scripts=str(project / "runscripts"),
    )
