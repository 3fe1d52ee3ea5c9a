"""Ranks that MPI does not connect end with the reason, for each library that starts MPI."""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING

import pytest

from .test_local_ranks import write_torchrun

if TYPE_CHECKING:
    import subprocess
    from pathlib import Path

    from .conftest import Runner

# Libraries that start MPI, with as many ranks as FAKE_SIZE says; the real ones are those of
# tests/system/slurm/test_mpi_jobs.py.
MPI4PY = """
import os, mpi4py
class COMM_WORLD:
    Get_size = staticmethod(lambda: int(os.environ["FAKE_SIZE"]))
def Init(): mpi4py.rc.initialize = True
def Init_thread(required=3): Init()
def Is_initialized(): return mpi4py.rc.initialize
"""
HOROVOD = """
import os
class HorovodBasics:
    def init(self, comm=None, process_sets=None): return "started"
    def size(self): return int(os.environ["FAKE_SIZE"])
"""
TORCH = """
import os
class Group:
    def size(self): return int(os.environ["FAKE_SIZE"])
class ProcessGroupMPI:
    @staticmethod
    def create(ranks=()): return None if ranks == [7] else Group()
"""
LIBRARIES = {
    "mpi4py/__init__.py": "class rc: initialize = True",
    "mpi4py/MPI.py": MPI4PY,
    "horovod/__init__.py": "",
    "horovod/common/__init__.py": "",
    "horovod/common/basics.py": HOROVOD,
    "torch/__init__.py": "",
    "torch/distributed/__init__.py": "",
    "torch/distributed/distributed_c10d.py": TORCH,
}
BASICS = "from horovod.common.basics import HorovodBasics as B; "
GROUPS = "from torch.distributed.distributed_c10d import ProcessGroupMPI as P; "
LATER = "import mpi4py; mpi4py.rc.initialize = False; from mpi4py import MPI; "
STARTS = {
    "mpi4py": "from mpi4py import MPI",
    "mpi4py-later": f"{LATER}MPI.Init()",
    "mpi4py-threads": f"{LATER}MPI.Init_thread(required=1)",
    "horovod": f"{BASICS}assert B().init() == 'started'",
    "torch": f"{GROUPS}P.create([])",
}
# Torchrun that starts one of two ranks.
RUN = """
import os, subprocess, sys
def main():
    ranks = {"RANK": "0", "WORLD_SIZE": "2", "TORCHELASTIC_USE_AGENT_STORE": "True"}
    done = subprocess.run([sys.executable, *sys.argv[-2:]], env=os.environ | ranks)
    print("watched", "Watcher" in str(sys.meta_path), flush=True)
    sys.exit(done.returncode)
"""
REASON = r"rank 1 of 2 would train alone: MPI counts {}; .*; SIFWRIGHT_MPI_CHECK=0 lets"


@pytest.fixture
def libraries(tmp_path: Path) -> Path:
    folder = tmp_path / "libraries"
    for name, text in LIBRARIES.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


@pytest.fixture
def rank(runner: Runner, libraries: Path) -> Runner:
    """Return the second of two ranks on this machine."""
    given = {"RANK": "1", "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29500"}
    return runner.having(PYTHONPATH=str(libraries), FAKE_SIZE="1", **given)


def trains(rank: Runner, program: str) -> subprocess.CompletedProcess[str]:
    return rank.run("conda-python-distributed", "-c", f"{program}\nprint('trains')")


def all_train(rank: Runner) -> dict[str, subprocess.CompletedProcess[str]]:
    """Start all ranks at once and return their results: a rank that ends waits for the others."""
    with ThreadPoolExecutor() as pool:
        return dict(zip(STARTS, pool.map(partial(trains, rank), STARTS.values()), strict=True))


@pytest.mark.parametrize(("size", "shown"), [("1", "1 rank"), ("4", "4 ranks")])
def test_another_size_ends_the_rank(rank: Runner, size: str, shown: str) -> None:
    for start, done in all_train(rank.having(FAKE_SIZE=size)).items():
        assert (done.returncode, done.stdout) == (78, ""), start
        assert re.search(REASON.format(shown), done.stderr), (start, done.stderr)


