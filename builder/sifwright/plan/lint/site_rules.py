"""Lint rules about a site's facts that make launches hang, crash or crawl, with sources.

A rule is one entry of `RULES`. It yields a `Violation` for each place that breaks it.
"""

from collections.abc import Callable, Iterator

from sifwright.catalog.model import Site
from sifwright.plan.lint.bind_rules import host_glibc, host_jansson
from sifwright.plan.lint.rule import Rule, Violation, of_host_mpi, on_several_nodes, placed

_HPE = "HewlettPackard/shs-ccl-docs@438fcce"
_MONITOR = "ofiwg/libfabric@af8ddbe prov/util/src/util_mem_monitor.c"
_OLCF = "olcf/olcf-user-docs@2745903 software/analytics/pytorch_frontier.rst"
# What NCCL brings itself; every other value of NCCL_NET names a plugin's network.
INTERNAL_NETWORKS = ("socket", "ib")
MIN_CQ_SIZE = 131072
_MONITORS = ("userfaultfd", "uffd", "kdreg2", "memhooks", "disabled")


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


def _alt_read(site: Site) -> Iterator[Violation]:
    for path, value in placed(site, "FI_CXI_RDZV_PROTO"):
        if value == "alt_read" and not site.rdzv_get_disabled:
            message = f"environment.{path[1]}: FI_CXI_RDZV_PROTO=alt_read without network.rdzv-get"
            fix = "Add 'rdzv-get: disabled' below 'network', or leave FI_CXI_RDZV_PROTO out."
            yield Violation(path=path, what=message, fix=fix)


def _alt_read_sizes(site: Site) -> Iterator[Violation]:
    if on_several_nodes(site, "FI_CXI_RDZV_PROTO")[1] != "alt_read":
        return
    for part in ("EAGER_SIZE", "GET_MIN", "THRESHOLD"):
        path, value = on_several_nodes(site, f"FI_CXI_RDZV_{part}")
        if value != "0":
            message = f"FI_CXI_RDZV_{part} is {value or 'not set'} with FI_CXI_RDZV_PROTO=alt_read"
            yield Violation(path=path, what=message, fix=f'Set FI_CXI_RDZV_{part}: "0".')


def _memhooks(site: Site) -> Iterator[Violation]:
    for path, value in placed(site, "FI_MR_CACHE_MONITOR"):
        # As any name it does not know, MEMHOOKS leaves libfabric its default: memhooks.
        if value.lower() == "memhooks" and site.vendor != "cpu":
            message = f"environment.{path[1]}: FI_MR_CACHE_MONITOR={value}"
            yield Violation(path=path, what=message, fix="Set userfaultfd.")


def _monitor_name(site: Site) -> Iterator[Violation]:
    for path, value in placed(site, "FI_MR_CACHE_MONITOR"):
        if value not in _MONITORS and value.lower() != "memhooks":
            message = f"environment.{path[1]}: libfabric knows no FI_MR_CACHE_MONITOR={value}"
            yield Violation(path=path, what=message, fix=f"One of: {', '.join(_MONITORS)}.")


def _kdreg2(site: Site) -> Iterator[Violation]:
    for path, value in placed(site, "FI_MR_CACHE_MONITOR"):
        if value == "kdreg2" and "container" in site.run_in:
            message = f"environment.{path[1]}: FI_MR_CACHE_MONITOR=kdreg2 in images"
            yield Violation(path=path, what=message, fix="Set userfaultfd.")


def _completion_queue(site: Site) -> Iterator[Violation]:
    path, value = on_several_nodes(site, "FI_CXI_DEFAULT_CQ_SIZE")
    if _slingshot(site) and (not value.isdecimal() or int(value) < MIN_CQ_SIZE):
        message = f"FI_CXI_DEFAULT_CQ_SIZE is {value or 'not set'} for launches on several nodes"
        fix = f"Set \"{MIN_CQ_SIZE}\", or say below 'not-set' why it is not set."
        yield Violation(path=path, what=message, fix=fix)


def _net_on_one_node(site: Site) -> Iterator[Violation]:
    if not (_slingshot(site) and site.scheduler == "slurm"):
        return
    for path, value in placed(site, "NCCL_NET"):
        if path[1] != "several-nodes" and value.lower() not in INTERNAL_NETWORKS:
            message = f"environment.{path[1]}: NCCL_NET={value} holds for launches on one node"
            yield Violation(path=path, what=message, fix="Move it to environment.several-nodes.")


def _mpich_gpu(site: Site) -> Iterator[Violation]:
    name = "MPICH_GPU_SUPPORT_ENABLED"
    for path, value in (*placed(site, name), *of_host_mpi(site, name)):
        if value == "1" and site.vendor == "nvidia" and site.mpi == "cray-mpich":
            message = f"{'.'.join(map(str, path[:-1]))}: MPICH_GPU_SUPPORT_ENABLED=1 beside NCCL"
            fix = 'Set "0" unless programs give MPI buffers on the GPU, and not while NCCL works.'
            yield Violation(path=path, what=message, fix=fix)


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
            yield Violation(
                path=path, what=message, fix="Add 'preload' with the site's libmpi_gtl_….so."
            )


def _visible_devices(site: Site) -> Iterator[Violation]:
    for name in ("CUDA", "HIP", "ROCR"):
        for path, value in placed(site, f"{name}_VISIBLE_DEVICES"):
            message = f"environment.{path[1]}: {name}_VISIBLE_DEVICES={value} for every rank"
            yield Violation(path=path, what=message, fix="Use gpu-visibility: own or all instead.")


