"""Lint rules about a site's facts that make launches hang, crash or crawl, with sources.

A rule is one function in `RULES`, and one entry of rules.yaml. It yields a `Violation` for each
place that breaks it.
"""

from collections.abc import Callable, Iterator
from pathlib import PurePosixPath

from sifwright.catalog.model import Site
from sifwright.catalog.yaml_document import Path
from sifwright.plan.lint.rule import Violation, of_host_mpi, on_several_nodes, placed

# Networks of NCCL itself; every other value of NCCL_NET names a plugin's network.
INTERNAL_NETWORKS = ("socket", "ib")
MIN_CQ_SIZE = 131072
_MONITORS = ("userfaultfd", "uffd", "kdreg2", "memhooks", "disabled")
# Parts of glibc, which must all be of one version.
_GLIBC = ("ld-linux", "libc.so", "libdl.so", "libm.so", "libpthread.so", "libresolv.so", "librt.so")
_JANSSON = ("libjansson.so",)
_ABOVE = ("/", "/usr")
_FOLDERS = ("/lib", "/usr/lib")
_FOLDERS_64 = ("/lib64", "/usr/lib64")
_TRIPLES = ("x86_64-linux-gnu", "aarch64-linux-gnu")


def _slingshot(site: Site) -> bool:
    return site.fabric == "slingshot" and site.vendor != "cpu"


def _unset(
    name: str, value: str, suits: Callable[[Site], bool] = _slingshot
) -> Callable[[Site], Iterator[Violation]]:
    """Make a rule for sites that should set a variable for launches on several nodes."""

    def find(site: Site) -> Iterator[Violation]:
        path, setting = on_several_nodes(site, name)
        if suits(site) and not setting:
            message = f"{name} is not set for launches on several nodes"
            fix = f"Set {name}: {value}, or say below 'not-set' why it is not set."
            yield Violation(path=path, what=message, fix=fix)

    return find


def _wrong(
    name: str, is_wrong: Callable[[Site, str, str], bool], text: str, fix: str = ""
) -> Callable[[Site], Iterator[Violation]]:
    """Make a rule about each value of a variable in the site's environment; `{}` is the value.

    `is_wrong` gets the site, the group of the variable and its value.
    """

    def find(site: Site) -> Iterator[Violation]:
        for path, value in placed(site, name):
            if is_wrong(site, str(path[1]), value):
                message = f"environment.{path[1]}: {text.format(value)}"
                yield Violation(path=path, what=message, fix=fix)

    return find


def _alt_read_sizes(site: Site) -> Iterator[Violation]:
    if on_several_nodes(site, "FI_CXI_RDZV_PROTO")[1] != "alt_read":
        return
    for part in ("EAGER_SIZE", "GET_MIN", "THRESHOLD"):
        path, value = on_several_nodes(site, f"FI_CXI_RDZV_{part}")
        if value != "0":
            message = f"FI_CXI_RDZV_{part} is {value or 'not set'} with FI_CXI_RDZV_PROTO=alt_read"
            yield Violation(path=path, what=message, fix=f'Set FI_CXI_RDZV_{part}: "0".')


def _completion_queue(site: Site) -> Iterator[Violation]:
    path, value = on_several_nodes(site, "FI_CXI_DEFAULT_CQ_SIZE")
    if _slingshot(site) and (not value.isdecimal() or int(value) < MIN_CQ_SIZE):
        message = f"FI_CXI_DEFAULT_CQ_SIZE is {value or 'not set'} for launches on several nodes"
        fix = f"Set \"{MIN_CQ_SIZE}\", or say below 'not-set' why it is not set."
        yield Violation(path=path, what=message, fix=fix)


def _is_for_one_node(site: Site, group: str, network: str) -> bool:
    is_plugin = network.lower() not in INTERNAL_NETWORKS
    return _slingshot(site) and site.scheduler == "slurm" and group != "several-nodes" and is_plugin


def _mpich_gpu(site: Site) -> Iterator[Violation]:
    name = "MPICH_GPU_SUPPORT_ENABLED"
    for path, value in (*placed(site, name), *of_host_mpi(site, name)):
        if value == "1" and site.vendor == "nvidia" and site.mpi == "cray-mpich":
            message = f"{'.'.join(map(str, path[:-1]))}: MPICH_GPU_SUPPORT_ENABLED=1 beside NCCL"
            yield Violation(path=path, what=message)


def _mpich_gpu_library(site: Site) -> Iterator[Violation]:
    name = "MPICH_GPU_SUPPORT_ENABLED"
    if "container" not in site.run_in:
        return
    for path, value in placed(site, name):
        if value == "1":
            message = f"environment.{path[1]}: {name}=1 for the MPI of images"
            yield Violation(path=path, what=message, fix="Move it to mpi.environment.")
    for path, value in of_host_mpi(site, name):
        if value == "1" and site.host_mpi and not site.host_mpi.preload:
            message = f"{'.'.join(map(str, path[:-1]))}: {name}=1 without mpi.host.preload"
            fix = "Add 'preload' with the site's libmpi_gtl_….so."
            yield Violation(path=path, what=message, fix=fix)


def _visible_devices(site: Site) -> Iterator[Violation]:
    for name in ("CUDA", "HIP", "ROCR"):
        for path, value in placed(site, f"{name}_VISIBLE_DEVICES"):
            message = f"environment.{path[1]}: {name}_VISIBLE_DEVICES={value} for every rank"
            yield Violation(path=path, what=message)


