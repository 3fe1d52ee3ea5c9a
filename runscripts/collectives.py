#!/usr/bin/env python3
r"""Time the collective operations of a process group, and check every value they deliver.

    srun -N2 --ntasks-per-node=8 singularity exec $SIF conda-python-distributed \
        /runscripts/collectives.py --json comm.json
    singularity exec $SIF conda-python-distributed --nproc-per-node 2 /runscripts/collectives.py

Sizes and bandwidths are those of nccl-tests (its doc/PERFORMANCE.md). A size in bytes is that of
the larger buffer: the output of an all-gather, the input of a reduce-scatter. The algorithm
bandwidth is the size divided by the time. The bus bandwidth is the algorithm bandwidth times a
factor. A time is the slowest rank's.
Exit status: 0 good, 1 wrong values, which a fast network can deliver silently (NVIDIA/nccl#2001),
2 cannot run here.
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import re
import socket
import statistics
import sys
import tempfile
import time
from typing import TYPE_CHECKING

import torch
from comm.groups import RankError, RefusedError, open_group

from comm import memory, values

if TYPE_CHECKING:
    from typing import Any

    from comm.groups import MpiGroup, TorchGroup

    Group = MpiGroup | TorchGroup
    Row = dict[str, Any]

WRONG, REFUSED = 1, 2
PATIENCE = 30  # seconds
UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
# Operations that warm up and are checked, up to a size in bytes: many where they are cheap.
WARM_UPS = ((4 << 20, 20), (64 << 20, 5), (sys.maxsize, 2))
FEWEST, MOST = 3, 1000  # timed operations


def factor(operation: str, ranks: int) -> float:
    """Return bus bandwidth by algorithm bandwidth (doc/PERFORMANCE.md of NVIDIA/nccl-tests)."""
    if operation == "broadcast":
        return 1.0
    return (2 if operation == "all_reduce" else 1) * (ranks - 1) / ranks


def sizes(options: argparse.Namespace, operation: str, ranks: int) -> list[int]:
    """Return sizes in bytes, rounded down to a share for each rank, as nccl-tests does."""
    unit = values.ITEM * (1 if operation in values.IN_PLACE else ranks)
    listed, size = set(), options.min_size
    while size <= options.max_size:
        listed.add(max(size // unit, 1) * unit)
        size *= options.factor
    return sorted(listed)


def measure(group: Group, operation: str, size: int, budget: float) -> Row:
    """Check, then time one operation of `size` bytes for about `budget` seconds."""
    sent, result = values.buffers(operation, size, group.ranks, group.device)
    warm_ups = next(count for limit, count in WARM_UPS if size <= limit)
    checked = [_checked(group, operation, sent, result) for _ in range(warm_ups)]
    wrong = sum(count for _, count in checked)
    fastest, worst = group.largest([min(seconds for seconds, _ in checked), wrong])
    if wrong:
        _say(f"rank {group.rank} on {_host()}: {operation} of {size} bytes: {wrong} wrong elements")
    if operation == "all_reduce":
        result.zero_()  # it works in place: sums of sums would overflow
    count = min(max(FEWEST, int(budget / max(fastest, 1e-9))), MOST)
    times = group.largest([_timed(group, operation, sent, result) for _ in range(count)])
    return _row(operation, size, group.ranks, times) | {"wrong_elements": int(worst)}


def _checked(
    group: Group, operation: str, sent: torch.Tensor, result: torch.Tensor
) -> tuple[float, int]:
    """Return the seconds of one operation, and the number of wrong elements of its result."""
    if sent is not result:
        result.fill_(-1)
    values.fill(sent, group.rank)
    seconds = _timed(group, operation, sent, result)
    return seconds, values.wrong_elements(operation, group.rank, group.ranks, result)


def _timed(group: Group, operation: str, sent: torch.Tensor, result: torch.Tensor) -> float:
    start = time.perf_counter()
    group.run(operation, sent, result)
    return time.perf_counter() - start


def _row(operation: str, size: int, ranks: int, times: list[float]) -> Row:
    """Return one result: seconds, and GB/s (10^9 bytes) at the median."""
    median = statistics.median(times)
    algorithm = size / median / 1e9
    return {
        "operation": operation,
        "bytes": size,
        "iterations": len(times),
        "seconds_median": median,
        "seconds_min": min(times),
        "algorithm_bandwidth": algorithm,
        "bus_bandwidth": algorithm * factor(operation, ranks),
    }


# --- a whole run ----------------------------------------------------------------------------------


def benchmark(group: Group, options: argparse.Namespace) -> list[Row]:
    """Run all operations and sizes; rank 0 prints a line for each."""
    rows = []
    for operation in options.operation or values.OPERATIONS:
        if missing := group.lacks(operation):
            rows.append({"operation": operation, "unsupported": missing})
            _print(group, options, f"{operation:<15} not supported by backend: {missing}")
            continue
        for size in sizes(options, operation, group.ranks):
            rows.append(measure(group, operation, size, options.seconds))
            _print(group, options, _line(rows[-1]))
    return rows


def require_memory(group: Group, options: argparse.Namespace) -> None:
    """Refuse sizes that do not fit, on all ranks at once."""
    local_ranks = int(os.environ.get("LOCAL_WORLD_SIZE", group.ranks))
    lacking = memory.needed(options.max_size, group.ranks) - memory.free(group.device, local_ranks)
    texts = group.texts(f"{max(lacking, 0)} {_host()}")
    most, host = max((int(text.split()[0]), text.split()[1]) for text in texts)
    if most:
        raise RefusedError(
            f"--max-size {options.max_size >> 20} MiB needs"
            f" {memory.needed(options.max_size, group.ranks) >> 20} MiB for each rank,"
            f" {most >> 20} MiB more than are free on {host}. Choose a smaller size"
        )


def document(group: Group, rows: list[Row], started: str) -> dict[str, Any]:
    """Return the JSON document: the ranks by host and process, a row per operation and size."""
    places = [text.split() for text in group.texts(f"{_host()} {os.getpid()}")]
    hosts = sorted({host for host, _ in places})
    return {
        "format": 1,
        "started": started,
        "torch": torch.__version__,
        "backend": group.backend,
        "library": group.library,
        "device": _device(group),
        "world_size": group.ranks,
        "nodes": len(hosts),
        "hosts": hosts,
        "ranks": [{"host": host, "pid": int(pid)} for host, pid in places],
        "rows": rows,
    }


def _host() -> str:
    """Return the host as NCCL writes it into its log: up to the first dot."""
    return socket.gethostname().split(".")[0]


def _device(group: Group) -> str:
    return torch.cuda.get_device_name(group.device) if group.device.type == "cuda" else "cpu"


def write(text: str, path: str) -> None:
    """Write to stdout, to a device, or a whole file that is then put in place."""
    if path == "-":
        sys.stdout.write(text)
    elif pathlib.Path(path).exists() and not pathlib.Path(path).is_file():
        pathlib.Path(path).write_text(text, encoding="utf-8")
    else:
        _replace(text, pathlib.Path(path).resolve())


def _replace(text: str, target: pathlib.Path) -> None:
    with tempfile.NamedTemporaryFile(
        "w", dir=str(target.parent), delete=False, encoding="utf-8"
    ) as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    pathlib.Path(file.name).chmod(0o644)
    pathlib.Path(file.name).replace(target)


def _line(row: Row) -> str:
    wrong = f"  {row['wrong_elements']} WRONG" if row["wrong_elements"] else ""
    return (
        f"{row['operation']:<15}{row['bytes']:>12}{row['iterations']:>6}"
        f"{row['seconds_median'] * 1e6:>14.1f}{row['seconds_min'] * 1e6:>14.1f}"
        f"{row['algorithm_bandwidth']:>10.3f}{row['bus_bandwidth']:>10.3f}{wrong}"
    )


def _head(group: Group) -> str:
    columns = ("operation", "bytes", "runs", "median us", "min us", "alg GB/s", "bus GB/s")
    widths = zip(columns, ("<15", ">12", ">6", ">14", ">14", ">10", ">10"), strict=True)
    first = f"# torch {torch.__version__}, {group.library}, {group.ranks} ranks, {_device(group)}\n"
    return first + "".join(f"{name:{width}}" for name, width in widths)


def _print(group: Group, options: argparse.Namespace, line: str) -> None:
    if group.rank == 0:
        print(line, file=sys.stderr if options.json == "-" else sys.stdout, flush=True)


def _say(message: str) -> None:
    sys.stderr.write(f"collectives.py: {message}\n")


# --- the command line -----------------------------------------------------------------------------


def size_in_bytes(text: str) -> int:
    """Read 4096, 1K, 512M or 2G; units are powers of 1024, as in nccl-tests."""
    match = re.fullmatch(r"([1-9]\d*)([KMG]?)", text.upper())
    if match is None:
        raise argparse.ArgumentTypeError(f"'{text}' is no size like 1K, 512M or 2G")
    return int(match[1]) * UNITS[match[2]]


def arguments() -> argparse.Namespace:
    """Parse the command line; a wrong one ends in exit status 2."""
    parser = argparse.ArgumentParser(prog="collectives.py", allow_abbrev=False)
    add = parser.add_argument
    add("operation", nargs="*", choices=[*values.OPERATIONS, []], help="default: all")
    add("--backend", default="", choices=("gloo", "mpi", "nccl"), help="default: nccl with GPUs")
    add("--min-size", type=size_in_bytes, default="1K")
    add("--max-size", type=size_in_bytes, default="512M")
    add("--factor", type=int, default=2, help="from one size to the next")
    add("--seconds", type=float, default=0.25, help="for timing one size of one operation")
    add("--timeout", type=float, default=120, help="seconds until a silent rank is an error")
    add("--json", default="-", metavar="FILE", help="default: stdout, and the table on stderr")
    add("--nccl-log", metavar="DIR", help="folder for NCCL's own log, one file per process")
    options = parser.parse_args()
    if options.factor < 2:  # noqa: PLR2004
        parser.error("--factor must be 2 or more")
    if options.min_size > options.max_size:
        parser.error(f"--min-size {options.min_size} is above --max-size {options.max_size}")
    return options


def log_nccl(folder: str) -> None:
    """Let NCCL say which network it takes; it reads this when the first group is made."""
    settings = {"": "INFO", "_SUBSYS": "INIT,NET,ENV", "_FILE": f"{folder}/nccl.%h.%p.log"}
    os.environ.update({f"NCCL_DEBUG{name}": value for name, value in settings.items()})


def run(options: argparse.Namespace) -> int:
    """Join the group, measure, write; rank 0 speaks for all."""
    started = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    group = open_group(options.backend, options.timeout)
    try:
        require_memory(group, options)
        _print(group, options, _head(group))
        rows = benchmark(group, options)
        result = document(group, rows, started)
        if group.rank == 0:
            write(json.dumps(result, indent=1) + "\n", options.json)
    finally:
        group.close()
    return WRONG if any(row.get("wrong_elements") for row in rows) else 0


def main() -> int:
    """Return the exit status."""
    options = arguments()
    if options.nccl_log:
        log_nccl(options.nccl_log)
    try:
        return run(options)
    except RefusedError as error:
        if isinstance(error, RankError) or os.environ.get("RANK", "0") == "0":
            _say(str(error))
        else:
            # Launchers end all ranks with the first one, and rank 0 may not have spoken yet.
            time.sleep(PATIENCE)
        return REFUSED


if __name__ == "__main__":
    sys.exit(main())