def test_the_same_size_trains(rank: Runner) -> None:
    for start, done in all_train(rank.having(FAKE_SIZE="2")).items():
        assert (done.returncode, done.stdout, done.stderr) == (0, "trains\n", ""), start


def test_it_can_be_switched_off(rank: Runner) -> None:
    for start, done in all_train(rank.having(SIFWRIGHT_MPI_CHECK="0")).items():
        assert (done.returncode, done.stdout) == (0, "trains\n"), start


def test_a_program_cannot_catch_it(rank: Runner) -> None:
    caught = "try: import mpi4py.MPI\nexcept BaseException: pass\nprint('trains')"
    done = rank.run("conda-python-distributed", "-c", caught)
    assert (done.returncode, done.stdout) == (78, "")


@pytest.mark.parametrize(
    "start",
    [
        f"{BASICS}B().init(comm=[0]); B().init([0])",
        f"{GROUPS}P.create([1]); P.create(ranks=[1]); P.create([7])",
        f"import os; os.environ['HOROVOD_ELASTIC'] = '1'; {BASICS}B().init()",
        LATER,
    ],
)
def test_a_part_of_the_ranks_may_have_an_mpi(rank: Runner, start: str) -> None:
    assert trains(rank, start).stdout == "trains\n"


def test_one_rank_is_not_watched(runner: Runner, libraries: Path) -> None:
    alone = runner.having(PYTHONPATH=str(libraries), FAKE_SIZE="3")
    show = "import sys, mpi4py.MPI; print([type(finder).__name__ for finder in sys.meta_path])"
    done = alone.run("conda-python-distributed", "-c", show)
    assert done.returncode == 0
    assert "Watcher" not in done.stdout


def test_the_users_own_sitecustomize_is_imported(rank: Runner, libraries: Path) -> None:
    """Import it, and give started programs the path that the user gave."""
    (libraries / "sitecustomize.py").write_text("import builtins; builtins.mine = 'my own'")
    show = "import sys, os; own = sys.modules['sitecustomize'].__file__"
    show += "; print(mine, own, os.environ['PYTHONPATH'])"
    done = rank.run("conda-python-distributed", "-c", show)
    assert done.stdout == f"my own {libraries}/sitecustomize.py {libraries}\n"
    assert trains(rank, STARTS["mpi4py"]).returncode == 78


def test_a_broken_sitecustomize_is_named(rank: Runner, libraries: Path) -> None:
    (libraries / "sitecustomize.py").write_text("import nothing_of_that_name")
    done = trains(rank, "pass")
    assert "ModuleNotFoundError: No module named 'nothing_of_that_name'" in done.stderr
    assert done.stdout == "trains\n"


def test_without_a_path_none_is_left(rank: Runner) -> None:
    show = "import os, sys; print('PYTHONPATH' in os.environ, 'guard' in str(sys.path))"
    done = rank.lacking("PYTHONPATH").run("conda-python-distributed", "-c", show)
    assert done.stdout == "False False\n"


def test_nothing_is_imported_for_it(rank: Runner) -> None:
    """Import nothing more than Python itself; Debian's has a sitecustomize of its own."""
    show = "import sys; print(*sys.modules, *(type(finder).__name__ for finder in sys.meta_path))"
    names = [
        set(item.run("conda-python-distributed", "-c", show).stdout.split())
        for item in (rank, rank.having(SIFWRIGHT_MPI_CHECK="0"))
    ]
    assert (names[0] - names[1]) - {"sitecustomize"} == {"Watcher"}


def test_ranks_of_torchrun_are_watched(rank: Runner, libraries: Path) -> None:
    """Watch the ranks, not the agent, which hands the folder on."""
    write_torchrun(libraries, RUN)
    agent = rank.lacking("RANK").lacking("WORLD_SIZE").lacking("MASTER_ADDR").lacking("MASTER_PORT")
    words = ("--nproc-per-node", "2", "-c", "import mpi4py.MPI")
    done = agent.run("conda-python-distributed", *words)
    assert (done.returncode, done.stdout) == (78, "watched False\n")
    assert "rank 0 of 2 would train alone: MPI counts 1 rank; torchrun starts ranks" in done.stderr
