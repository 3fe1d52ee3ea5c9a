from __future__ import annotations

import resource
from functools import partial
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from launch import hostlist
from launch import ports as launch_ports

from tests.conftest import run

from .conftest import RUNSCRIPTS

if TYPE_CHECKING:
    import subprocess

    from .conftest import Runner

SCRIPT = "get-master"


def get(runner: Runner, *arguments: str, **env: str) -> str:
    result = runner.having(**env).run(SCRIPT, *arguments)
    assert (result.returncode, result.stderr) == (0, "")
    return result.stdout.rstrip("\n")


def refused(runner: Runner, *arguments: str, **env: str) -> tuple[int, str]:
    result = runner.having(**env).run(SCRIPT, *arguments)
    assert result.stdout == ""
    assert len(result.stderr.splitlines()) == 1
    return result.returncode, result.stderr


# Checked against `scontrol show hostnames` of Slurm 22.05. It is too old for text after the last
# bracket, which is from _hostlist_create_bracketed() in hostlist.c of newer releases.
HOSTLISTS = {
    "nid001": "nid001",
    "nid[005023-005026]": "nid005023 nid005024 nid005025 nid005026",
    "nid[005023,005030]": "nid005023 nid005030",
    "rack[0-1]node[0-3]": "rack0node0 rack0node1 rack0node2 rack0node3"
    " rack1node0 rack1node1 rack1node2 rack1node3",
    "gpu[01-04]-ib": "gpu01-ib gpu02-ib gpu03-ib gpu04-ib",
    "nid[001],x": "nid001 x",
    "x,nid[001]": "x nid001",
    "a[1-2,4]b[1-2]c": "a1b1c a1b2c a2b1c a2b2c a4b1c a4b2c",
    "a[1-2]x[3-4]y[5-6]z": "a1x3y5z a1x3y6z a2x3y5z a2x3y6z a1x4y5z a1x4y6z a2x4y5z a2x4y6z",
    "a[1-2][3-4]": "a13 a14 a23 a24",
    "a[1-2]b[1]c[1]d[1-2]": "a1b1c1d1 a1b1c1d2 a2b1c1d1 a2b1c1d2",
    "a[9-11]": "a9 a10 a11",
    "a[09-11]": "a09 a10 a11",
    "a[098-101]": "a098 a099 a100 a101",
    "a[1-010]": "a1 a2 a3 a4 a5 a6 a7 a8 a9 a10",
    "a[001-3]": "a001 a002 a003",
    "a[00-2]": "a00 a01 a02",
    "a[0-0]": "a0",
    "[1-3]": "1 2 3",
    "a[2,1]": "a2 a1",
    "a[1,1],a1": "a1 a1 a1",
    "a1,b[2-3],c-4.example.org": "a1 b2 b3 c-4.example.org",
    "a,,b,": "a b",
    " a\tb\nc ": "a b c",
    "node-1,node_2": "node-1 node_2",
    "a[65536-65538]": "a65536 a65537 a65538",
}


@pytest.mark.parametrize(("hostlist", "hosts"), HOSTLISTS.items())
def test_hostlist(runner: Runner, hostlist: str, hosts: str) -> None:
    assert get(runner, "--hosts", hostlist).split("\n") == hosts.split()
    assert get(runner, hostlist) == hosts.split(maxsplit=1)[0]


@pytest.mark.parametrize(
    "hostlist",
    [
        *("", " ", ",", "a[ 1-2 ]", "a b]", "a[\N{ARABIC-INDIC DIGIT ONE}]"),
        "n[" + "9" * 5000 + "]",
        *("a[", "a[1", "a1]", "a[]", "a[1,]", "a[,1]", "a[3-1]", "a[x]", "a[1-2-3]", "a[-3]"),
        *("a[1-]", "a[[1]]", "a[1]]", "a[0x1-2]", "a[+1]", "a]1[", "a{1-2}", "a(x2)", "n1*2"),
        *("a;b", "$(id)", "a!b", "\N{LATIN SMALL LETTER A WITH DIAERESIS}1", "a[1-2],b[", "a/b"),
        "(null)",
    ],
)
@pytest.mark.parametrize("option", [(), ("--hosts",)])
def test_unreadable_hostlist(runner: Runner, hostlist: str, option: tuple[str, ...]) -> None:
    code, message = refused(runner, *option, hostlist)
    assert code == 65
    assert "cannot be read" in message
    assert hostlist.strip()[:100] in message


def test_hostlist_starting_with_a_dash(runner: Runner) -> None:
    assert refused(runner, SLURM_JOB_NODELIST="-a")[0] == 65


@pytest.mark.parametrize("hostlist", ["n[0-99999999]", "a[0-9999]b[0-9999]", "n[0-99999999],b"])
def test_huge_hostlist_takes_no_memory(runner: Runner, hostlist: str) -> None:
    """Limit the memory of all children of this process; such a list takes gigabytes."""
    limit = 256 * 1024 * 1024
    command = [str(RUNSCRIPTS / SCRIPT), hostlist]

    def limited(*option: str) -> subprocess.CompletedProcess[str]:
        lower = partial(resource.setrlimit, resource.RLIMIT_AS, (limit, limit))
        return run([*command, *option], env=runner.env, preexec_fn=lower)

    assert limited().stdout.startswith(("n0\n", "a0b0\n"))
    result = limited("--hosts")
    assert (result.returncode, result.stdout) == (65, "")
    assert "more than 1000000 hosts" in result.stderr


