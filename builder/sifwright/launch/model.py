"""A job as frozen data: what is asked for, and what was decided."""

from dataclasses import dataclass

from sifwright.catalog.model import Site
from sifwright.catalog.pmi import ImageMpi


@dataclass(frozen=True, kw_only=True, slots=True)
class JobRequest:
    """The options of a job; the site decides those that are empty or None.

    `arguments` are the Python script and its arguments, in which each rank replaces `$NAME` if
    `expand_variables` is set. `ranks_per_node` counts the processes that join the process group.
    `time` is HH:MM:SS, `signal` is NAME@SECONDS before its end. `account_variable` names the
    variable of the environment that gave the account, if any.
    `partition` is PBS's and Flux's queue, too. `directives` are further ones: NAME[=VALUE].
    `modules` are loaded after the site's, from `module_paths` too. They bring the image, unless
    `sif` names one. In a job on the host they bring Python, unless `environment` names one.
    `host_mpi` puts the site's own MPI in place of the image's. `mpi` is the MPI of the ranks.
    `pmi` is the plugin of srun that starts the ranks, 'none' for programs without MPI.
    `check_program` compares the image on each node, with `image_digests` where it has no record.
    `stage` copies the image or the environment to the nodes' disks first.
    `built_sif` and `run_scripts` are taken where the job's environment names no others.
    """

    nodes: int
    arguments: tuple[str, ...]
    expand_variables: bool = False
    launcher: str = ""
    run_in: str = ""
    ranks_per_node: int | None = None
    time: str = ""
    account: str = ""
    account_variable: str = ""
    name: str = ""
    signal: str = ""
    partition: str = ""
    qos: str = ""
    constraint: str = ""
    job_output: str = ""
    directives: tuple[str, ...] = ()
    modules: tuple[str, ...] = ()
    module_paths: tuple[str, ...] = ()
    sif: str = ""
    environment: str = ""
    host_mpi: bool = False
    mpi: ImageMpi | None = None
    pmi: str = ""
    stage: bool = False
    built_sif: str = ""
    run_scripts: str = ""
    check_program: str = ""
    image_digests: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Job:
    """A job, decided.

    On each node the launcher starts `tasks`. With `torchrun` it is one, which starts the `ranks`;
    otherwise tasks and ranks are the same. `gpus` counts the GPUs of a node, `cpus` the CPUs of a
    task; 0 is unknown. `name` and `time` are the request's, else the script's and the site's.
    """

    site: Site
    request: JobRequest
    run_in: str
    launcher: str
    torchrun: bool
    ranks: int
    tasks: int
    gpus: int
    cpus: int
    name: str
    time: str

    @property
    def total_tasks(self) -> int:
        return self.request.nodes * self.tasks

    @property
    def binds(self) -> tuple[str, ...]:
        """Return the binds of the container; the job makes those with an existing source."""
        host = self.site.host_mpi if self.request.host_mpi else None
        return self.site.binds + (host.binds if host else ())

    @property
    def whole_node(self) -> bool:
        """Return whether a task has its node to itself, rather than one GPU and its CPUs."""
        return self.tasks == 1 and self.gpus != 1
