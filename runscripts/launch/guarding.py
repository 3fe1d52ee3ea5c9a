"""The folder that Python starts the check of MPI's size from: guard/sitecustomize.py."""

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .variables import Env

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "guard")
SWITCH = "SIFWRIGHT_MPI_CHECK"  # 0: off


def variables(env: "Env", *, of_agent: bool = False) -> "Env":
    """Return what makes Python import it: in this process, or in the ranks of torchrun's agent."""
    if env.get(SWITCH) == "0":
        return {}
    before = env.get("PYTHONPATH")
    path = FOLDER + ":" + before if before else FOLDER
    return {"SIFWRIGHT_RANKS_PYTHONPATH" if of_agent else "PYTHONPATH": path}
