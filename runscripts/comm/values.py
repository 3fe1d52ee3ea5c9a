"""Data of the benchmarked operations, and their expected results: every element is checked."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from collections.abc import Iterator

    Tensors = tuple[torch.Tensor, torch.Tensor]

OPERATIONS = ("all_reduce", "all_gather", "broadcast", "reduce_scatter")
IN_PLACE = ("all_reduce", "broadcast")
ITEM = 4  # bytes of a float32
# Element i of rank r holds ((i mod PERIOD) + STEP r) mod MODULUS. PERIOD is prime: a block of data
# in the wrong place shows. Sums are whole numbers below 2^24, exact in float32, up to 16,448 ranks.
PERIOD, STEP, MODULUS = 4093, 31, 1021
BLOCK = 1024  # periods compared at once: 16 MiB


def pattern(rank: int) -> torch.Tensor:
    """Return one period of the data of a rank."""
    return ((torch.arange(PERIOD) + STEP * rank) % MODULUS).float()


@functools.lru_cache(maxsize=2)
def total(ranks: int) -> torch.Tensor:
    """Return one period of the sum of all ranks' data."""
    return sum((pattern(rank) for rank in range(1, ranks)), pattern(0))


def blocks(tensor: torch.Tensor, period: torch.Tensor, start: int = 0) -> Iterator[Tensors]:
    """Cut a tensor into pieces, each with the data that belongs there."""
    periods = min(BLOCK, len(tensor) // PERIOD + 1)
    block = period.roll(-(start % PERIOD)).to(tensor.device).repeat(periods)
    for piece in tensor.split(len(block)):
        yield piece, block[: len(piece)]


def fill(sent: torch.Tensor, rank: int) -> None:
    """Put a rank's data into its send buffer."""
    for piece, data in blocks(sent, pattern(rank)):
        piece.copy_(data)


def wrong_elements(operation: str, rank: int, ranks: int, result: torch.Tensor) -> int:
    """Return the number of elements of a rank's result that are wrong."""
    if operation == "all_gather":
        chunks = enumerate(result.chunk(ranks))
        expected = [(chunk, pattern(sender), 0) for sender, chunk in chunks]
    elif operation == "reduce_scatter":
        expected = [(result, total(ranks), rank * len(result))]
    else:
        expected = [(result, total(ranks) if operation == "all_reduce" else pattern(0), 0)]
    return sum(int((got != data).sum()) for part in expected for got, data in blocks(*part))


def buffers(operation: str, size: int, ranks: int, device: torch.device) -> Tensors:
    """Return the input and the output of a rank; one tensor for operations in place."""
    whole = torch.empty(size // ITEM, device=device)
    if operation in IN_PLACE:
        return whole, whole
    part = torch.empty(len(whole) // ranks, device=device)
    return (part, whole) if operation == "all_gather" else (whole, part)
