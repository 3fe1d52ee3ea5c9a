"""The GPUs this process can see, and the number of its own among them."""

import os

from .errors import LaunchError
from .variables import is_number, shown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Dict, List, Optional, Tuple

    from .ranks import Ranks
    from .variables import Env

# Innermost first: HIP numbers the devices that ROCR leaves over, and reads CUDA's variable where
# its own is unset ("GPU isolation techniques" of the ROCm documentation; "CUDA environment
# variables" of the CUDA C++ programming guide). The last of each is the one to set where none is.
VISIBILITY = {
    "amd": ("HIP_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES"),
    "nvidia": ("CUDA_VISIBLE_DEVICES",),
}
# What Slurm's gres/gpu plugin sets for a task without a GPU.
NO_DEVICES = ("", "-1", "NoDevFiles")


class Visible:
    """The devices a process sees: `names` as its variable lists them, `variable` empty for all."""

    def __init__(self, variable: str, names: "List[str]") -> None:
        self.variable = variable
        self.names = names


def vendor(env: "Env") -> str:
    """Return whose GPUs are used: as the site's file says, else whose driver is here."""
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
    """Return the numbers of the devices whose files exist."""
    count = nvidia_files() if of == "nvidia" else amd_nodes()
    return [str(index) for index in range(count)]


def nvidia_files() -> int:
    return sum(name[:6] == "nvidia" and name[6:].isdigit() for name in os.listdir("/dev"))


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
    if count == 1 and not shared_by_all(env, ranks):
        return None, 0
    if count < wanted:
        raise LaunchError(too_few(env, devices, wanted))
    # A task that is alone on its node may use all of its devices.
    if env.get("SIFWRIGHT_GPU_VISIBILITY") == "own" and wanted > 1:
        name = devices.variable or VISIBILITY[vendor(env)][-1]
        return (name, devices.names[ranks.local_rank]), 0
    return None, ranks.local_rank


def shared_by_all(env: "Env", ranks: "Ranks") -> bool:
    """Tell whether the one device is the node's only one, so that all ranks would use it."""
    return ranks.local_world_size > 1 and env.get("SLURM_GPUS_ON_NODE") == "1"


def check_preset(env: "Env", ranks: "Ranks", devices: Visible) -> None:
    if ranks.local_rank >= len(devices.names):
        message = "LOCAL_RANK='{}' is beyond the {}: unset LOCAL_RANK, or ask for more GPUs"
        raise LaunchError(message.format(ranks.local_rank, described(env, devices)))


def described(env: "Env", devices: Visible) -> str:
    plural = "s" if len(devices.names) > 1 else ""
    why = shown(env, devices.variable) if devices.variable else "the machine has no more"
    return "{} visible GPU{} ({})".format(len(devices.names), plural, why)


def too_few(env: "Env", devices: Visible, ranks: int) -> str:
    message = (
        "LOCAL_WORLD_SIZE='{}' ranks on this node, but {}: ask the scheduler for one GPU per rank"
    )
    return message.format(ranks, described(env, devices))


def check_local_ranks(env: "Env", wanted: int) -> None:
    """Refuse more ranks than devices for --nproc-per-node; raises `LaunchError`."""
    devices = visible(env)
    if devices and devices.names and wanted > len(devices.names):
        message = "--nproc-per-node '{}' is more than the {}"
        raise LaunchError(message.format(wanted, described(env, devices)))
