"""Ends a rank if its MPI counts other ranks than were started: it would train alone, silently.

That happens where the launcher and the MPI share no PMI, the protocol by which ranks learn of each
other. The program conda-python-distributed puts this folder first on PYTHONPATH. Python imports a
module of this name when it starts. Nothing is imported for it: it waits for the libraries that
start MPI.
"""

import os
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from importlib.machinery import ModuleSpec
    from types import ModuleType
    from typing import Any, Callable, NoReturn, Optional

    Look = Callable[[Any], None]

NAME = "sitecustomize"
HERE = os.path.dirname(os.path.abspath(__file__))
EX_CONFIG = 78  # sysexits.h: something was found in an unconfigured or misconfigured state
# The launcher ends all ranks with the first; until then, each may say why.
PATIENCE = 3.0  # seconds
BY_TORCHRUN = "torchrun starts ranks that MPI does not know: start each by srun or mpirun"
BY_LAUNCHER = (
    "the launcher shares no PMI with this MPI. Open MPI needs srun --mpi=pmix or Open MPI's mpirun."
    " MPICH needs srun --mpi=pmi2 or Hydra's mpiexec. 'srun --mpi=list' shows what Slurm has"
)


def end(size: int) -> "NoReturn":
    """Say why this rank cannot go on, and end it without an exception to catch."""
    rank, ranks = os.environ.get("RANK", "?"), os.environ["WORLD_SIZE"]
    message = "conda-python-distributed: rank {} of {} would train alone: MPI counts {} rank{}; {}"
    reason = BY_TORCHRUN if "TORCHELASTIC_USE_AGENT_STORE" in os.environ else BY_LAUNCHER
    message = message.format(rank, ranks, size, "" if size == 1 else "s", reason)
    sys.stdout.flush()
    sys.stderr.write(message + "; SIFWRIGHT_MPI_CHECK=0 lets each rank have an MPI of its own\n")
    sys.stderr.flush()
    time.sleep(PATIENCE)
    os._exit(EX_CONFIG)  # at a normal end, MPI_Finalize might wait for ranks that never come


def compare(size: int) -> None:
    if str(size) != os.environ.get("WORLD_SIZE", str(size)):
        end(size)


def before(function: "Callable[..., Any]", look: "Callable[..., None]") -> "Callable[..., Any]":
    """Return a function that calls another one, then looks at its result and its arguments."""

    def called(*arguments: "Any", **named: "Any") -> "Any":
        result = function(*arguments, **named)
        look(result, *arguments, **named)
        return result

    called.__doc__, called.__name__ = function.__doc__, getattr(function, "__name__", "called")
    return called


def of_mpi4py(module: "Any") -> None:
    """Look at once, or, if mpi4py.rc asks for it, when the program starts MPI."""

    def look(*_: "Any", **__: "Any") -> None:
        compare(module.COMM_WORLD.Get_size())

    if module.Is_initialized():
        look()
        return
    for name in ("Init", "Init_thread"):
        setattr(module, name, before(getattr(module, name), look))


def of_horovod(module: "Any") -> None:
    """Look after `init`, which all frameworks share; of a part of the ranks, nothing is known."""

    def look(_: "Any", basics: "Any", comm: "Any" = None, *__: "Any", **___: "Any") -> None:
        if comm is None and "HOROVOD_ELASTIC" not in os.environ:
            compare(basics.size())

    module.HorovodBasics.init = before(module.HorovodBasics.init, look)


def of_torch(module: "Any") -> None:
    """Look at the group of all ranks, which is made without a list of them."""
    group = getattr(module, "ProcessGroupMPI", None)  # only if torch was built with MPI
    if group is None:
        return

    def look(group: "Any", ranks: "Any" = (), *_: "Any", **__: "Any") -> None:
        if group is not None and not ranks:
            compare(group.size())

    group.create = staticmethod(before(group.create, look))


LOOKS = {
    "mpi4py.MPI": of_mpi4py,
    "horovod.common.basics": of_horovod,
    "torch.distributed.distributed_c10d": of_torch,
}


class Watcher:
    """A finder for `sys.meta_path`: the libraries are found by the others, and looked at after."""

    def find_spec(
        self, name: str, path: "Any" = None, target: "Optional[ModuleType]" = None
    ) -> "Optional[ModuleSpec]":
        look = LOOKS.get(name)
        if look is None:
            return None
        finders = (finder for finder in sys.meta_path if finder is not self)
        specs = (finder.find_spec(name, path, target) for finder in finders)
        spec = next((spec for spec in specs if spec is not None), None)
        if spec is not None and spec.loader is not None:
            loader = spec.loader  # type: Any
            loader.exec_module = before(loader.exec_module, lambda _, module: look(module))
        return spec


def step_aside() -> None:
    """Leave the path as it was, for this program and for those that it starts."""
    sys.path[:] = [folder for folder in sys.path if folder != HERE]
    folders = [word for word in os.environ.get("PYTHONPATH", "").split(":") if word != HERE]
    if folders:
        os.environ["PYTHONPATH"] = ":".join(folders)
    else:
        os.environ.pop("PYTHONPATH", None)


def make_way() -> None:
    """Import the module of this name that the user or the system has."""
    this = sys.modules.pop(NAME)
    try:
        __import__(NAME)
    except ImportError as error:
        if error.name != NAME:
            raise
        sys.modules[NAME] = this


if __name__ == NAME:
    step_aside()
    sys.meta_path.insert(0, Watcher())
    make_way()
