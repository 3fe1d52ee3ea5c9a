"""Look for the files that a job names, before it waits in a queue."""

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from sifwright.errors import Problem, UsageError, quoted
from sifwright.launch import staging
from sifwright.launch.model import JobRequest

_ELSEWHERE = "give --elsewhere if the job runs on another machine"


def require(request: JobRequest, delivery: str) -> None:
    """Raise `UsageError` with every file that is missing, and every folder that is no environment.

    An OCI image is no file: `delivery` is the form of the image.

    Relative paths start where the job is submitted, which is taken to be here.
    """
    image = (_sif,) if delivery != "oci" else ()
    checks = (_environment, _stage, *image, _job_output, _module_paths)
    try:
        _look_at(request)
        problems = [problem for check in checks for problem in check(request)]
    except OSError as error:  # a folder that may not be searched, a name that is too long
        message = f"cannot be looked at: {error.strerror}"
        fix = f"Mend it, or {_ELSEWHERE}."
        raise UsageError.of(message, where=quoted(error.filename), fix=fix) from None
    if problems:
        raise UsageError(*problems)


def _look_at(request: JobRequest) -> None:
    """Raise `OSError` for a path that may exist: since Python 3.14, pathlib calls it missing."""
    output = str(Path(request.job_output).parent)
    for path in (request.environment, request.sif, output, *request.module_paths):
        with suppress(FileNotFoundError, NotADirectoryError):
            Path(path).stat()


def _environment(request: JobRequest) -> Iterator[Problem]:
    if not request.environment:
        return
    where, folder = f"--environment {quoted(request.environment)}", Path(request.environment)
    if not folder.is_dir():
        fix = f"Make it ('python -m venv DIR', 'conda create -p DIR python'), or {_ELSEWHERE}."
        yield Problem(where=where, what="there is no such folder", fix=fix)
    elif not (folder / "bin/activate").is_file() and not (
        (folder / "conda-meta").is_dir() and os.access(folder / "bin/python", os.X_OK)
    ):
        message = "has neither bin/activate nor, as conda environments, conda-meta/ and bin/python"
        fix = "Name the folder of a virtual environment, or of a conda environment with Python."
        yield Problem(where=where, what=message, fix=fix)


def _stage(request: JobRequest) -> Iterator[Problem]:
    """Yield an archive that is missing, or that its environment has changed since."""
    folder = Path(request.environment)
    if not request.stage or not request.environment or not folder.is_dir():
        return
    archive, fix = folder / staging.ARCHIVE, f"Write it: sifwright stage {folder}"
    missing = [folder / name for name in staging.PACKED if not (folder / name).exists()]
    if missing:
        yield Problem(where=f"--stage {missing[0]}", what="there is no such file", fix=fix)
    elif staging.is_stale(folder):
        message = "the environment has changed since its archive was written"
        yield Problem(where=f"--stage {archive}", what=message, fix=fix)


def _sif(request: JobRequest) -> Iterator[Problem]:
    if request.sif and not Path(request.sif).exists():
        fix = f"Build it or copy it there, or {_ELSEWHERE}."
        yield Problem(where=f"--sif {quoted(request.sif)}", what="there is no such file", fix=fix)


def _job_output(request: JobRequest) -> Iterator[Problem]:
    """Yield a missing folder of output: Slurm makes none and ends the job without a word."""
    folder = Path(request.job_output).parent
    if request.job_output and not folder.is_dir() and not set("%{^") & set(str(folder)):
        fix = f"Make the folder: mkdir -p {folder}; or {_ELSEWHERE}."
        message = f"there is no folder '{folder}', and schedulers make none"
        yield Problem(where=f"--job-output {request.job_output}", what=message, fix=fix)


def _module_paths(request: JobRequest) -> Iterator[Problem]:
    for path in request.module_paths:
        if not Path(path).is_dir():
            fix = f"Name the folder of modulefiles, as EasyBuild's modules/all; or {_ELSEWHERE}."
            where = f"--module-path {quoted(path)}"
            yield Problem(where=where, what="there is no such folder", fix=fix)
