"""The GPUs this process can see, and the number of its own among them."""

import os
import sys

from . import nvidia
from .errors import LaunchError
from .variables import is_number, shown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Dict, List, Optional, Tuple

    from .ranks import Ranks
    from .variables import Env

# Innermost first: HIP numbers the devices that ROCR leaves over. It reads CUDA's variable if its
# own is unset. Sources: "GPU isolation techniques" of the ROCm documentation, and "CUDA environment
# variables" of the CUDA C++ programming guide. The last of each is the one to set where none is.
VISIBILITY = {
    "amd": ("HIP_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES"),
    "nvidia": ("CUDA_VISIBLE_DEVICES",),
}
# Values of Slurm's gres/gpu plugin for a task without a GPU.
NO_DEVICES = ("", "-1", "NoDevFiles")


class Visible:
    """The devices a process sees: `names` as its variable lists them, `variable` empty for all."""

    def __init__(self, variable: str, names: "List[str]") -> None:
        self.variable = variable
        self.names = names

    @property
    def of_mig(self) -> bool:
        """Return if they are parts of GPUs; CUDA shows a process the first (user guide of MIG)."""
        return any(name.startswith("MIG-") for name in self.names)

    @property
    def usable(self) -> int:
        """Return the number of devices that one process can use."""
        return 1 if self.of_mig else len(self.names)


def vendor(env: "Env") -> str:
    """Return the vendor of the GPUs: by the site's file, else by the driver that is here."""
    if "SIFWRIGHT_VENDOR" in env:
        return env["SIFWRIGHT_VENDOR"]
    if os.path.exists("/dev/kfd"):
        return "amd"
    return "nvidia" if os.path.exists("/dev/nvidiactl") else "cpu"


def visible(env: "Env") -> "Optional[Visible]":
    """Return the visible devices; None where GPUs play no part.

    Raises `LaunchError` for variables that contradict each other.
    """
    names = VISIBILITY.get(vendor(env))
    if not names:
        return None
    here = [Visible(name, listed(env[name])) for name in names if name in env]
    if not here:
        return Visible("", installed(vendor(env)))
    if len(here) > 1 and here[-1].variable == "ROCR_VISIBLE_DEVICES":
        check_nested(env, inner=here[0], outer=here[-1])
    if vendor(env) == "nvidia":
        here[0].names = nvidia.named(env, here[0].names, nvidia.files())
    return here[0]


def listed(value: str) -> "List[str]":
    """Read a list as the drivers do: it ends at the first invalid entry."""
    numbers: "List[str]" = []
    for name in value.split(","):
        if name.strip() in NO_DEVICES:
            break
        numbers.append(name.strip())
    return numbers


def installed(of: str) -> "List[str]":
    """Return the numbers of the devices with files."""
    count = nvidia.files() if of == "nvidia" else amd_nodes()
    return [str(index) for index in range(count)]


def amd_nodes(folder: str = "/sys/class/kfd/kfd/topology/nodes") -> int:
    """Count the nodes of the driver's topology that have compute units: the others are CPUs.

    Nodes that a job's cgroup does not allow cannot be read (kfd_topology.c of the Linux kernel).
    """
    count = 0
    for node in os.listdir(folder) if os.path.isdir(folder) else ():
        try:
            with open("{}/{}/properties".format(folder, node), encoding="ascii") as lines:
                values = dict(line.split(None, 1) for line in lines if " " in line)
        except OSError:
            continue
        count += values.get("simd_count", "0").strip() != "0"
    return count


def check_nested(env: "Env", inner: Visible, outer: Visible) -> None:
    """Refuse a number beyond what the outer variable leaves: the process would see no device."""
    beyond = [name for name in inner.names if is_number(name) and int(name) >= len(outer.names)]
    if beyond:
        message = "{} leaves {} devices, and {} asks for number {} among them: unset one of the two"
        texts = shown(env, outer.variable), len(outer.names), shown(env, inner.variable), beyond[0]
        raise LaunchError(message.format(*texts))


