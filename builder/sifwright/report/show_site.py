"""One site in plain words, with the reason and source of what it sets; all sites as a table."""

from collections.abc import Iterable, Iterator, Mapping
from itertools import chain, repeat

from sifwright.catalog.model import JobFacts, Reason, Site
from sifwright.catalog.site_contradictions import default_partition
from sifwright.plan import site_policy
from sifwright.system.terminal import ranges

_VENDORS = {"amd": "AMD", "nvidia": "NVIDIA", "cpu": "no GPUs"}
_GROUPS = {
    "always": "for every launch",
    "one-node": "for launches on one node",
    "several-nodes": "for launches on several nodes",
}
_PURGE = {"plain": "after module purge", "force": "after module --force purge"}
_SEEN = {"own": "its own GPU only", "all": "all GPUs of its node"}
HEADS = ("site", "GPUs", "per node", "scheduler", "fabric", "image", "what it is")


def row(site: Site) -> tuple[str, ...]:
    """Return what the table of all sites has of one, in the order of its heads."""
    started = site.launcher if site.launcher != site.scheduler else ""
    return (
        site.name,
        " ".join(filter(None, (site.vendor, site.arch))),
        str(site.node.gpus or "-"),
        "+".join(filter(None, (site.scheduler, started))),
        site.fabric if site.fabric != "none" else "-",
        site.image,
        site.description,
    )


def site_lines(site: Site) -> Iterator[str]:
    """Yield everything that sifwright knows of a site."""
    yield f"{site.name}: {site.description}"
    sections = {
        "nodes": _nodes(site),
        "network": _network(site),
        "jobs": _jobs(site),
        "images": _images(site),
        "on the host": _host(site),
    }
    for title, facts in sections.items():
        lines = (f"  {name:<19} {text}".rstrip() for name, text in facts if text)
        yield from titled(title, lines)
    yield from _environment(site)
    for title, texts in (
        ("limits", site.limits),
        ("not verified", site.unverified),
        ("read in", site.sources),
    ):
        yield from titled(title, (f"  {text}" for text in texts))


def titled(title: str, lines: Iterable[str]) -> Iterator[str]:
    """Yield lines below their title; nothing for no lines."""
    for number, line in enumerate(lines):
        if number == 0:
            yield f"\n{title}"
        yield line


def _nodes(site: Site) -> list[tuple[str, str]]:
    node, driver = site.node, site.driver
    count = f"{node.gpus} on each node, " if node.gpus else ""
    arch = f", {site.arch}" if site.arch else ""
    cuda = f", runs CUDA {driver.cuda}" if driver.cuda else ""
    per_task = f", {node.cpus_per_task} for each task with a GPU" if node.cpus_per_task else ""
    return [
        ("GPUs", f"{count}{_VENDORS[site.vendor]}{arch}"),
        ("driver", f"{driver.version or 'unknown'}{cuda}" if driver.version or cuda else ""),
        ("processor", site.processor),
        ("CPUs for jobs", f"{node.cpus}{per_task}" if node.cpus else ""),
        *(
            (f"CPUs of rank {n}", f"{_cpus(mask)} ({mask})")
            for n, mask in enumerate(node.cpu_masks)
        ),
        ("a rank sees", _SEEN.get(site.gpu_visibility, "")),
    ]


def _cpus(mask: str) -> str:
    """Return the CPUs of a mask as ranges: 0xfe is 1-7."""
    bits = f"{int(mask, 16):b}"[::-1]
    return ranges(number for number, bit in enumerate(bits) if bit == "1")


def _network(site: Site) -> list[tuple[str, str]]:
    nics = f", {site.nics} adapters on each node" if site.nics else ""
    brings = "that MPI, with jobscript --host-mpi"
    disabled = "disabled by the scheduler, for FI_CXI_RDZV_PROTO=alt_read"
    expected = ", ".join(site.network_expect)
    return [
        ("fabric", f"{site.fabric}{nics}" if site.fabric != "none" else ""),
        ("ranks meet on", site.interface),
        ("host's libfabric", site.libfabric),
        ("host's MPI", f"{site.mpi} {site.mpi_version}".rstrip() if site.mpi != "none" else ""),
        ("in containers", f"{brings} ({site.host_mpi.source})" if site.host_mpi else ""),
        ("rendezvous GET", disabled if site.rdzv_get_disabled else ""),
        ("check-comm wants", f"{expected} in NCCL's log" if expected else ""),
    ]


