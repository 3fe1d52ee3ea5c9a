"""The command `jobscript`: from the words of the command line to a script on disk or on stdout."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from sifwright import files, lint
from sifwright.job import Request, decide
from sifwright.paths import project_folder
from sifwright.plan import choose
from sifwright.render.jobscript import script

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Iterator

    from sifwright.model import Catalog

__all__ = ["run"]

_SUBMIT = {"local": "bash", "slurm": "sbatch", "pbs": "qsub", "flux": "flux batch"}


def run(catalog: Catalog, arguments: Namespace) -> Iterator[str]:
    """Write the script; yields what to say about it, which is nothing on standard output."""
    site = choose(catalog.sites, arguments.site, "site")
    project = project_folder(arguments.project)
    # A launch that hangs costs a job's hours: nothing is written for a site that does not lint.
    lint.refuse(site, lint.place(project / "defs", site))
    image = choose(catalog.images, arguments.image or site.image, "image")
    built = Path("build", site.name, image.name, "image.sif").absolute()
    request = _request(arguments, built, project)
    data = script(decide(site, request)).encode()
    if not arguments.output:
        # Not through the text layer: a terminal that knows ASCII only would change arguments.
        sys.stdout.flush()
        sys.stdout.buffer.write(data)
        return
    files.write(Path(arguments.output), data, mode=0o755)
    yield f"submit it:  {_SUBMIT[site.scheduler]} {shlex.quote(arguments.output)}"


def _request(arguments: Namespace, built: Path, project: Path) -> Request:
    same = ("nodes", "launcher", "engine", "time", "account", "name", "signal")
    places = ("sif", "environment", "host_mpi")
    return Request(
        **{name: getattr(arguments, name) for name in (*same, *places)},
        arguments=tuple(arguments.arguments),
        ranks_per_node=arguments.tasks_per_node,
        built_sif=str(built),
        run_scripts=str(project / "runscripts"),
    )
