"""Job scripts of `sifwright jobscript`, given to the real sbatch, which starts the real srun."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from sifwright.launch.job import decide_job
from sifwright.launch.jobscript import render_jobscript
from sifwright.launch.model import JobRequest
from tests.conftest import ROOT
from tests.system.slurm.conftest import site_of_nodes

if TYPE_CHECKING:
    from tests.system.slurm.slurm import Cluster

SHOW = "import os, sys; print(os.environ['RANK'], os.environ['WORLD_SIZE'], sys.argv[1:])"
ODD = ("a  b", "it's\n#SBATCH --nodes=9", "%j", "$(touch x)")


def _script(slurm: Cluster, *arguments: str, **asked: object) -> str:
    """Render a script for these nodes, in an environment that is the machine's Python."""
    site = site_of_nodes(resv_ports=bool(asked.pop("ports", False)))
    venv = slurm.files.shared / "venv"
    (venv / "bin").mkdir(parents=True, exist_ok=True)
    (venv / "bin" / "python").unlink(missing_ok=True)
    (venv / "bin" / "python").symlink_to("/usr/bin/python3")
    (venv / "bin" / "activate").write_text(f"export VIRTUAL_ENV={venv} PATH={venv}/bin:$PATH\n")
    values = {"nodes": 2, "ranks_per_node": 2, "environment": str(venv), "time": "00:01:00"}
    values |= {"arguments": arguments, "run_scripts": str(ROOT / "runscripts")}
    return render_jobscript(decide_job(site, JobRequest(**(values | asked))))  # type: ignore[arg-type]


@pytest.mark.parametrize("asked", [{}, {"ports": True}, {"signal": "USR1@30"}])
def test_sbatch_and_srun_take_it(slurm: Cluster, asked: dict[str, object]) -> None:
    job = slurm.sbatch(_script(slurm, "-c", SHOW, *ODD, **asked))
    assert (job.state, job.exit_code, job.errors) == ("COMPLETED", "0:0", "")
    wanted = [f"{rank} 4 {list(ODD)}" for rank in range(4)]
    assert sorted(job.output.splitlines()) == wanted
    assert slurm.fields(job.number)["NumNodes"] == "2"


def test_a_failing_rank_fails_the_job(slurm: Cluster) -> None:
    """Return the highest status of all ranks, which is 143 of the ranks ended with it."""
    job = slurm.sbatch(_script(slurm, "-c", "raise SystemExit(42)"))
    assert (job.state, job.exit_code) in {("FAILED", "42:0"), ("FAILED", "143:0")}
    assert "Exited with exit code 42" in job.errors