def _masked_gpus(site: Site) -> Iterator[Violation]:
    """Yield what gives each rank of an AMD site a ROCR_VISIBLE_DEVICES of its own."""
    path: Path = ("launch", site.launcher, "task-per-gpu")
    options = site.launch.get(site.launcher)
    if site.gpu_visibility == "own":
        path = ("gpu-visibility",)
    elif options is None or "--gpus-per-task=1" not in options.task_per_gpu:
        return
    if site.vendor == "amd":
        message = f"{'.'.join(map(str, path))}: each rank has a ROCR_VISIBLE_DEVICES of its own"
        yield Violation(path=path, what=message)


def _cache_locks(site: Site) -> Iterator[Violation]:
    if site.cache and site.scheduler != "local":
        message = "cache: HF_HOME of jobs is below it, on a file system of all nodes"
        yield Violation(path=("cache",), what=message)


def _searched(site: Site) -> tuple[str, ...]:
    """Return the folders in which an image looks for libraries, and glibc for its loader."""
    of_triples = (f"{folder}/{triple}" for folder in _FOLDERS for triple in _TRIPLES)
    # On aarch64 the loader is in /lib, and Debian searches no lib64.
    of_64 = () if site.processor == "aarch64" else _FOLDERS_64
    return (*_FOLDERS, *of_triples, *of_64)


def _binds(site: Site) -> Iterator[tuple[Path, str]]:
    for number, bind in enumerate(site.binds):
        yield ("container", "binds", number), bind
    for number, bind in enumerate(site.host_mpi.binds if site.host_mpi else ()):
        yield ("mpi", "host", "binds", number), bind


def _over(site: Site, names: tuple[str, ...]) -> Iterator[tuple[Path, str]]:
    """Yield binds that put one of these files, or its whole folder, into a library folder."""
    searched = _searched(site)
    for path, bind in _binds(site):
        source, _, target = bind.partition(":")
        path_inside = PurePosixPath(target or source)
        of_file = str(path_inside.parent) in searched and path_inside.name.startswith(names)
        if of_file or str(path_inside) in (*_ABOVE, *searched):
            yield path, source


def _key(path: Path) -> str:
    return ".".join(str(part) for part in path[:-1])


def _host_glibc(site: Site) -> Iterator[Violation]:
    """Yield binds and libraries that put the host's glibc over that of an image."""
    for path, source in _over(site, _GLIBC):
        message = f"{_key(path)}: the host's {source} hides the image's own"
        fix = f"Leave it out, or bind it elsewhere: {source}:/host{source}."
        yield Violation(path=path, what=message, fix=fix)
    for number, file in enumerate(site.host_mpi.libraries if site.host_mpi else ()):
        if PurePosixPath(file).name.startswith(_GLIBC):
            message = f"mpi.host.libraries: the host's {file} is found before the image's own"
            path = ("mpi", "host", "libraries", number)
            yield Violation(path=path, what=message, fix="Leave it out.")


def _host_jansson(site: Site) -> Iterator[Violation]:
    """Yield binds that put the host's libjansson over that of an image."""
    for path, _ in _over(site, _JANSSON):
        message = f"{_key(path)}: the host's libjansson hides a newer one in the image"
        yield Violation(path=path, what=message)


RULES: dict[str, Callable[[Site], Iterator[Violation]]] = {
    "alt-read": _wrong(
        "FI_CXI_RDZV_PROTO",
        lambda site, _, value: value == "alt_read" and not site.rdzv_get_disabled,
        "FI_CXI_RDZV_PROTO={} without network.rdzv-get",
    ),
    "alt-read-sizes": _alt_read_sizes,
    # libfabric ignores MEMHOOKS, as any unknown name, and keeps its default: memhooks.
    "memhooks": _wrong(
        "FI_MR_CACHE_MONITOR",
        lambda site, _, value: value.lower() == "memhooks" and site.vendor != "cpu",
        "FI_MR_CACHE_MONITOR={}",
    ),
    "monitor-name": _wrong(
        "FI_MR_CACHE_MONITOR",
        lambda _site, _, value: value not in _MONITORS and value.lower() != "memhooks",
        "libfabric knows no FI_MR_CACHE_MONITOR={}",
        f"One of: {', '.join(_MONITORS)}.",
    ),
    "kdreg2": _wrong(
        "FI_MR_CACHE_MONITOR",
        lambda site, _, value: value == "kdreg2" and "container" in site.run_in,
        "FI_MR_CACHE_MONITOR={} in images",
    ),
    "cache-monitor": _unset("FI_MR_CACHE_MONITOR", "userfaultfd"),
    "host-register": _unset("FI_CXI_DISABLE_HOST_REGISTER", '"1"'),
    "completion-queue": _completion_queue,
    "socket-interface": _unset("NCCL_SOCKET_IFNAME", "hsn"),
    "fine-grain": _unset(
        "HSA_FORCE_FINE_GRAIN_PCIE",
        '"1"',
        lambda site: _slingshot(site) and site.arch == "gfx90a",
    ),
    "net-on-one-node": _wrong(
        "NCCL_NET",
        _is_for_one_node,
        "NCCL_NET={} holds for launches on one node",
    ),
    "mpich-gpu": _mpich_gpu,
    "mpich-gpu-library": _mpich_gpu_library,
    "visible-devices": _visible_devices,
    "masked-gpus": _masked_gpus,
    "cache-locks": _cache_locks,
    "host-glibc": _host_glibc,
    "host-jansson": _host_jansson,
}