def _jobs(site: Site) -> list[tuple[str, str]]:
    job = site.job
    launchers = [site.launcher if site.launcher != "local" else "torchrun", *site.other_launchers]
    return [
        ("scheduler", site.scheduler if site.scheduler != "local" else "none"),
        ("ranks start with", " or ".join(launchers)),
        *_launchers(site),
        ("ranks run in", ", ".join(site.run_in)),
        *_partitions(site),
        ("account", "must be given" if job.needs_account else ""),
        ("time", f"{job.time}, unless asked for another" if job.time else ""),
        ("directives", ", ".join(_directives(job))),
        ("of each node", ", ".join(f"{key}={value}" for key, value in job.select.items())),
    ]


def _launchers(site: Site) -> Iterator[tuple[str, str]]:
    for launcher, options in site.launch.items():
        for message, words in (("GPU", options.task_per_gpu), ("node", options.task_per_node)):
            yield f"{launcher}, per {message}", " ".join(words)
        yield f"{launcher} speaks", ", ".join(options.pmi)
        if options.avoid:
            source = f" ({options.source})" if options.source else ""
            yield f"avoid {launcher}", f"{options.avoid}{source}"


def _partitions(site: Site) -> Iterator[tuple[str, str]]:
    lists = ((default_partition(site), "to", site.partitions), ("qos", "qos", site.qos))
    for key, title, known in lists:
        for name, text in known.items():
            default = " (default)" if name == site.job.directives.get(key) else ""
            yield f"{title} {name}", f"{text}{default}"


def _directives(job: JobFacts) -> Iterator[str]:
    yield from _pairs(job.directives)
    if job.gpu_directive:
        yield "gres=gpu:N" if job.gpu_directive == "gres" else f"{job.gpu_directive}=N"


def _pairs(directives: Mapping[str, str | bool]) -> Iterator[str]:
    return (name if value is True else f"{name}={value}" for name, value in directives.items())


def _images(site: Site) -> list[tuple[str, str]]:
    return [
        ("default", site.image),
        ("layout", f"{site.layout}, {site.compression}"),
        *site_policy.facts(site),
        ("jobs that build", ", ".join(_pairs(site.builds.directives)) if site.builds else ""),
        *(
            (layer, ", ".join(f"{key} {value}" for key, value in options.items()))
            for layer, options in site.options.items()
        ),
        ("for docker.io", site.registry_mirror),
        *(_containers(site) if "container" in site.run_in else ()),
    ]


def _containers(site: Site) -> list[tuple[str, str]]:
    known = f"{site.container_product} {site.container_version}".strip()
    return [
        ("run with", f"{site.container_program} ({known})" if known else site.container_program),
        *zip(chain(["binds, if there"], repeat(" ")), site.binds, strict=False),
        ("central images", site.central),
        ("modules bring", ", ".join(site.commands)),
    ]


def _host(site: Site) -> list[tuple[str, str]]:
    modules = site.modules
    purged = f" {_PURGE[modules.purge]}" if modules.purge else ""
    groups = ("container", modules.container), ("host", modules.host)
    return [
        *((f"modules, {name}", " ".join(group) + purged) for name, group in groups if group),
        ("caches", site.cache),
        ("disk of the nodes", site.local_disk.path if site.local_disk else ""),
        *site.proxies.items(),
    ]


def _environment(site: Site) -> Iterator[str]:
    """Yield the variables of the site's file by their groups, each with its reason and source."""
    given, host = site.environment, site.host_mpi
    own = "environment with the host's MPI (jobscript"
    groups: list[tuple[str, Mapping[str, str], Mapping[str, Reason]]] = [
        (f"environment {_GROUPS[name]}, where it is not set already", values, reasons)
        for name, values in given.groups.items()
        for reasons in [given.reasons.get(name, {})]
    ]
    groups += [(f"{own} --run-in host, --host-mpi)", site.mpi_environment, site.mpi_reasons)]
    groups += [(f"{own} --host-mpi)", host.environment, host.reasons)] if host else []
    for title, values, reasons in groups:
        lines = [(f"  {name}={values[name]}", reasons.get(name)) for name in values]
        yield from titled(title, _because(lines))
    unset = [(f"  {name}", reason) for name, reason in given.not_set.items()]
    yield from titled("environment that is left unset", _because(unset))


def _because(lines: Iterable[tuple[str, Reason | None]]) -> Iterator[str]:
    for line, reason in lines:
        yield line
        if reason and reason.why:
            yield f"      {reason.why}"
        if reason and reason.source:
            yield f"      read in {reason.source}"
