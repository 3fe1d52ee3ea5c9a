"""For every rule about a site: what breaks it, and the same without the mistake."""

import json
from dataclasses import dataclass
from typing import Any

from tests.unit.broken import SITE, Change, layers, write

# An image that any site can have.
BARE = layers("base")
# Variables of a site with Slingshot and GPUs, so that no rule complains.
GOOD_ENVIRONMENT = {
    "FI_MR_CACHE_MONITOR": "userfaultfd",
    "FI_CXI_DISABLE_HOST_REGISTER": "1",
    "FI_CXI_DEFAULT_CQ_SIZE": "131072",
    "HSA_FORCE_FINE_GRAIN_PCIE": "1",
    "NCCL_SOCKET_IFNAME": "hsn",
}
# Its tool has a build for such a site.
FACTS: dict[str, Any] = {
    "options": {"tool": {"wheel": "cu126"}},
    "vendor": "nvidia",
    "arch": "sm_80",
    "scheduler": "slurm",
    "launcher": "srun",
    "image": "small",
    "mpi": {"name": "cray-mpich"},
    "network": {"fabric": "slingshot", "rdzv-get": "disabled"},
}


@dataclass(frozen=True, kw_only=True)
class Broken:
    """Changes that break a rule, that often and there, and changes that do not."""

    bad: tuple[Change, ...]
    good: tuple[Change, ...]
    hits: int = 1
    where: str = "defs/sites/here.yaml:"
    settings: tuple[str, ...] = ()


def site(
    always: dict[str, str | None] | None = None,
    one_node: dict[str, str] | None = None,
    several: dict[str, str] | None = None,
    **facts: Any,
) -> Change:
    """Return a good site with Slingshot and these values; a variable that is None is left out."""
    groups = {
        "always": {k: v for k, v in (GOOD_ENVIRONMENT | (always or {})).items() if v is not None},
        "one-node": one_node or {},
        "several-nodes": several or {},
    }
    lines = ["description: A cluster to test with"]
    given = FACTS | {key.replace("_", "-"): value for key, value in facts.items()}
    lines += [f"{key}: {json.dumps(value)}" for key, value in given.items()]
    lines.append("environment:")
    for group, values in groups.items():
        lines.append(f"  {group}:{'' if values else ' {}'}")
        lines += [f"    {name}: {json.dumps(value)}" for name, value in values.items()]
    return write(SITE, "\n".join(lines) + "\n")


def _case(bad: Change, good: Change | None = None, hits: int = 1) -> Broken:
    return Broken(bad=(BARE, bad), good=(BARE, good or site()), hits=hits)


def _bind(bad: str, good: str, **facts: Any) -> Broken:
    return _case(
        site(container={"binds": [bad]}, **facts), site(container={"binds": [good]}, **facts)
    )


_QUIET = {"fabric": "slingshot"}
_ALT_READ: dict[str, str | None] = {
    "FI_CXI_RDZV_PROTO": "alt_read",
    "FI_CXI_RDZV_EAGER_SIZE": "0",
    "FI_CXI_RDZV_GET_MIN": "0",
    "FI_CXI_RDZV_THRESHOLD": "0",
}
_GPU: dict[str, str | None] = {"MPICH_GPU_SUPPORT_ENABLED": "1"}


def _host(always: dict[str, str | None], **host: Any) -> dict[str, Any]:
    """Return an MPI of the site that containers can have."""
    host = {"source": "us", "library-path": ["/opt/mpi/lib"], **host}
    return {"name": "cray-mpich", "environment": always, "host": host}