RULES: tuple[Rule[Site], ...] = (
    Rule(
        name="alt-read",
        severity="error",
        why="the driver's rdzv_get_en must be 0, which the scheduler sets for a job on request."
        " Other launches are slow or unstable",
        source=f"{_HPE} nccl/nccl_tuning_guide.md; eth-cscs/alps-extended-images@2f16898"
        " Alps-Images/common/alps-runtime-warning.txt",
        find=_alt_read,
    ),
    Rule(
        name="alt-read-sizes",
        severity="warning",
        why="alt_read is meant for all messages: HPE lists it with these three at 0",
        source=f"{_HPE} ccl_env.sh",
        find=_alt_read_sizes,
    ),
    Rule(
        name="memhooks",
        severity="error",
        why="it intercepts allocations, and deadlocks with the network plugin of NCCL and RCCL",
        source=f"{_OLCF}; benkirk/derecho-pytorch-mpi; llnl/HPC-launcher@402af62",
        find=_memhooks,
    ),
    Rule(
        name="monitor-name",
        severity="warning",
        why="libfabric compares names as they are written. For an unknown name it keeps its"
        " default, memhooks",
        source=_MONITOR,
        find=_monitor_name,
    ),
    Rule(
        name="kdreg2",
        severity="warning",
        why="a libfabric that was built without linux/kdreg2.h, as those of images, caches no"
        " registrations with it",
        source=f"{_MONITOR}, configure.ac",
        find=_kdreg2,
    ),
    Rule(
        name="cache-monitor",
        severity="warning",
        why="a libfabric that was built without kdreg2 takes memhooks by itself, which deadlocks",
        source=f"{_MONITOR}; Lumi-supercomputer/LUMI-AI-Guide pull request 118",
        find=_unset("FI_MR_CACHE_MONITOR", "userfaultfd"),
    ),
    Rule(
        name="host-register",
        severity="warning",
        why="the provider's allocations on the GPU can deadlock collectives",
        source=f"{_HPE} nccl/nccl_tuning_guide.md, rccl/rccl_tuning_guide.md",
        find=_unset("FI_CXI_DISABLE_HOST_REGISTER", '"1"'),
    ),
    Rule(
        name="completion-queue",
        severity="warning",
        why="large jobs overflow the default completion queue",
        source=f"{_HPE} nccl/nccl_tuning_guide.md",
        find=_completion_queue,
    ),
    Rule(
        name="socket-interface",
        severity="warning",
        why="without it NCCL may meet, and fall back to TCP, on the management network",
        source=f"{_HPE} nccl/nccl_tuning_guide.md",
        find=_unset("NCCL_SOCKET_IFNAME", "hsn"),
    ),
    Rule(
        name="fine-grain",
        severity="warning",
        why="MI250X needs it for peer-to-peer access by adapters to large memory regions",
        source=f"{_HPE} rccl/rccl_tuning_guide.md; {_OLCF}",
        find=_unset(
            "HSA_FORCE_FINE_GRAIN_PCIE",
            '"1"',
            lambda site: _slingshot(site) and site.arch == "gfx90a",
        ),
    ),
    Rule(
        name="net-on-one-node",
        severity="error",
        why="Slurm configures no Slingshot network for a job of one node. So the plugin does not"
        " start, or the ranks use it although memory would do",
        source=f"{_OLCF}; {_HPE} ccl_env.sh",
        find=_net_on_one_node,
    ),
    Rule(
        name="mpich-gpu",
        severity="warning",
        why="MPI on GPU buffers and NCCL at the same time can deadlock",
        source="docs.nvidia.com/deeplearning/nccl/user-guide/docs/mpi.html;"
        " eth-cscs/cscs-docs@80abed1 docs/software/communication/nccl.md",
        find=_mpich_gpu,
    ),
    Rule(
        name="mpich-gpu-library",
        severity="error",
        why="with it PyTorch hands buffers on the GPU to an image's MPICH, which may not take them."
        " Cray's MPICH ends without its GTL library",
        source="pytorch/pytorch pull request 178323; olcf/olcf_containers_examples@032b962",
        find=_mpich_gpu_library,
    ),
    Rule(
        name="visible-devices",
        severity="error",
        why="all ranks get the same GPU, or what the scheduler gave each is lost",
        source="docs.isambard.ac.uk/user-documentation/guides/slurm; benkirk/derecho-pytorch-mpi"
        " profile.d/derecho-nccl-aws-ofi.cfg unsets it",
        find=_visible_devices,
    ),
    Rule(
        name="host-glibc",
        severity="error",
        why="the parts of glibc must be of one version, and the image's programs need its own",
        source="Lumi-supercomputer/LUMI-EasyBuild-contrib pull request 50; PawseySC/"
        "pawsey-spack-config@25b3ab1 systems/setonix/templates/modules/modulefile.lua",
        find=host_glibc,
    ),
    Rule(
        name="host-jansson",
        severity="warning",
        why="the host's copy can lack symbols that the image's libraries want",
        source="Lumi-supercomputer/LUMI-EasyBuild-containers@af6fb1c, PyTorch 2.7.1 for ROCm 6.2.4",
        find=host_jansson,
    ),
)
