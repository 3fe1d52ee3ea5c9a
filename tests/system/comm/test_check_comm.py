"""The command with stand-ins for srun and the engine: what it starts, keeps, says and returns."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from dataclasses import replace
from xml.etree import ElementTree as ET

import pytest

from sifwright.launch.comm import results
from tests.conftest import DEFAULT_SIGNALS
from tests.nccl_logs import log, ranks
from tests.system.comm.conftest import Site, measured, row

EFA = ranks("test-nccl-efa-worker-0:21", "test-nccl-efa-worker-1:21")
GOOD = log("good-efa-two-nodes")
FALLBACK = log("fallback-crusher-rccl")
# A run script that leaves what the benchmark would, in the folder of its results.
ON_HOST = """#!/bin/bash
printf '%s\\n' "$@" >"$STAND_IN/command"
env >"$STAND_IN/variables"
while [[ $1 != --json ]]; do shift; done
cp "$STAND_IN/leaves/"* "$(dirname "$2")"
"""
CRUSHER = ranks("crusher002:81767", "crusher003:24359")


def test_a_proven_network(site: Site) -> None:
    """Say so, and keep the results whole."""
    site = replace(site, missing=())
    site.leaves(measured(EFA), GOOD, says="all_reduce 1024\n")
    done = site.check()
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("all_reduce 1024\noperation ")
    assert "network: proven: NET/OFI and efa proven on 2 ranks of 2 nodes\n" in done.stdout
    assert done.stdout.endswith("build/two/pytorch/comm.svg build/two/pytorch/comm.log\n")
    document = json.loads((site.results / "comm.json").read_text())
    assert document["rows"] == measured(EFA)["rows"]
    assert (document["site"], document["image"]) == ("two", "pytorch")
    assert document["verdict"]["state"] == "proven"
    assert (site.results / "comm.png").read_bytes().startswith(b"\x89PNG")
    assert ET.parse(site.results / "comm.svg").getroot().tag.endswith("svg")  # noqa: S314  # ours
    assert GOOD in (site.results / "comm.log").read_text()
    assert {path.name for path in site.results.iterdir()} == {
        *("image.sif", "comm.json", "comm.png", "comm.svg", "comm.log"),
    }


def test_a_fallback_fails_and_keeps_its_results(site: Site) -> None:
    site.leaves(measured(CRUSHER), FALLBACK)
    done = site.check()
    assert done.returncode == 7
    assert "network: failed: 2 of 2 ranks did not prove NET/OFI and efa\n" in done.stdout
    assert done.stderr.startswith(
        "sifwright: rank 0-1 on crusher002, crusher003: fell back to TCP sockets: "
    )
    assert json.loads((site.results / "comm.json").read_text())["verdict"]["state"] == "failed"


def test_nccls_words_count_wherever_they_were_written(site: Site) -> None:
    site.leaves(measured(EFA), "", says=GOOD)
    assert site.check().returncode == 0


def test_gloo_is_said_to_prove_nothing(site: Site) -> None:
    site.leaves(measured(EFA) | {"backend": "gloo"}, "")
    done = site.check("--backend", "gloo")
    assert done.returncode == 0
    assert "note: this takes about five minutes on CPUs; --max-size 16M" in done.stderr
    assert "network: not checked: backend gloo" in done.stdout
    assert "--nccl-log" not in site.read_arguments("apptainer")


def test_wrong_values_fail(site: Site) -> None:
    site.leaves(measured(EFA, row(), row(bytes=1 << 20, wrong_elements=12)), GOOD, status=1)
    done = site.check()
    assert done.returncode == 7
    assert "wrong at 1 sizes" in done.stdout
    assert done.stderr.startswith(
        "sifwright: all_reduce of 1048576 bytes: 12 elements of a rank's result are wrong\n"
    )


def test_ranks_that_break_at_the_end_fail(site: Site) -> None:
    site.leaves(measured(EFA), GOOD, status=134)
    done = site.check()
    assert done.returncode == 7
    assert "ended with exit status 134, after its last result\n" in done.stderr


def test_an_operation_that_the_backend_lacks_is_a_row(site: Site) -> None:
    lacking = {"operation": "reduce_scatter", "unsupported": "gloo does not support it"}
    site.leaves(measured(EFA, row(), lacking), GOOD)
    done = site.check()
    assert done.returncode == 0
    assert "reduce_scatter  not supported by the backend" in done.stdout


def test_the_started_command(site: Site) -> None:
    site.leaves(measured(EFA), GOOD)
    assert site.check("--max-size", "1M").returncode == 0
    assert site.read_arguments("srun")[1:4] == ["--nodes=2", "--ntasks=2", "--ntasks-per-node=1"]
    words = site.read_arguments("apptainer")
    assert words[:2] == ["exec", "--nv"]
    assert words[words.index("conda-python-distributed") :] == [
        *("conda-python-distributed", "/runscripts/collectives.py", "--backend", "nccl"),
        *("--json", "/mnt/comm.json", "--min-size", "1024", "--max-size", "1048576"),
        *("--nccl-log", "/mnt"),
    ]


def test_a_launcher_by_hand_needs_no_allocation(site: Site) -> None:
    site.leaves(measured(EFA), GOOD)
    assert site.check("--launch", "srun -n2 --x='a b'", SLURM_JOB_ID="").returncode == 0
    assert site.read_arguments("srun")[:2] == ["-n2", "--x=a b"]


def test_json_alone_for_programs(site: Site) -> None:
    site.leaves(measured(EFA), GOOD, says="noise\n")
    done = site.check("--json")
    assert json.loads(done.stdout)["verdict"]["state"] == "proven"


# --- what goes wrong ------------------------------------------------------------------------------


def test_no_image(site: Site) -> None:
    (site.results / "image.sif").unlink()
    done = site.check()
    assert done.returncode == 2
    assert done.stderr == (
        "sifwright: build/two/pytorch/image.sif: there is no image yet\n"
        "    Build it: sifwright build two pytorch\n"
    )


def test_a_site_for_the_native_engine_alone(site: Site) -> None:
    """Advise against no build of an image there."""
    path = site.folder / "project" / "defs" / "sites" / "two.yaml"
    path.write_text(path.read_text() + "run-in: [host]\n")
    (site.results / "image.sif").unlink()
    done = site.check()
    assert done.returncode == 2
    assert done.stderr.startswith("sifwright: site two runs jobs on the host only, ")
    assert "there is no image yet" not in done.stderr


def test_under_pbs_the_ranks_are_told_the_first_host(site: Site) -> None:
    path = site.folder / "project" / "defs" / "sites" / "two.yaml"
    path.write_text(path.read_text().replace("slurm", "pbs").replace("srun", "mpiexec"))
    (site.folder / "nodes").write_text("n1\nn2\n")
    stand_in = site.folder / "bin" / "mpiexec"
    stand_in.write_text('#!/bin/bash\nenv >"$STAND_IN/env"\nexec "${@:5}"\n')
    stand_in.chmod(0o755)
    site.leaves(measured(EFA), GOOD)
    done = site.check(PBS_JOBID="1", PBS_NODEFILE=str(site.folder / "nodes"))
    assert (done.returncode, done.stderr) == (0, "")
    assert "SIFWRIGHT_MASTER_HOST=n1" in site.read_arguments("env")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--backend", "smoke"), "argument --backend: invalid choice: 'smoke'"),
        (("--min-size", "2M", "--max-size", "1M"), "--min-size 2M is above --max-size 1M\n"),
        (("--max-size", "-1"), "'-1' is no size\n"),
        (("--max-size", "1T"), "'1T' is no size\n    Write it as 4096, 1K, 512M or 2G.\n"),
        (("--max-size", "0"), "'0' is no size\n"),
        (("--nodes", "-2"), "--nodes and --ranks-per-node are numbers of at least 1\n    Leave "),
        (("--nodes", "x"), "argument --nodes: invalid int value: 'x'"),
        (("--launch", "srun 'x"), "--launch has a quote without its partner: srun 'x\n    Add "),
    ],
)
def test_wrong_command_lines(site: Site, words: tuple[str, ...], message: str) -> None:
    done = site.check(*words)
    assert done.returncode == 2
    assert done.stderr.startswith(f"sifwright: {message}")
    assert not (site.folder / "apptainer").exists()


def test_a_launcher_that_is_not_there(site: Site) -> None:
    done = site.check("--launch", "no-such-launcher")
    assert done.returncode == 5
    assert done.stderr.startswith("sifwright: there is no 'no-such-launcher' on PATH\n")


def test_a_refusal_is_told(site: Site) -> None:
    site.leaves(None, "", says="noise\ncollectives.py: --max-size does not fit\n", status=2)
    done = site.check()
    assert done.returncode == 5
    assert done.stderr == (
        "sifwright: the benchmark cannot run: --max-size does not fit\n"
        "    Whole log: build/two/pytorch/comm.log\n"
    )


def test_a_refusal_of_the_run_script_is_told(site: Site) -> None:
    """Name the reason, though srun prints the last line."""
    reason = "rank 0 on a: LOCAL_WORLD_SIZE='2' ranks on this node, but 1 visible GPU"
    says = f"conda-python-distributed: {reason}\nsrun: error: a: task 0: Exited with exit code 69\n"
    site.leaves(None, "", says=says, status=69)
    done = site.check()
    assert done.returncode == 5
    assert done.stderr.startswith(f"sifwright: the benchmark cannot run: {reason}\n")


def test_an_image_without_the_script(site: Site) -> None:
    says = "python: can't open file '/runscripts/collectives.py': [Errno 2] No such file\n"
    site.leaves(None, "", says=says, status=2)
    done = site.check()
    assert done.returncode == 5
    assert "image.sif: no /runscripts/collectives.py in it" in done.stderr


def test_nccl_that_stops_is_explained(site: Site) -> None:
    """End the run if the plugin that NCCL_NET names is missing."""
    site.leaves(None, log("plugin-fails-polaris"), says="a traceback\n", status=1)
    done = site.check()
    assert done.returncode == 7
    assert "and NCCL said: Failed to initialize any NET plugin\n" in done.stderr
    assert "NCCL_NET_PLUGIN" in done.stderr


def test_an_error_of_nccl_is_no_fault_of_the_network(site: Site) -> None:
    """Find the network that NCCL has chosen before it finds two ranks on one GPU."""
    site.leaves(None, log("duplicate-gpu"), says="a traceback\n", status=1)
    done = site.check()
    assert done.returncode == 7
    assert done.stderr == (
        "sifwright: the benchmark failed with exit status 1: NCCL said: Duplicate GPU detected :"
        " rank 0 and rank 1 both on CUDA device 60\n"
        "    Whole log: build/two/pytorch/comm.log\n"
    )


def test_a_benchmark_that_breaks(site: Site) -> None:
    site.leaves(None, "", says="Segmentation fault\n\n", status=139)
    done = site.check()
    assert done.returncode == 7
    assert "failed with exit status 139: Segmentation fault\n" in done.stderr


def test_a_failure_keeps_the_results_before_it(site: Site) -> None:
    site = replace(site, missing=())
    site.leaves(measured(EFA), GOOD)
    site.check()
    before = {path.name: path.read_bytes() for path in site.results.glob("comm.[jps]*")}
    (site.folder / "leaves" / "comm.json").unlink()
    site.leaves(None, "", says="broken\n", status=1)
    assert site.check().returncode == 7
    after = {path.name: path.read_bytes() for path in site.results.glob("comm.[jps]*")}
    assert (len(after), after) == (3, before)
    assert "broken" in (site.results / "comm.log").read_text()


def test_an_interruption_keeps_the_log_and_leaves_nothing_else(site: Site) -> None:
    stand_in = site.folder / "bin" / "apptainer"
    code = "import time; print('first words', flush=True); time.sleep(600)"
    waits = f'exec {sys.executable} -c "{code}"; exit "$(<'
    stand_in.write_text(stand_in.read_text().replace('exit "$(<', waits))
    site.leaves(None, "")
    words = (sys.executable, "-m", "sifwright", "--project", str(site.folder / "project"))
    env = {"PATH": f"{site.folder}/bin:/usr/bin:/bin", "STAND_IN": str(site.folder)}
    process = subprocess.Popen(
        [*DEFAULT_SIGNALS, *words, "check-comm", "two", "--launch", "srun"],
        cwd=site.folder,
        env=env,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    assert process.stdout is not None
    with process:
        assert process.stdout.readline() == b"first words\n"
        process.send_signal(signal.SIGTERM)
        assert process.wait(240) == 130
    assert {path.name for path in site.results.iterdir()} == {"image.sif", "comm.log"}
    assert "first words" in (site.results / "comm.log").read_text()


def test_without_matplotlib_there_is_no_picture(site: Site) -> None:
    site.leaves(measured(EFA), GOOD)
    done = site.check()
    assert done.returncode == 0
    assert "no picture: matplotlib is not installed (pip install 'sifwright[plot]')" in done.stdout
    assert not (site.results / "comm.png").exists()


@pytest.mark.parametrize(
    ("size", "text"),
    [(1, "1 B"), (1020, "1020 B"), (1024, "1 KiB"), (1536, "1.5 KiB"), (1 << 29, "512 MiB")],
)
def test_sizes_are_readable(size: int, text: str) -> None:
    assert results.readable(size) == text


def test_in_an_environment_of_the_host(site: Site) -> None:
    """Use the project's run scripts with the variables of an image, without an image."""
    environment, project = site.folder / "environment", site.folder / "project"
    (environment / "bin").mkdir(parents=True)
    (site.results / "image.sif").unlink()
    done = site.check("--environment", str(environment))
    assert (done.returncode, "has no bin/activate" in done.stderr) == (2, True)
    (environment / "bin/activate").touch()
    run_scripts = project / "runscripts"
    (run_scripts / "conda-python-distributed").write_text(ON_HOST)
    (run_scripts / "conda-python-distributed").chmod(0o755)
    site.leaves(measured(EFA), GOOD)
    done = site.check("--environment", str(environment))
    assert (done.returncode, done.stderr) == (0, "")
    command, variables = site.read_arguments("command"), site.read_arguments("variables")
    assert command[0] == str(run_scripts / "collectives.py")
    assert f"WITH_CONDA=source {environment}/bin/activate" in variables
    assert "SIFWRIGHT_SITE=two" in variables
    assert json.loads((site.folder / "build/two/host/comm.json").read_text())["image"] == "host"