def test_many_brackets(runner: Runner) -> None:
    assert get(runner, "a" + "[1]" * 5000) == "a" + "1" * 5000
    assert get(runner, "--hosts", "a" + "[1]" * 5000) == "a" + "1" * 5000


def test_reader_that_stops_early(runner: Runner) -> None:
    with runner.start(SCRIPT, "--hosts", "n[0-500000]") as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "n0\n"
        process.stdout.close()
        assert process.wait(timeout=240) == 0


@settings(max_examples=300)
@given(st.text("a1[]-, 0x", max_size=30) | st.text(max_size=30))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        parsed = hostlist.parse(text)
    except ValueError:
        return
    assert hostlist.first_host(parsed)


JOB = {"SLURM_JOB_ID": "7", "SLURM_STEP_ID": "0", "SLURM_STEP_NODELIST": "n[3-4]"}


@pytest.mark.parametrize(
    ("arguments", "env", "answer"),
    [
        ((), {}, "127.0.0.1"),
        ((), {"MASTER_ADDR": "here", "SLURM_JOB_NODELIST": "n1"}, "here"),
        (("n[7-8]",), {"MASTER_ADDR": "here"}, "n7"),
        (("n[7-8]",), {"SLURM_JOB_NODELIST": "n1"}, "n7"),
        ((), {"SLURM_NODELIST": "n1"}, "n1"),
        ((), {"SLURM_NODELIST": "n1", "SLURM_JOB_NODELIST": "n2"}, "n2"),
        ((), JOB | {"SLURM_JOB_NODELIST": "n2"}, "n3"),
        ((), JOB | {"SLURM_JOB_NODELIST": "n2", "OMPI_COMM_WORLD_RANK": "1"}, "n2"),
        ((), JOB | {"WORLD_SIZE": "1"}, "127.0.0.1"),
        ((), {"WORLD_SIZE": "4", "LOCAL_WORLD_SIZE": "4"}, "127.0.0.1"),
        (("--hosts",), {}, "127.0.0.1"),
        (("--hosts",), JOB, "n3\nn4"),
        (("--endpoint",), JOB | {"MASTER_PORT": "5"}, "n3:5"),
        (("--port",), {"MASTER_PORT": "65535", "SLURM_STEP_RESV_PORTS": "1"}, "65535"),
        (("--port",), JOB | {"SLURM_STEP_RESV_PORTS": "12000-12003"}, "12000"),
        (("--port",), JOB | {"SLURM_STEP_RESV_PORTS": "12005,12007-12009"}, "12005"),
        (("--port",), JOB | {"SLURM_STEP_RESV_PORTS": "[12005-12007]"}, "12005"),
    ],
)
def test_answer(
    runner: Runner, arguments: tuple[str, ...], env: dict[str, str], answer: str
) -> None:
    assert get(runner, *arguments, **env) == answer


def test_port_of_a_single_process_is_free_and_differs(runner: Runner) -> None:
    ports = {get(runner, "--port", **JOB, WORLD_SIZE="1") for _ in range(5)}
    assert len(ports) > 1


def test_port_of_a_job_is_the_same_everywhere(runner: Runner) -> None:
    ports = {get(runner, "--port", **JOB, SLURM_PROCID=rank) for rank in "012"}
    assert len(ports) == 1
    assert 61001 <= int(ports.pop()) <= 65535


def test_ports_of_neighbouring_jobs_differ() -> None:
    keys = [f"{job} {step} 0" for job in range(4_000_000, 4_000_030) for step in range(3)]
    ports = [launch_ports.hashed_ports(key)[0] for key in keys]
    assert len(set(ports)) >= 85  # of 90; chance alone takes one
    assert set(ports) <= set(range(61001, 65536))


@pytest.mark.parametrize(
    ("arguments", "env", "code", "message"),
    [
        ((), {"SLURM_STEP_NODELIST": "n["}, 65, "SLURM_STEP_NODELIST='n[' cannot be read"),
        ((), {"SLURM_JOB_NODELIST": ""}, 65, "SLURM_JOB_NODELIST='' cannot be read"),
        ((), {"WORLD_SIZE": "4", "LOCAL_WORLD_SIZE": "2"}, 78, "WORLD_SIZE='4' is more than"),
        ((), {"WORLD_SIZE": "four"}, 78, "WORLD_SIZE='four' is not a whole number"),
        (("--port",), {"MASTER_PORT": "70000"}, 78, "MASTER_PORT='70000' is not a port"),
        (("--port",), {"SLURM_STEP_RESV_PORTS": "none"}, 78, "SLURM_STEP_RESV_PORTS="),
        (("--port",), {"WORLD_SIZE": "2"}, 78, "MASTER_PORT is not set"),
    ],
)
def test_refusal(
    runner: Runner, arguments: tuple[str, ...], env: dict[str, str], code: int, message: str
) -> None:
    refusal_text = refused(runner, *arguments, **env)
    assert refusal_text[0] == code
    assert refusal_text[1].startswith(f"get-master: {message}")
