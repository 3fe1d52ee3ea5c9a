"""Runs in the image, where torch is: what collectives.py computes and how it checks, as JSON."""

from __future__ import annotations

import argparse
import json
import pathlib
import sys
import tempfile
from typing import Any

sys.path.insert(0, "/runscripts")
import collectives
import torch
from comm import groups, memory, values

SIZE = 64 << 10
RANKS = 4
CPU = torch.device("cpu")


def right(operation: str, rank: int, size: int = SIZE) -> Any:
    """Return the right values for a rank, made without the code under test, element by element."""

    def sent(sender: int, index: int) -> int:
        return (index % values.PERIOD + values.STEP * sender) % values.MODULUS

    whole = size // values.ITEM
    part = whole // RANKS
    if operation == "all_gather":
        data = [sent(sender, index) for sender in range(RANKS) for index in range(part)]
    elif operation == "broadcast":
        data = [sent(0, index) for index in range(whole)]
    else:
        start, end = (rank * part, (rank + 1) * part) if "scatter" in operation else (0, whole)
        data = [sum(sent(number, index) for number in range(RANKS)) for index in range(start, end)]
    return torch.tensor(data, dtype=torch.float32)


def damages(result: Any) -> dict[str, Any]:
    """Return kinds of damage by which a network, or a library, spoils a result."""
    first, shifted, stale, swapped = (result.clone() for _ in range(4))
    first[-1] += 1
    stale[100:200] = -1
    half = len(result) // 2
    swapped[:half], swapped[half : 2 * half] = result[half : 2 * half], result[:half]
    nothing = torch.full_like(result, float("nan"))
    shifted = result.roll(1)
    return {"one": first, "shifted": shifted, "stale": stale, "swapped": swapped, "nan": nothing}


def checks() -> dict[str, Any]:
    """Count wrong elements found in right and in spoilt results, per operation and rank."""
    results: dict[str, Any] = {}
    for operation in values.OPERATIONS:
        for rank in (0, RANKS - 1):
            good = right(operation, rank)
            cases = {"right": good, **damages(good)}
            results[f"{operation} {rank}"] = {
                name: values.wrong_elements(operation, rank, RANKS, data)
                for name, data in cases.items()
            }
    return results


def sizes(ranks: int) -> dict[str, list[int]]:
    options = argparse.Namespace(min_size=1024, max_size=4096, factor=2)
    return {name: collectives.sizes(options, name, ranks) for name in values.OPERATIONS}


def memory_left(files: dict[str, str]) -> int:
    """Return the bytes free for one of two ranks, by the files of a made-up kernel."""
    with tempfile.TemporaryDirectory() as name:
        root = pathlib.Path(name)
        for path, text in files.items():
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_text(text)
        return memory.free(CPU, 2, root)


class Spoiling:
    """A group whose results are spoilt on one rank, as a bad network would."""

    def __init__(self, group: Any, operations: str) -> None:
        self.group, self.operations = group, operations.split(",")

    def __getattr__(self, name: str) -> Any:
        return getattr(self.group, name)

    def run(self, operation: str, sent: Any, result: Any) -> None:
        self.group.run(operation, sent, result)
        if operation in self.operations and self.rank == 1 and len(result) > RANKS:
            result[-1] += 1


def spoilt_run(operations: str, *words: str) -> int:
    """Run the whole program over a network that spoils some operations on rank 1."""
    program: Any = collectives
    program.open_group = lambda *given: Spoiling(groups.open_group(*given), operations)
    sys.argv = ["collectives.py", *words]
    return collectives.main()


def main() -> int:
    if sys.argv[1:2] == ["spoilt"]:
        return spoilt_run(*sys.argv[2:])
    answers = {
        "checks": checks(),
        "rows": [
            collectives._row(name, 1 << 20, ranks, [0.004, 0.001, 0.002])  # noqa: SLF001
            for ranks in (2, 8)
            for name in values.OPERATIONS
        ],
        "sizes": {str(ranks): sizes(ranks) for ranks in (2, 3, 1024)},
        "memory": [memory_left(files) for files in json.load(sys.stdin)],
        "exact": [float(values.total(16448).max()), 2.0**24],
    }
    sys.stdout.write(json.dumps(answers))
    return 0


if __name__ == "__main__":
    sys.exit(main())
