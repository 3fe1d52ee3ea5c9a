"""The ranks of this process, as torch.distributed's env:// reads them."""

from .errors import LaunchError
from .hosts import is_loopback
from .launchers import local_size
from .variables import below, is_number, number, shown, together

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Dict, Optional

    from .launchers import Launcher
    from .variables import Env

NAMES = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "GROUP_RANK")


class Ranks:
    """All numbers of this process; `group_rank` is None where nothing says the node's number.

    `launcher` is None for a single process and for ranks numbered by hand, which have no
    rendezvous.
    """

    def __init__(self, launcher: "Optional[Launcher]", values: "Dict[str, int]") -> None:
        self.launcher = launcher
        self.rank = values["RANK"]
        self.world_size = values["WORLD_SIZE"]
        self.local_rank = values["LOCAL_RANK"]
        self.local_world_size = values["LOCAL_WORLD_SIZE"]
        self.group_rank = values.get("GROUP_RANK")

    @property
    def one_node(self) -> bool:
        return self.world_size == self.local_world_size

    def variables(self) -> "Dict[str, str]":
        values = (
            self.rank,
            self.world_size,
            self.local_rank,
            self.local_world_size,
            self.group_rank,
        )
        return {name: str(value) for name, value in zip(NAMES, values) if value is not None}

    def torchrun_variables(self) -> "Dict[str, str]":
        """Return what else torchrun tells its ranks: one role, and no restarts.

        TORCHELASTIC_USE_AGENT_STORE is not among them. With it, torch expects an agent to listen at
        MASTER_PORT (_create_c10d_store() of torch/distributed/rendezvous.py), and rank 0 does not.
        """
        return {
            "ROLE_NAME": "default",
            "ROLE_RANK": str(self.rank),
            "ROLE_WORLD_SIZE": str(self.world_size),
            "TORCHELASTIC_RESTART_COUNT": "0",
            "TORCHELASTIC_MAX_RESTARTS": "0",
        }


def refuse_empty(env: "Env") -> None:
    """Refuse what `export MASTER_ADDR=$(a command that is not in the image)` leaves behind."""
    for name in ("MASTER_ADDR", "MASTER_PORT", *NAMES):
        if env.get(name) == "":
            message = "{}='' is set but empty: give it a value or unset it".format(name)
            raise LaunchError(message)


def find_ranks(env: "Env", launcher: "Optional[Launcher]") -> Ranks:
    """Return the numbers of this process: preset ones, else the launcher's, else 0 of 1."""
    if "RANK" in env or "WORLD_SIZE" in env:
        launcher = check_preset(env, launcher)
        values = {name: number(env, name) for name in ("RANK", "WORLD_SIZE")}
    elif launcher:
        values = {
            "RANK": number(env, launcher.rank),
            "WORLD_SIZE": number(env, launcher.size),
        }
    else:
        values = {"RANK": 0, "WORLD_SIZE": 1}
    values.update(local_numbers(env, launcher, values))
    check(values)
    values.update(group_number(env, launcher, values))
    return Ranks(launcher, values)


def check_preset(env: "Env", launcher: "Optional[Launcher]") -> "Optional[Launcher]":
    """Return the launcher if the preset ranks are its own.

    Preset ranks may differ below a torchrun, which sets the local numbers as well. They may also
    differ in an interactive step of one task. Else they are left over from a batch script, and
    every task would take the same rank.
    """
    together(env, "RANK", "WORLD_SIZE")
    if "TORCHELASTIC_RUN_ID" in env:  # below torchrun, which has met already
        return None
    preset = number(env, "RANK"), number(env, "WORLD_SIZE")
    if not launcher or preset == (number(env, launcher.rank), number(env, launcher.size)):
        return launcher
    below_torchrun = "LOCAL_RANK" in env and "LOCAL_WORLD_SIZE" in env
    if below_torchrun or number(env, launcher.size) == 1:
        return None
    message = (
        "{} and {} are preset, but {} and {}: unset RANK and WORLD_SIZE, or set LOCAL_RANK and"
        " LOCAL_WORLD_SIZE too"
    )
    names = ("RANK", "WORLD_SIZE", launcher.rank, launcher.size)
    raise LaunchError(message.format(*(shown(env, name) for name in names)))


def local_numbers(
    env: "Env", launcher: "Optional[Launcher]", values: "Dict[str, int]"
) -> "Dict[str, int]":
    """Return LOCAL_RANK and LOCAL_WORLD_SIZE."""
    if not launcher:
        return numbers_by_hand(env, values)
    size = local_size(env, launcher)
    if "LOCAL_RANK" in env:
        rank = number(env, "LOCAL_RANK")
    else:
        rank = 0 if values["WORLD_SIZE"] == 1 else number(env, launcher.local_rank)
    return {"LOCAL_RANK": rank, "LOCAL_WORLD_SIZE": size}


def numbers_by_hand(env: "Env", values: "Dict[str, int]") -> "Dict[str, int]":
    """Return the ranks of preset variables: on one machine if they meet at a loopback address."""
    loopback = is_loopback(env.get("MASTER_ADDR", "localhost"))
    known = "LOCAL_RANK" in env and "LOCAL_WORLD_SIZE" in env
    if not known and not loopback and values["WORLD_SIZE"] > 1:
        message = "{} and {} must be set where {} and {} are: they may be on several machines"
        names = ("LOCAL_RANK", "LOCAL_WORLD_SIZE", "WORLD_SIZE", "MASTER_ADDR")
        raise LaunchError(message.format(*(shown(env, name) for name in names)))
    pairs = (("LOCAL_RANK", "RANK"), ("LOCAL_WORLD_SIZE", "WORLD_SIZE"))
    return {
        name: number(env, name) if name in env else values[otherwise] for name, otherwise in pairs
    }


def group_number(
    env: "Env", launcher: "Optional[Launcher]", values: "Dict[str, int]"
) -> "Dict[str, int]":
    """Return GROUP_RANK, the node's number, if known; for mpirun the rendezvous counts nodes."""
    if "GROUP_RANK" in env:
        return {"GROUP_RANK": number(env, "GROUP_RANK")}
    if launcher and launcher.node in env:
        return {"GROUP_RANK": number(env, launcher.node)}
    if values["WORLD_SIZE"] == values["LOCAL_WORLD_SIZE"]:
        return {"GROUP_RANK": 0}
    if launcher and launcher.name == "flux":
        return flux_node(env)
    return {}


def flux_node(env: "Env") -> "Dict[str, int]":
    """Take the node's number from …/jobtmp-NUMBER-JOB (make_job_path() in flux-core's tmpdir.c)."""
    words = env.get("FLUX_JOB_TMPDIR", "").rpartition("/")[2].split("-")
    known = words[0] == "jobtmp" and len(words) > 1 and is_number(words[1])
    return {"GROUP_RANK": int(words[1])} if known else {}


def check(values: "Dict[str, int]") -> None:
    """Refuse numbers that contradict each other."""
    texts = {name: str(value) for name, value in values.items()}
    below(texts, "RANK", "WORLD_SIZE")
    below(texts, "LOCAL_RANK", "LOCAL_WORLD_SIZE")
    if values["LOCAL_WORLD_SIZE"] > values["WORLD_SIZE"]:
        message = "{} must not be above {}".format(
            shown(texts, "LOCAL_WORLD_SIZE"), shown(texts, "WORLD_SIZE")
        )
        raise LaunchError(message)
