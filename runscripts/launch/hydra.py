"""MPICH's and Intel MPI's Hydra: what its environment does not say.

Hydra gives a rank no name of its launch. Its channel (PMI_FD) would, but a process that has spoken
there and ends without MPI_Finalize counts as crashed, and one that said goodbye cannot start MPI
any more (pmip_cb.c in MPICH 3.3 to 4.3; tried). So the name is that of the proxy that started it.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import List, Optional, Tuple

PROXY = "hydra_pmi_proxy"
CONTROL = "--control-port"  # of mpiexec: HOST:PORT, the same on all nodes


def launch() -> str:
    """Return the name of this launch on this machine, the same for all its ranks here, or nothing.

    On several nodes it is the same too, where the proxy is told mpiexec's address.
    """
    found = proxy("self")
    if not found:
        return ""
    process, started = found
    words = command_line(process)
    if CONTROL in words[:-1]:
        return "hydra " + words[words.index(CONTROL) + 1]
    return "hydra {} {}".format(process, started)


def proxy(process: str) -> "Optional[Tuple[str, str]]":
    """Return the process id and the start time of the nearest ancestor that is Hydra's proxy."""
    while process not in ("0", "1"):
        try:
            with open("/proc/{}/stat".format(process), encoding="utf-8", errors="replace") as file:
                text = file.read()
        except OSError:
            return None
        # "pid (name) state ppid …": a name may hold blanks and brackets.
        name, fields = (
            text[text.index("(") + 1 : text.rindex(")")],
            text[text.rindex(")") :].split(),
        )
        if name == PROXY:
            return process, fields[20]
        process = fields[2]
    return None


def command_line(process: str) -> "List[str]":
    try:
        with open("/proc/{}/cmdline".format(process), encoding="utf-8", errors="replace") as file:
            return file.read().split("\0")
    except OSError:
        return []
