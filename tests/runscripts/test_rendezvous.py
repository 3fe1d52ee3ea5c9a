"""All ranks of a launch join before any starts: no mixing, no hang, one reason for all."""

from __future__ import annotations

import itertools
import resource
import signal
import socket
from contextlib import ExitStack, contextmanager, suppress
from typing import TYPE_CHECKING

import pytest
from launch import rendezvous, rendezvous_server
from launch.ports import hashed_ports

from tests.servers import free_port
from tests.waiting import LIMIT_SECONDS, wait_for

from .launches import Launch
from .own_ports import job_number

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from .launches import Ended

SHOW = "import os; print(os.environ['MASTER_ADDR'], os.environ['MASTER_PORT'])"

# Reports its start, and then waits for a file.
IMPORTING = """
import os, time
os.mkdir(os.path.join({folder!r}, os.environ["RANK"]))
while not os.path.exists(os.path.join({folder!r}, "end")):
    time.sleep(0.01)
"""


def ports_of(job: int, step: int = 0) -> list[int]:
    return hashed_ports(f"{job_number(job)} {step} 0")


@contextmanager
def listening(port: int, address: str = "") -> Iterator[socket.socket]:
    """Listen as most servers do: without SO_REUSEPORT, with SO_REUSEADDR."""
    with socket.socket() as server:
        server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        server.bind((address, port))
        server.listen()
        yield server


def reasons(ended: list[Ended]) -> str:
    """Return the reason of all ranks, none of which may have started Python."""
    assert all(rank.stdout == "" for rank in ended)
    assert all(rank.status != 0 for rank in ended)
    texts = {rank.stderr for rank in ended}
    assert len(texts) == 1, texts
    return texts.pop()


def check_met(launch: Launch) -> None:
    for rank in launch.end():
        assert (rank.status, rank.stderr) == (0, ""), (launch.job, launch.step)
        assert rank.stdout == f"{launch.job}.{launch.step}\n"


def test_32_jobs_and_8_steps_at_once_do_not_mix() -> None:
    """Take every fourth port (R11); pairs of launches hash to one port."""
    twins = same_first_port(4)
    jobs = [Launch(job) for job in [*itertools.chain(*twins), *range(100, 132 - 2 * len(twins))]]
    steps = [Launch(900, step=step) for step in range(8)]
    with ExitStack() as others:
        for launch in [*jobs[2::4], *steps[::4]]:
            with suppress(OSError):  # another program has the port
                others.enter_context(listening(ports_of(launch.job, launch.step)[0]))
        for launch in (launches := jobs + steps):
            others.enter_context(launch).start()
        for launch in launches:
            check_met(launch)
    assert len(launches) == 40


def same_first_port(pairs: int) -> list[tuple[int, int]]:
    """Find pairs of jobs whose names give the same first port."""
    seen: dict[int, int] = {}
    results: list[tuple[int, int]] = []
    for job in itertools.count(10_000):
        port = ports_of(job)[0]
        if port in seen:
            results.append((seen.pop(port), job))
        if len(results) == pairs:
            return results
        seen[port] = job
    raise AssertionError


def test_port_is_kept_until_python_listens_there(tmp_path: Path) -> None:
    """Send a second launch of the port elsewhere while rank 0 still imports."""
    (first, second) = same_first_port(1)[0]
    with Launch(first).start(code=IMPORTING.format(folder=str(tmp_path)) + SHOW) as started:
        assert wait_for(lambda: len(list(tmp_path.iterdir())) == started.size)
        two = Launch(second).start(code=SHOW)
        assert {rank.stdout.split()[1] for rank in two.end()} == {str(ports_of(second)[1])}
        (tmp_path / "end").touch()
        assert {rank.stdout.split()[1] for rank in started.end()} == {str(ports_of(first)[0])}


@pytest.mark.parametrize(
    "words",
    [
        b"sifwright-1\tsomebody else\t1\t2\thost\t\n",
        f"sifwright-1\t{job_number(77)} 0 0\t1\t2\n".encode(),
        b"GET / HTTP/1.1\r\n\r\n",
        b"\x00" * 5000,
        b"",
    ],
    # The job's number is another one in each process of pytest-xdist.
    ids=["another job", "no host", "HTTP", "zeros", "nothing"],
)
def test_other_programs_are_refused(words: bytes) -> None:
    launch = Launch(77).start(0)
    other = connected(ports_of(77)[0])
    other.sendall(words)
    if words.endswith(b"\n"):
        assert other.recv(100) == b"other-launch\n"
    launch.start(1)
    check_met(launch)
    other.close()


