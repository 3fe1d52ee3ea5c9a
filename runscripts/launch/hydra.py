"""MPICH's and Intel MPI's Hydra: what its environment does not say.

Hydra gives a rank no name of its launch. Its channel (PMI_FD) would, but a process that used it and
ends without MPI_Finalize counts as crashed. A process that closed it properly cannot start MPI any
more (pmip_cb.c in MPICH 3.3 to 4.3; tried). So the name is that of the proxy that started it.
"""

from .processes import above

PROXY = "hydra_pmi_proxy"
CONTROL = "--control-port"  # of mpiexec: HOST:PORT, the same on all nodes


def launch() -> str:
    """Return the name of this launch on this machine, the same for all its ranks here, or nothing.

    On several nodes it is the same too, if the proxy knows mpiexec's address.
    """
    for process in above():
        if process.name == PROXY:
            words = process.words()
            if CONTROL in words[:-1]:
                return "hydra " + words[words.index(CONTROL) + 1]
            return "hydra {} {}".format(process.number, process.started)
    return ""
