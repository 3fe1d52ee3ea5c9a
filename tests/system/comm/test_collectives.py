"""The benchmark in the real image: its arithmetic, its check of values, and real runs on gloo."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import pytest

from tests.conftest import ROOT, run, sifwright

if TYPE_CHECKING:
    import subprocess
    from pathlib import Path

OPERATIONS = ["all_reduce", "all_gather", "broadcast", "reduce_scatter"]
KIB = 1024
GIB = 1 << 30
MEMINFO = f"MemTotal: 1 kB\nMemAvailable: {8 * GIB // KIB} kB\n"
V1 = "sys/fs/cgroup/memory/slurm/job_1"
V2 = "sys/fs/cgroup/slurm/job_1"
# Files of a kernel, and the bytes they leave to each of two ranks.
MEMORY: list[tuple[dict[str, str], int]] = [
    ({"proc/self/cgroup": "0::/\n"}, 4 * GIB),
    (
        {
            "proc/self/cgroup": "0::/slurm/job_1/step_0\n",
            f"{V2}/step_0/memory.max": "max\n",
            f"{V2}/memory.max": f"{2 * GIB}\n",
            f"{V2}/memory.current": f"{GIB}\n",
            f"{V2}/memory.stat": f"anon 1\ninactive_file {GIB // 2}\n",
        },
        3 * GIB // 4,
    ),
    (
        {
            "proc/self/cgroup": "9:memory:/slurm/job_1\n8:pids:/x\n0::/\n",
            f"{V1}/memory.limit_in_bytes": f"{4 * GIB}\n",
            f"{V1}/memory.usage_in_bytes": f"{GIB}\n",
            f"{V1}/memory.stat": f"inactive_file 1\ntotal_inactive_file {GIB}\n",
        },
        2 * GIB,
    ),
]


def in_image(image: Path, *words: object, **options: object) -> subprocess.CompletedProcess[str]:
    command = ("singularity", "exec", "--bind", f"{ROOT}/tests/system:/mnt", image, *words)
    return run(command, **options)


def benchmark(image: Path, *words: object) -> subprocess.CompletedProcess[str]:
    start = ("conda-python-distributed", "--nproc-per-node", 2, "/runscripts/collectives.py")
    return in_image(image, *start, "--seconds", 0.01, *words)


@pytest.fixture(scope="module")
def answers(image: Path) -> Any:
    files = [{"proc/meminfo": MEMINFO, **files} for files, _ in MEMORY]
    script = ("conda-python-simple", "/mnt/comm/in_image.py")
    done = in_image(image, *script, input=json.dumps(files))
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


pytestmark = pytest.mark.image


@pytest.mark.parametrize("rank", [0, 3])
@pytest.mark.parametrize("operation", OPERATIONS)
def test_right_values_are_right_and_spoilt_ones_are_seen(
    answers: Any, operation: str, rank: int
) -> None:
    result = answers["checks"][f"{operation} {rank}"]
    assert result["right"] == 0
    assert result["one"] == 1
    assert result["stale"] == 100
    length = 64 * KIB // 4 // (4 if operation == "reduce_scatter" else 1)
    assert result["nan"] == length
    assert result["shifted"] > length // 2
    assert result["swapped"] > length // 2


def test_bandwidths_are_those_of_nccl_tests(answers: Any) -> None:
    """Compute 0.524288 GB/s for 1 MiB in 2 ms, and the factors for 2 and 8 ranks by hand."""
    factors = [1, 0.5, 1, 0.5, 1.75, 0.875, 1, 0.875]
    assert [row["operation"] for row in answers["rows"]] == OPERATIONS * 2
    for row, factor in zip(answers["rows"], factors, strict=True):
        assert row["bytes"] == 1048576
        assert (row["seconds_median"], row["seconds_min"]) == (0.002, 0.001)
        assert row["algorithm_bandwidth"] == pytest.approx(0.524288)
        assert row["bus_bandwidth"] == pytest.approx(0.524288 * factor)


def test_sizes_are_those_of_the_larger_buffer(answers: Any) -> None:
    assert answers["sizes"]["2"] == {name: [1024, 2048, 4096] for name in OPERATIONS}
    shared, whole = [1020, 2040, 4092], [1024, 2048, 4096]
    assert [answers["sizes"]["3"][name] for name in OPERATIONS] == [whole, shared, whole, shared]
    assert answers["sizes"]["1024"]["all_gather"] == [4096]


def test_sums_are_exact(answers: Any) -> None:
    largest, limit = answers["exact"]
    assert largest < limit


def test_memory_of_node_and_job(answers: Any) -> None:
    assert answers["memory"] == [expected for _, expected in MEMORY]


# --- real runs ------------------------------------------------------------------------------------


@pytest.mark.all
def test_a_real_run(image: Path, tmp_path: Path) -> None:
    done = benchmark(image, "--max-size", "64K", "--factor", 4, "--json", tmp_path / "comm.json")
    assert done.returncode == 0, done.stderr
    document = json.loads((tmp_path / "comm.json").read_text())
    assert (document["backend"], document["world_size"], document["nodes"]) == ("gloo", 2, 1)
    assert len({rank["pid"] for rank in document["ranks"]}) == 2
    rows = document["rows"]
    assert [row["operation"] for row in rows] == [name for name in OPERATIONS for _ in range(4)]
    assert [row["bytes"] for row in rows[:4]] == [1024, 4096, 16384, 65536]
    for row in rows:
        assert row["wrong_elements"] == 0
        assert row["iterations"] >= 3
        assert 0 < row["seconds_min"] <= row["seconds_median"] < 1
        assert row["algorithm_bandwidth"] == row["bytes"] / row["seconds_median"] / 1e9
    assert len(done.stdout.splitlines()) == 2 + len(rows)
    assert list(tmp_path.iterdir()) == [tmp_path / "comm.json"]


@pytest.mark.all
def test_json_on_stdout_and_the_table_beside_it(image: Path) -> None:
    done = benchmark(image, "broadcast", "--max-size", "1K")
    assert json.loads(done.stdout)["rows"][0]["operation"] == "broadcast"
    assert re.search(r"^broadcast +1024 ", done.stderr, re.MULTILINE)


@pytest.mark.all
def test_a_device_is_written_to_and_not_replaced(image: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("/dev/null")
    assert (
        benchmark(image, "broadcast", "--max-size", "1K", "--json", tmp_path / "link").returncode
        == 0
    )
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "link").is_char_device()


@pytest.mark.all
def test_spoilt_results_fail(image: Path, tmp_path: Path) -> None:
    start = ("conda-python-distributed", "--nproc-per-node", 2, "/mnt/comm/in_image.py", "spoilt")
    target = tmp_path / "comm.json"
    words = ("--max-size", "2K", "--seconds", 0.01, "--json", target)
    done = in_image(image, *start, "all_gather,reduce_scatter", *words)
    assert done.returncode != 0
    assert done.stdout.count(" WRONG\n") == 4
    assert re.search(r"rank 1 on \S+: all_gather of 1024 bytes: 20 wrong elements", done.stderr)
    rows = json.loads(target.read_text())["rows"]
    wrong = {row["operation"] for row in rows if row["wrong_elements"]}
    assert (wrong, len(rows)) == ({"all_gather", "reduce_scatter"}, 8)


@pytest.mark.all
@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--max-size", "64G"), r"--max-size 65536 MiB needs 163904 MiB for each rank, \d+ MiB"),
        (("--backend", "nccl"), r"backend nccl: torch \S+ sees no GPU here: start the container"),
        (("--backend", "mpi"), "backend mpi: this torch was built without MPI"),
    ],
)
def test_an_impossible_run_is_refused_once(
    image: Path, words: tuple[str, ...], message: str
) -> None:
    done = benchmark(image, *words)
    assert done.returncode != 0
    results = [line for line in done.stderr.splitlines() if line.startswith("collectives.py: ")]
    assert len(results) == 1
    assert re.match(f"collectives.py: {message}", results[0])


def test_one_rank_is_refused(image: Path) -> None:
    done = in_image(image, "conda-python-distributed", "/runscripts/collectives.py")
    assert done.returncode == 2
    assert done.stderr.startswith("collectives.py: one rank has nobody to talk to: start several")


def test_a_wrong_command_line_is_refused(image: Path) -> None:
    words = ("--min-size", "2M", "--max-size", "1M")
    done = in_image(image, "conda-python-simple", "/runscripts/collectives.py", *words)
    assert done.returncode == 2
    assert "collectives.py: error: --min-size 2097152 is above --max-size 1048576" in done.stderr


def test_check_comm_for_real(image: Path) -> None:
    done = sifwright("check-comm", "local", "--max-size", "16K", timeout=300)
    assert (done.returncode, done.stderr) == (0, "")
    assert "network: not checked: backend gloo" in done.stdout
    document = json.loads((image.parent / "comm.json").read_text())
    assert [row["wrong_elements"] for row in document["rows"]] == [0] * 20
    assert (image.parent / "comm.png").read_bytes().startswith(b"\x89PNG")