def connected(port: int) -> socket.socket:
    met: list[socket.socket] = []

    def connect() -> bool:
        with suppress(ConnectionRefusedError):
            met.append(socket.create_connection(("127.0.0.1", port), 60))
        return bool(met)

    assert wait_for(connect), f"nobody listens at {port}"
    return met[0]


def test_rank_0_that_never_comes_is_named() -> None:
    ended = Launch(79, size=3, env={"SIFWRIGHT_START_TIMEOUT": "1"}).start(1, 2).end()
    for rank in ended:
        assert "did not reach rank 0 at MASTER_ADDR='127.0.0.1'" in rank.stderr
        assert "rank 0 has not started, or has ended" in rank.stderr
    assert {rank.status for rank in ended} == {69}


@pytest.mark.parametrize("failing", [0, 1, 2])
def test_one_ranks_problem_stops_all_at_once(failing: int) -> None:
    problem = {failing: {"TMPDIR": "/proc/self/fd"}}
    reason = reasons(Launch(80, size=3, rank_env=problem).start().end())
    assert f"rank {failing} on " in reason
    assert "TMPDIR='/proc/self/fd' cannot be written" in reason


def test_port_in_use_is_named_with_its_variable() -> None:
    with listening(0) as server:
        port = str(server.getsockname()[1])
        reason = reasons(Launch(81, size=3, env={"MASTER_PORT": port}).start().end())
    assert f"MASTER_PORT='{port}' is in use on " in reason
    assert f"for example {ports_of(81)[0]}" in reason


def test_port_in_use_on_one_address_only() -> None:
    with listening(0, "127.0.0.1") as server:
        port = str(server.getsockname()[1])
        assert "is in use" in reasons(Launch(82, env={"MASTER_PORT": port}).start().end())


def test_reserved_ports_one_of_which_is_free() -> None:
    free = free_port()
    with listening(0) as taken:
        env = {"SLURM_STEP_RESV_PORTS": f"{taken.getsockname()[1]},{free}"}
        ended = Launch(84, env=env).start(code=SHOW).end()
    assert {rank.stdout for rank in ended} == {f"127.0.0.1 {free}\n"}


def test_two_tasks_of_one_rank_are_named() -> None:
    launch = Launch(85, size=3, rank_env={2: {"SLURM_PROCID": "1"}})
    assert "rank 1 on " in (reason := reasons(launch.start().end()))
    assert "joined twice" in reason


def test_ranks_that_disagree_about_their_number() -> None:
    four = {"SLURM_STEP_NUM_TASKS": "4", "SLURM_STEP_TASKS_PER_NODE": "4"}
    launch = Launch(86, size=3, rank_env={2: four})
    assert "has a world size of 4, not 3" in reasons(launch.start().end())


def test_rank_that_dies_while_the_others_come() -> None:
    launch = Launch(87, size=3).start(0)
    with connected(ports_of(87)[0]) as rank_1:
        rank_1.sendall(f"sifwright-1\t{job_number(87)} 0 0\t1\t3\thost\t\t\n".encode())
        assert rank_1.recv(100) == b"wait\n"
    assert "rank 1 ended before the start" in reasons(launch.start(2).end())


@pytest.mark.parametrize("seconds", ["0", "soon", "-1"])
def test_timeout_that_is_no_number(seconds: str) -> None:
    reason = reasons(Launch(88, env={"SIFWRIGHT_START_TIMEOUT": seconds}).start().end())
    assert f"SIFWRIGHT_START_TIMEOUT='{seconds}' is not a number of seconds" in reason


def test_many_ranks_with_few_descriptors() -> None:
    """Raise the limit while rank 0 has a connection to each; Python gets the old limit."""
    count = "import os, resource; print(os.environ['WORLD_SIZE'], *resource.getrlimit(7))"
    launch = Launch(89, size=12)
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    soft = 10  # fewer than there are ranks

    def few() -> None:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))

    with launch.start(code=count, before=few):
        ended = launch.end()
    assert {(rank.stdout, rank.stderr) for rank in ended} == {(f"12 {soft} {hard}\n", "")}


