"""The line of SIFWRIGHT_DEBUG=1."""

import os
import sys

from .devices import visible
from .ranks import NAMES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Iterable, List, Optional

    from .launchers import Launcher
    from .variables import Env

SHOWN = (
    *NAMES,
    "MASTER_ADDR",
    "MASTER_PORT",
    "OMP_NUM_THREADS",
    "CUDA_VISIBLE_DEVICES",
    "HIP_VISIBLE_DEVICES",
    "ROCR_VISIBLE_DEVICES",
    "NCCL_SOCKET_IFNAME",
    "GLOO_SOCKET_IFNAME",
    "NCCL_NET",
    "SIFWRIGHT_SITE",
)
# Folders of NCCL's and RCCL's loaders, and folders where sites and layers put the plugin. The
# folder of aws-ofi-rccl is in older images only.
PLUGIN_FOLDERS = (
    "/opt/aws-ofi-nccl/lib",
    "/opt/aws-ofi-rccl",
    "/opt/aws-ofi-rccl/lib",
    "/opt/rocm/lib",
    "/usr/lib",
    "/usr/lib64",
    "/usr/local/lib",
    "/usr/lib/{}-linux-gnu".format(os.uname().machine),
)
PLUGINS = ("libnccl-net", "librccl-net")


def print_line(env: "Env", launcher: "Optional[Launcher]") -> None:
    """Print one line about this rank in one write, so that the lines of many ranks do not mix."""
    if env.get("SIFWRIGHT_DEBUG") != "1":
        return
    fields = [
        "host={}".format(os.uname().nodename),
        "pid={}".format(os.getpid()),
        "launcher={}".format(launcher.name if launcher else "none"),
    ]
    fields += ["{}={}".format(name, env[name]) for name in SHOWN if name in env]
    devices = visible(env)
    fields += [
        "devices={}".format(",".join(devices.names) if devices and devices.names else "none"),
        "cpus={}".format(ranges(os.sched_getaffinity(0))),
        "plugins={}".format(",".join(plugins(env)) or "none"),
    ]
    sys.stderr.write("conda-python-distributed: {}\n".format(" ".join(fields)))
    sys.stderr.flush()


def ranges(numbers: "Iterable[int]") -> str:
    """Write 1, 2, 3, 7 as 1-3,7, the way taskset does."""
    joined: "List[List[int]]" = []
    for number in sorted(numbers):
        if joined and number == joined[-1][-1] + 1:
            joined[-1] = [joined[-1][0], number]
        else:
            joined.append([number])
    return ",".join("-".join(map(str, pair)) for pair in joined)


def plugins(env: "Env") -> "List[str]":
    """Return the files that NCCL or RCCL could load as network plugin."""
    folders = [folder for folder in env.get("LD_LIBRARY_PATH", "").split(":") if folder]
    paths: "List[str]" = []
    for folder in dict.fromkeys([*folders, *PLUGIN_FOLDERS]):
        names = sorted(os.listdir(folder)) if os.path.isdir(folder) else []
        paths += [
            "{}/{}".format(folder, name)
            for name in names
            if name.startswith(PLUGINS) and ".so" in name
        ]
    return paths
