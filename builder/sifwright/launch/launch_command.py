"""The command line that starts a job's ranks, as lines of shell."""

import textwrap
from collections.abc import Callable
from functools import partial

from sifwright.catalog.model import LauncherOptions
from sifwright.launch import container_engines, job_mpi
from sifwright.launch.model import Job
from sifwright.render import shell


def command(job: Job) -> str:
    """Return the launcher, the program it starts, and its arguments, every word quoted.

    The arguments follow a word of ours in one line. `flux batch` takes a line that begins with
    `flux:` for a directive, even inside of quotes.
    """
    parts = [" ".join(_start(job)), _run(job)]
    wrap = partial(textwrap.wrap, width=96, break_long_words=False, break_on_hyphens=False)
    lines = [line for part in parts for line in wrap(part)]
    return " \\\n  ".join([*lines, " ".join(_script(job))])


def words(job: Job) -> list[str]:
    """Return the launcher and its options, unquoted; [] without a launcher."""
    return _LAUNCHERS[job.launcher](job)


def _start(job: Job) -> list[str]:
    engine = container_engines.launcher_options(job) if job.run_in == "container" else ()
    exported = _if(job_mpi.exports_by_name(job), '"${exported[@]}"')
    return [*map(shell.quote, words(job)), *exported, *engine]


def _if(condition: object, word: str) -> tuple[str, ...]:
    """Return the word if the condition holds."""
    return (word,) if condition else ()


def _run(job: Job) -> str:
    if job.run_in == "host":
        return ""
    if job.site.delivery != "sif":
        return container_engines.command(job)
    words = [*job.site.exec_words, '"$SIF"']
    if job.request.check_program:
        words = ['bash -c "$check_image" check-image "$SIF" "$image_digests"', *words]
    return " ".join(words)


def _script(job: Job) -> list[str]:
    name = "conda-python-distributed"
    return [
        name if job.run_in == "container" else f'"$RUNSCRIPTS/{name}"',
        *_if(job.torchrun, f"--nproc-per-node {job.ranks}"),
        *_if(job.request.expand_variables, "--expand-variables"),
        *map(shell.quote, job.request.arguments),
    ]


def _srun(job: Job) -> list[str]:
    # In a job submitted with --export=NONE, srun would bring the ranks none of this script's
    # environment.
    start = ("srun", "--export=ALL", f"--nodes={job.request.nodes}")
    masks, plugin = job.site.node.cpu_masks, job_mpi.plugin(job)
    return [
        *(*start, f"--ntasks={job.total_tasks}", f"--ntasks-per-node={job.tasks}"),
        *_if(job.cpus, f"--cpus-per-task={job.cpus}"),
        *_if(masks and not job.whole_node, f"--cpu-bind=mask_cpu:{','.join(masks)}"),
        *_if(plugin, f"--mpi={plugin}"),
        *_options(job),
        *_if(job.site.rdzv_get_disabled, "--network=disable_rdzv_get"),
        # Cray's PMI takes the first one for itself.
        *_if(job.site.job.resv_ports, "--resv-ports=2"),
        "--kill-on-bad-exit=1",
    ]


def _of_mpi(job: Job) -> list[str]:
    return _open_mpi(job) if job_mpi.is_open_mpi(job) else _mpich(job)


def _mpich(job: Job) -> list[str]:
    """Return words that both MPICH and PALS take; either passes the whole environment."""
    return [
        *(job.launcher, "-n", str(job.total_tasks), "-ppn", str(job.tasks)),
        # PALS starts a copy of the program, which finds no file beside it. So an engine would miss
        # its configuration, and a run script its helpers. All container jobs of
        # NCAR/hpc-demos@421d838 have this option. The default is in cray/modules/pals/cli.py of
        # Cray-HPE/craycli.
        *_if("pals" in job.site.offered_pmi(job.launcher), "--no-transfer"),
        *_options(job),
        *_if(job.site.rdzv_get_disabled, "--disable_rdzv_get"),
    ]


def _open_mpi(job: Job) -> list[str]:
    return [
        *(job.launcher, "-np", str(job.total_tasks), "--bind-to", "none"),
        *("--map-by", f"ppr:{job.tasks}:node"),  # an allocation may have more slots on a node
        # Nobody counts slots on one machine, and there are as many as cores.
        *_if(job.site.scheduler == "local", "--oversubscribe"),
        *_options(job),
    ]


def _flux(job: Job) -> list[str]:
    return [
        *("flux", "run", f"--nodes={job.request.nodes}", f"--ntasks={job.total_tasks}"),
        *_if(job.cpus, f"--cores-per-task={job.cpus}"),
        *_if(job.gpus, f"--gpus-per-task={job.gpus if job.whole_node else 1}"),
        *_options(job),
        *_if(job.site.rdzv_get_disabled, "--setattr=rdzv_get_en=0"),
    ]


def _options(job: Job) -> tuple[str, ...]:
    options = job.site.launch.get(job.launcher, LauncherOptions())
    return options.task_per_node if job.whole_node else options.task_per_gpu


_LAUNCHERS: dict[str, Callable[[Job], list[str]]] = {
    "srun": _srun,
    "mpiexec": _of_mpi,
    "mpirun": _of_mpi,
    "flux": _flux,
    "local": lambda _: [],
}