def test_name_that_cannot_be_resolved() -> None:
    """End every rank at once: no rank waits for a host that does not exist."""
    env = {"MASTER_ADDR": "no-such-host.invalid", "SLURM_STEP_TASKS_PER_NODE": "1(x2)"}
    # A quarter of it for the others, who never come.
    first = {"SIFWRIGHT_START_TIMEOUT": "12"}
    second = {"SLURM_NODEID": "1", "SLURM_LOCALID": "0"}
    for rank in Launch(90, env=env, rank_env={0: first, 1: second}).start().end():
        assert rank.status != 0
        assert "MASTER_ADDR='no-such-host.invalid'" in rank.stderr
        assert "cannot be resolved" in rank.stderr


def test_rank_0_on_another_host_than_the_list_says() -> None:
    """Leave MASTER_ADDR out of the reason, as nobody has set it."""
    nodes = {"SLURM_STEP_TASKS_PER_NODE": "1(x2)", "SLURM_STEP_NODELIST": "192.0.2.1"}
    with Launch(91, env=nodes | {"SIFWRIGHT_START_TIMEOUT": "1"}) as launch:
        (rank,) = launch.start(0).end()
    assert "the first host of the launch, '192.0.2.1' is not an address of it" in rank.stderr


def test_ctrl_c_while_waiting() -> None:
    launch = Launch(92).start(0)
    connected(ports_of(92)[0]).close()
    launch.processes[0].send_signal(signal.SIGINT)
    (rank,) = launch.end()
    assert rank.status == 130
    assert rank.stderr.endswith("stopped while waiting for the other ranks\n")


def test_silent_connections_do_not_keep_the_ranks_apart() -> None:
    """Wait for all connections at the same time, or the ranks would be late."""
    launch = Launch(93, size=3).start(0)
    with ExitStack() as silent:
        for _ in range(int(LIMIT_SECONDS / rendezvous_server.FIRST_LINE_SECONDS) + 100):
            silent.enter_context(connected(ports_of(93)[0]))
        check_met(launch.start(1, 2))


def test_rank_0_that_stands_still_for_a_while() -> None:
    """Stop rank 0 until the others have sent their names and looked for it elsewhere."""
    launch = Launch(94, size=3).start(0)
    connected(ports_of(94)[0]).close()
    launch.processes[0].send_signal(signal.SIGSTOP)
    with listening(ports_of(94)[1]) as elsewhere, ExitStack() as guests:
        elsewhere.settimeout(LIMIT_SECONDS)
        launch.start(1, 2)
        for _ in range(2):
            guests.enter_context(elsewhere.accept()[0])
        launch.processes[0].send_signal(signal.SIGCONT)
        check_met(launch)


def test_local_rank_left_over_from_the_batch_script() -> None:
    """Refuse the launch: all ranks would compute on the first GPU."""
    gpus = {"SIFWRIGHT_VENDOR": "nvidia", "CUDA_VISIBLE_DEVICES": "0,1", "LOCAL_RANK": "0"}
    reason = reasons(Launch(96, env=gpus).start().end())
    assert "both have LOCAL_RANK='0', but several GPUs: unset LOCAL_RANK" in reason


def test_more_ranks_than_open_files() -> None:
    def few() -> None:
        resource.setrlimit(resource.RLIMIT_NOFILE, (40, 40))

    with Launch(97, env={"SIFWRIGHT_START_TIMEOUT": "1"}).start(0, before=few) as launch:
        (rank,) = launch.end()
    assert rank.status == 69
    assert "'ulimit -Hn' is 40: raise it" in rank.stderr


@pytest.mark.parametrize(("size", "neighbours", "nodes"), [(4, 4, 1), (4000, 4, 1000), (5, 4, 2)])
@pytest.mark.parametrize("variable", ["APPTAINER_CONTAINER", "SINGULARITY_CONTAINER"])
def test_more_time_for_more_nodes_and_larger_images(
    tmp_path: Path, size: int, neighbours: int, nodes: int, variable: str
) -> None:
    group = rendezvous.Group(0, size, neighbours, known=True)
    assert rendezvous.start_seconds({}, group) == 60 + nodes
    with (tmp_path / "image.sif").open("wb") as image:
        image.truncate(15 * 10**9)
    for env in ({variable: str(tmp_path / "image.sif")}, {variable: "/nowhere"}):
        expected = 60 + nodes + (150 if "nowhere" not in env[variable] else 0)
        assert rendezvous.start_seconds(env, group) == expected
        assert rendezvous.start_seconds({**env, "SIFWRIGHT_START_TIMEOUT": "7"}, group) == 7