def choose(env: "Env", ranks: "Ranks", *, preset: bool) -> "Dict[str, str]":
    """Return LOCAL_RANK as the number of the own device among the visible ones.

    Where the scheduler shows each task one device, that is number 0. A preset one stays. With
    SIFWRIGHT_GPU_VISIBILITY=own, also the variable that hides the others' devices. Raises
    `LaunchError`, on all ranks of the node alike, if there are fewer devices than ranks.
    """
    name, number = device(env, ranks, preset=preset)
    hidden = {name[0]: name[1]} if name else {}
    return dict(hidden, LOCAL_RANK=str(number))


def to_compare(env: "Env") -> str:
    """Return LOCAL_RANK where no two ranks of a node may have the same: it sees several GPUs."""
    devices = visible(env)
    return env["LOCAL_RANK"] if devices and len(devices.names) > 1 else ""


def device(env: "Env", ranks: "Ranks", *, preset: bool) -> "Tuple[Optional[Tuple[str, str]], int]":
    """Return what to hide the others' devices with, if asked to, and the number of the own one."""
    devices = visible(env)
    if not devices or not devices.names:
        return None, ranks.local_rank
    count, wanted = len(devices.names), ranks.local_world_size
    if preset:
        check_preset(env, ranks, devices)
        return None, ranks.local_rank
    if count == 1 and not shared_by_all(env, ranks, devices):
        return None, 0
    if count < wanted:
        raise LaunchError(too_few(env, devices, wanted))
    own = env.get("SIFWRIGHT_GPU_VISIBILITY") == "own" or devices.of_mig
    # A task that is alone on its node may use all of its devices.
    if own and wanted > 1:
        name = devices.variable or VISIBILITY[vendor(env)][-1]
        return (name, devices.names[ranks.local_rank]), 0
    return None, ranks.local_rank


def shared_by_all(env: "Env", ranks: "Ranks", devices: Visible) -> bool:
    """Tell whether all ranks of the node would use the one device.

    So it is if it is the node's only one, or the only one left of a list of several.
    """
    if ranks.local_world_size == 1:
        return False
    # Without a variable, a cgroup may show each task its own: it hides AMD's, not NVIDIA's files.
    only = "," in env[devices.variable] if devices.variable else vendor(env) == "nvidia"
    return only or env.get("SLURM_GPUS_ON_NODE") == "1"


def check_preset(env: "Env", ranks: "Ranks", devices: Visible) -> None:
    if ranks.local_rank >= devices.usable:
        message = "LOCAL_RANK='{}' is beyond the {}: unset LOCAL_RANK, or ask for more GPUs"
        raise LaunchError(message.format(ranks.local_rank, usable(env, devices)))


def described(env: "Env", devices: Visible) -> str:
    plural = "s" if len(devices.names) > 1 else ""
    why = shown(env, devices.variable) if devices.variable else "the machine has no more"
    return "{} visible GPU{} ({})".format(len(devices.names), plural, why)


def usable(env: "Env", devices: Visible) -> str:
    """Describe the devices that one process can use."""
    first = "first MIG device, the only one that a process can use, of the "
    return (first if devices.of_mig else "") + described(env, devices)


def too_few(env: "Env", devices: Visible, ranks: int) -> str:
    message = (
        "LOCAL_WORLD_SIZE='{}' ranks on this node, but {}: ask the scheduler for one GPU per rank"
    )
    return message.format(ranks, described(env, devices))


def check_local_ranks(env: "Env", wanted: int) -> None:
    """Refuse more ranks than devices for --nproc-per-node; raises `LaunchError`."""
    devices = visible(env)
    if devices and devices.names and wanted > devices.usable:
        advice = "ask for more GPUs"
        if devices.of_mig:
            advice = "start a task per device (srun --ntasks-per-node), without --nproc-per-node"
        message = "--nproc-per-node '{}' is more than the {}: {}"
        raise LaunchError(message.format(wanted, usable(env, devices), advice))


def warn_without_driver(env: "Env") -> None:
    """Say that torch will not use the GPUs of this node, as in a container without `--nv`."""
    devices = visible(env)
    if not devices or not devices.names or vendor(env) != "nvidia":
        return
    if nvidia.files() and not nvidia.has_driver(env):
        message = (
            "conda-python-distributed: this node has GPUs, but {} is not found: torch will use the"
            " CPUs; start the container with --nv\n"
        )
        sys.stderr.write(message.format(nvidia.DRIVER))