_PER_TASK = {"srun": {"task-per-gpu": ["--gpus-per-task=1"]}}
_OWN: dict[str, Any] = {"gpu-visibility": "own"}
AMD: dict[str, Any] = {"vendor": "amd", "arch": "gfx90a"}
SITES = {
    "alt-read": _case(site(_ALT_READ, network=_QUIET), site(_ALT_READ)),
    "alt-read of several nodes": _case(
        site(several={"FI_CXI_RDZV_PROTO": "alt_read"}, network=_QUIET),
        site({"FI_CXI_RDZV_PROTO": "default"}, network=_QUIET),
    ),
    "alt-read-sizes": _case(
        site({**_ALT_READ, "FI_CXI_RDZV_GET_MIN": "1024", "FI_CXI_RDZV_THRESHOLD": None}),
        site(_ALT_READ),
        hits=2,
    ),
    "memhooks": _case(site({"FI_MR_CACHE_MONITOR": "memhooks"})),
    "memhooks in capitals": _case(
        site({"FI_MR_CACHE_MONITOR": "MemHooks"}), site({"FI_MR_CACHE_MONITOR": "disabled"})
    ),
    "monitor-name": _case(site({"FI_MR_CACHE_MONITOR": "USERFAULTFD"})),
    "monitor-name of nobody": _case(
        site({"FI_MR_CACHE_MONITOR": "kdreg"}), site({"FI_MR_CACHE_MONITOR": "uffd"})
    ),
    "kdreg2": _case(site({"FI_MR_CACHE_MONITOR": "kdreg2"})),
    "kdreg2 in no container": _case(
        site({"FI_MR_CACHE_MONITOR": "kdreg2"}),
        site({"FI_MR_CACHE_MONITOR": "kdreg2"}, run_in=["host"]),
    ),
    "memhooks on one node": _case(
        site({"FI_MR_CACHE_MONITOR": None}, {"FI_MR_CACHE_MONITOR": "memhooks"}),
        site({"FI_MR_CACHE_MONITOR": None}, {"FI_MR_CACHE_MONITOR": "kdreg2"}),
    ),
    "cache-monitor": _case(site({"FI_MR_CACHE_MONITOR": None})),
    "cache-monitor of one node": _case(
        site({"FI_MR_CACHE_MONITOR": None}, {"FI_MR_CACHE_MONITOR": "kdreg2"}),
        site({"FI_MR_CACHE_MONITOR": None}, several={"FI_MR_CACHE_MONITOR": "kdreg2"}),
    ),
    "cache-monitor of other networks": _case(
        site({"FI_MR_CACHE_MONITOR": None}),
        site({"FI_MR_CACHE_MONITOR": None}, network={"fabric": "infiniband"}),
    ),
    "host-register": _case(site({"FI_CXI_DISABLE_HOST_REGISTER": None})),
    "completion-queue": _case(site({"FI_CXI_DEFAULT_CQ_SIZE": "1024"})),
    "completion-queue unset": _case(
        site({"FI_CXI_DEFAULT_CQ_SIZE": None}), site({"FI_CXI_DEFAULT_CQ_SIZE": "262144"})
    ),
    "socket-interface": _case(site({"NCCL_SOCKET_IFNAME": None})),
    "fine-grain": _case(
        site({"HSA_FORCE_FINE_GRAIN_PCIE": None}, **AMD),
        site({"HSA_FORCE_FINE_GRAIN_PCIE": None}, vendor="amd", arch="gfx942"),
    ),
    "net-on-one-node": _case(
        site({"NCCL_NET": "AWS Libfabric"}),
        site(one_node={"NCCL_NET": "Socket"}, several={"NCCL_NET": "AWS Libfabric"}),
    ),
    "net-on-one-node itself": _case(
        site(one_node={"NCCL_NET": "OFI"}),
        site(one_node={"NCCL_NET": "OFI"}, scheduler="pbs", launcher="mpiexec"),
    ),
    "mpich-gpu": _case(
        site({"MPICH_GPU_SUPPORT_ENABLED": "1"}), site({"MPICH_GPU_SUPPORT_ENABLED": "0"})
    ),
    "mpich-gpu of AMD": _case(
        site({"MPICH_GPU_SUPPORT_ENABLED": "1"}), site({"MPICH_GPU_SUPPORT_ENABLED": "1"}, **AMD)
    ),
    "mpich-gpu of the host's": _case(site(mpi=_host(_GPU)), site(mpi=_host({}))),
    "mpich-gpu-library": _case(site(_GPU), site(_GPU, run_in=["host"])),
    "mpich-gpu-library of the image's": _case(site(_GPU), site(mpi=_host(_GPU, preload="/gtl.so"))),
    "mpich-gpu-library of the host's": _case(
        site(mpi=_host(_GPU)), site(mpi=_host(_GPU, preload="/gtl.so"))
    ),
    "mpich-gpu-library of its container": _case(
        site(mpi=_host({}, environment=_GPU)),
        site(mpi=_host({}, environment={"MPICH_GPU_SUPPORT_ENABLED": "0"})),
    ),
    "visible-devices": _case(site({"CUDA_VISIBLE_DEVICES": "0,1"}), site(**_OWN)),
    "masked-gpus": _case(site(**AMD, **_OWN), site(**AMD)),
    "masked-gpus by srun": _case(site(launch=_PER_TASK, **AMD), site(launch=_PER_TASK)),
    "cache-locks": _case(site(cache="/scratch/$USER")),
    "host-glibc": _bind("/lib64/libm.so.6", "/lib64/libm.so.6:/host/libm.so.6"),
    "host-glibc by another name": _bind("/opt/x:/usr/lib64/libm.so.6", "/opt/x"),
    "host-glibc with its folder": _bind("/usr/lib64", "/usr/lib64:/host/usr/lib64"),
    "host-glibc on aarch64": _bind("/usr/lib", "/usr/lib64", processor="aarch64"),
    "host-glibc of the host's MPI": _case(
        site(mpi=_host({}, binds=["/usr/lib64"])),
        site(mpi=_host({}, binds=["/usr/lib64:/host/lib64"])),
    ),
    "host-glibc beside the host's MPI": _case(
        site(mpi=_host({}, libraries=["/lib64/libm.so.6"])),
        site(mpi=_host({}, libraries=["/lib64/libtinfo.so.6"])),
    ),
    "host-jansson": _bind("/usr/lib64/libjansson.so.4", "/usr/lib64/libcxi.so.1"),
    **{
        f"{rule} with {folder}": _bind(f"/host:{folder}", f"/host:/host{folder}")
        for rule in ("host-glibc", "host-jansson")
        for folder in (
            *("/", "/usr", "/lib", "/lib64", "/usr/lib", "/usr/lib64/"),
            *("/lib/x86_64-linux-gnu", "/usr/lib/x86_64-linux-gnu"),
            *("/lib/aarch64-linux-gnu", "/usr/lib/aarch64-linux-gnu"),
        )
    },
}
