"""The directives of a job: the options that its scheduler reads, in the order of the script."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from sifwright.catalog.model import Site
from sifwright.launch.model import Job, JobRequest

# Prefix of a line of directives.
MARKS = {"slurm": "#SBATCH", "pbs": "#PBS", "flux": "# flux:"}
# Fields of a request that are a directive of that name, by scheduler.
OPTIONS: Mapping[str, Mapping[str, str]] = {
    "slurm": {
        "partition": "partition",
        "qos": "qos",
        "constraint": "constraint",
        "job_output": "output",
    },
    "pbs": {"partition": "q", "job_output": "o"},
    "flux": {"partition": "queue", "constraint": "requires", "job_output": "output"},
    "local": {},
}
# Short names of directives that this module or a site may write under their long ones.
_LONG = {
    "slurm": "A=account C=constraint G=gpus J=job-name N=nodes c=cpus-per-task m=distribution"
    " n=ntasks o=output p=partition q=qos t=time tasks-per-node=ntasks-per-node",
    "flux": "B=bank N=nodes c=cores-per-slot g=gpus-per-slot n=nslots o=setopt q=queue"
    " t=time-limit x=exclusive",
}
# Names with settings of their own: resources and attributes of PBS, options of Flux.
_MANY = {"l", "W", "setattr", "setopt", "env"}
# Settings that srun reads from variables (srun(1)), by the end of the name, and their directives. A
# job that was submitted from another job has the other job's variables. Then a step asks for GPUs
# that this job lacks, or its ranks have another order (tried on 22.05).
_READ_BY_SRUN = {
    name.upper().replace("-", "_"): name
    for name in (
        *("cpu-bind", "cpus-per-gpu", "dist-planesize", "distribution", "gpu-bind", "gpus"),
        *("gpus-per-node", "gpus-per-socket", "gpus-per-task", "gres", "hint", "mem-bind"),
        *("mem-per-cpu", "mem-per-gpu", "ntasks-per-core", "ntasks-per-gpu"),
        *("ntasks-per-socket", "threads-per-core", "tres-per-task"),
    )
} | {"MEM_PER_NODE": "mem", "STEP_GRES": "gres"}
# Commands that get an interactive allocation, and directives that only a script has.
_INTERACTIVE = {"slurm": "salloc", "pbs": "qsub -I", "flux": "flux alloc"}
_BATCH_ONLY = {"job-name", "N", "signal", "output", "o", "j", "requeue"}


@dataclass(frozen=True, slots=True)
class Directive:
    """An option of a scheduler; an option without a value has an empty one."""

    name: str
    value: str = ""

    def __str__(self) -> str:
        dashes, between = ("-", " ") if len(self.name) == 1 else ("--", "=")
        return f"{dashes}{self.name}{between}{self.value}" if self.value else f"{dashes}{self.name}"

    @property
    def key(self) -> str:
        """Return the setting that the directive changes; some names stand for many settings."""
        return f"{self.name} {self.value.partition('=')[0]}" if self.name in _MANY else self.name


def parse_directive(site: Site, text: str) -> Directive:
    """Return the directive of `--directive NAME[=VALUE]`, under its long name."""
    name, _, value = text.lstrip("-").partition("=")
    known = dict(pair.split("=") for pair in _LONG.get(site.scheduler, "").split())
    return Directive(known.get(name, name), value)


def directives(job: Job) -> list[Directive]:
    """Return all directives of a job; without a scheduler there are none."""
    return list(dict.fromkeys(_WRITERS[job.site.scheduler](job)))


def variables_of_other_jobs(job: Job) -> list[str]:
    """Return the variables of srun that no directive of the script sets."""
    names = {directive.name for directive in directives(job)}
    return [f"SLURM_{key}" for key, name in _READ_BY_SRUN.items() if name not in names]


def own(job: Job) -> dict[str, Directive]:
    """Return by key the directives that follow from the size, name, time and account of a job."""
    others = set(further(job.site, job.request))
    return {directive.key: directive for directive in directives(job) if directive not in others}


def interactive(job: Job) -> str:
    """Return the command line that gets an interactive allocation of a job's shape."""
    words = [str(directive) for directive in directives(job) if directive.name not in _BATCH_ONLY]
    return " ".join([_INTERACTIVE[job.site.scheduler], *words])


def further(site: Site, request: JobRequest) -> list[Directive]:
    """Return the site's directives, replaced or followed by those of the request."""
    wanted = [
        parse_directive(site, name if value is True else f"{name}={value}")
        for name, value in site.job.directives.items()
        if value
    ]
    wanted += _options(site, request)
    wanted += [parse_directive(site, text) for text in request.directives]
    return list({directive.key: directive for directive in wanted}.values())


def _options(site: Site, request: JobRequest) -> Iterator[Directive]:
    for field, name in OPTIONS[site.scheduler].items():
        value = getattr(request, field)
        if field == "constraint":
            if request.stage and site.local_disk and site.local_disk.constraint:
                value = _joined(site.local_disk.constraint, value)
            if value:
                value = _joined(str(site.job.directives.get(name, "")), value)
        if value:
            yield Directive(name, value)
    if request.job_output and site.scheduler == "pbs":
        yield Directive("j", "oe")  # as the other schedulers, which write both streams to it


def _joined(of_site: str, value: str) -> str:
    """Return a constraint that keeps the site's own, so that jobs get the same nodes."""
    return value if not of_site or of_site in value else f"{of_site}{value and '&'}{value}"


def _slurm(job: Job) -> list[Directive]:
    facts, request = job.site.job, job.request
    is_gres = facts.gpu_directive == "gres"
    return [
        *_values(
            ("job-name", job.name),
            ("nodes", str(request.nodes)),
            ("ntasks-per-node", str(job.tasks) if facts.task_directives else ""),
            ("cpus-per-task", str(job.cpus) if facts.task_directives and job.cpus else ""),
            ("gres", f"gpu:{job.gpus}" if is_gres else ""),
            ("gpus-per-node", str(job.gpus) if facts.gpu_directive and not is_gres else ""),
        ),
        *further(job.site, request),
        *_values(("time", job.time), ("account", request.account), ("signal", request.signal)),
    ]


def _pbs(job: Job) -> list[Directive]:
    chunk = [f"select={job.request.nodes}", f"mpiprocs={job.tasks}"]
    chunk += [f"{key}={value}" for key, value in job.site.job.select.items()]
    time = f"walltime={job.time}" if job.time else ""
    return [
        *_values(("N", job.name), ("l", ":".join(chunk))),
        *further(job.site, job.request),
        *_values(("l", time), ("A", job.request.account)),
    ]


def _flux(job: Job) -> list[Directive]:
    request = job.request
    return [
        *_values(("job-name", job.name), ("nodes", str(request.nodes))),
        Directive("exclusive"),
        *further(job.site, request),
        *_values(
            ("time-limit", f"{_seconds(job.time)}s" if job.time else ""),
            ("bank", request.account),
            ("signal", request.signal),
            ("setattr", "rdzv_get_en=0" if job.site.rdzv_get_disabled else ""),
        ),
    ]


def _values(*pairs: tuple[str, str]) -> Iterator[Directive]:
    return (Directive(name, value) for name, value in pairs if value)


def _seconds(time: str) -> int:
    hours, minutes, seconds = map(int, time.split(":"))
    return (hours * 60 + minutes) * 60 + seconds


_WRITERS: dict[str, Callable[[Job], list[Directive]]] = {
    "slurm": _slurm,
    "pbs": _pbs,
    "flux": _flux,
    "local": lambda _: [],
}
