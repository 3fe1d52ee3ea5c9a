"""The common parts of the examples: all but the way in which the processes work together.

Each example says that way in a class `Ranks`. It hands the class, model and optimizer to run():

    train_digits_single.py     one process
    train_digits.py            DistributedDataParallel
    train_digits_horovod.py    Horovod

With --checkpoint all of them save after every epoch and resume from there, on any number of ranks.
SIGUSR1 saves after the current step; SIGTERM saves and stops with exit status 143.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TextIO

import digits
import torch
from torch import nn

if TYPE_CHECKING:
    from collections.abc import Callable

    from torch.utils.data import DataLoader

EXIT_FAILED = 1
EXIT_STOPPED = 128 + signal.SIGTERM


class Ranks(Protocol):
    """The processes that train together. All of them call the same methods in the same order."""

    rank: int
    size: int

    def total(self, values: list[float]) -> list[float]:
        """Sum each value over all ranks."""

    def share(self, training: Training) -> None:
        """Give all ranks the weights, the state of the optimizer and the position of rank 0."""


@dataclass
class Training:
    """The parts of a training, and its progress."""

    ranks: Ranks
    network: nn.Module
    model: nn.Module  # the network, as the ranks train it together
    optimizer: torch.optim.Optimizer
    device: torch.device
    batch_size: int  # of each rank
    epoch: int = 0
    samples: int = 0  # of this epoch, that all ranks together have learned from

    def state(self) -> dict[str, Any]:
        return {
            "network": self.network.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "epoch": self.epoch,
            "samples": self.samples,
        }

    def restore(self, state: dict[str, Any]) -> None:
        rates = [group["lr"] for group in self.optimizer.param_groups]
        self.network.load_state_dict(state["network"])
        self.optimizer.load_state_dict(state["optimizer"])
        for group, rate in zip(self.optimizer.param_groups, rates, strict=True):
            group["lr"] = rate  # of this run, not of the one that saved
        self.epoch, self.samples = state["epoch"], state["samples"]

    def device_name(self) -> str:
        return torch.cuda.get_device_name(self.device) if self.device.type == "cuda" else "CPU"

    def say(self, message: str, file: TextIO = sys.stdout) -> None:
        if self.ranks.rank == 0:
            print(message, file=file, flush=True)


class RankZeroError(Exception):
    """An operation of rank 0 for all ranks failed. All of them raise this."""


class StopAskedError(Exception):
    """A rank was asked to stop. All of them raise this."""


def parse_arguments(description: str | None, batch_of: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--batch-size", type=int, default=64, help=f"of {batch_of}")
    parser.add_argument("--lr", type=float, default=2e-3)
    parser.add_argument("--checkpoint", type=Path, metavar="PATH", help="save here and resume")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--min-accuracy", type=float, default=0.0, help="fail below this")
    arguments = parser.parse_args()
    if arguments.batch_size < 1:
        parser.error(f"--batch-size {arguments.batch_size} is less than 1")
    return arguments


def choose_device(local_rank: int) -> torch.device:
    if torch.cuda.is_available():
        device = torch.device("cuda", local_rank)
        torch.cuda.set_device(device)
        return device
    torch.set_num_threads(1)  # so small a network only waits for more
    return torch.device("cpu")


# --- checkpoints ----------------------------------------------------------------------------------


def on_rank_0(ranks: Ranks, action: Callable[[], None]) -> None:
    """Return when it is done, or fail on all ranks: alone, the others would wait for rank 0."""
    failed = False
    if ranks.rank == 0:
        try:
            action()
        except Exception as error:  # noqa: BLE001 - a damaged file raises nearly anything
            print(f"{type(error).__name__}: {error}", file=sys.stderr, flush=True)
            failed = True
    if any(ranks.total([failed])):
        raise RankZeroError


def write_atomically(state: dict[str, Any], path: Path) -> None:
    """Leave the old checkpoint or the new one, whenever we are killed."""
    temporary = path.with_name(f".{path.name}.tmp")
    with temporary.open("wb") as file:
        torch.save(state, file)
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)


def save(training: Training, path: Path) -> None:
    on_rank_0(training.ranks, lambda: write_atomically(training.state(), path))


def read(training: Training, path: Path) -> None:
    if not os.access(path.parent, os.W_OK):  # better now than after the first epoch
        raise NotADirectoryError(f"--checkpoint {path}: {path.parent} is no folder to write to")
    if not path.exists():
        return
    try:
        training.restore(torch.load(path, map_location="cpu", weights_only=True))
    except Exception as error:
        kind = type(error).__name__
        raise ValueError(f"--checkpoint {path}: no checkpoint of this network ({kind})") from error


def resume(training: Training, path: Path | None) -> None:
    """Start all ranks from the same point. Only rank 0 reads: the others may not see the file."""
    if path:
        on_rank_0(training.ranks, lambda: read(training, path))
    training.ranks.share(training)
    if training.epoch or training.samples:
        training.say(f"resumed from {path}: epoch {training.epoch}, {training.samples} samples")


# --- signals --------------------------------------------------------------------------------------


def catch_signals() -> set[int]:
    """Return the set that they will appear in. To be called before anything that takes time."""
    caught: set[int] = set()
    for number in (signal.SIGUSR1, signal.SIGTERM):
        signal.signal(number, lambda number, _frame: caught.add(number))
    return caught


def handle_signals(training: Training, caught: set[int], path: Path | None) -> None:
    """Do what any rank was asked for on all of them, after the same step.

    A signal reaches the ranks at different times, or only one of them. A rank that stopped on its
    own would leave the others waiting for it in their next step. This takes a small all-reduce;
    where that is too much, ask every tenth step.
    """
    now = set(caught)
    caught -= now  # and no more: another may come at any moment
    to_save, to_stop = training.ranks.total([signal.SIGUSR1 in now, signal.SIGTERM in now])
    if to_save or to_stop:
        if path:
            save(training, path)
        outcome = f"saved {path}" if path else "no --checkpoint to save to"
        training.say(f"epoch {training.epoch}, {training.samples} samples: {outcome}")
    if to_stop:
        training.say("stopped by SIGTERM")
        raise StopAskedError


# --- training -------------------------------------------------------------------------------------


def train_step(training: Training, images: torch.Tensor, labels: torch.Tensor) -> float:
    output = training.model(images.to(training.device))
    loss = nn.functional.cross_entropy(output, labels.to(training.device))
    training.optimizer.zero_grad()
    loss.backward()
    training.optimizer.step()
    return float(loss.item())


def train_epoch(
    training: Training, loader: DataLoader[Any], arguments: argparse.Namespace, caught: set[int]
) -> float:
    """Return the mean loss of the steps, which after a resume are the rest of the epoch."""
    ranks, losses = training.ranks, []
    training.model.train()
    for step, (images, labels) in enumerate(loader, start=1):
        samples = step * training.batch_size * ranks.size
        if samples <= training.samples:
            continue
        # So that what is random does not depend on where a run was resumed, nor repeats on ranks.
        torch.manual_seed(hash((arguments.seed, training.epoch, step, ranks.rank)))
        losses.append(train_step(training, images, labels))
        training.samples = samples
        handle_signals(training, caught, arguments.checkpoint)
    loss, steps = ranks.total([sum(losses), len(losses)])
    return loss / max(steps, 1)


def train(
    training: Training, loader: DataLoader[Any], arguments: argparse.Namespace, caught: set[int]
) -> None:
    while training.epoch < arguments.epochs:
        loader.sampler.set_epoch(training.epoch)
        loss = train_epoch(training, loader, arguments, caught)
        training.epoch, training.samples = training.epoch + 1, 0
        if arguments.checkpoint:
            save(training, arguments.checkpoint)
        training.say(f"epoch {training.epoch}/{arguments.epochs} loss {loss:.4f}")


def run(training: Training, arguments: argparse.Namespace, caught: set[int]) -> int:
    """Train and test; return the exit status, which is the same on all ranks."""
    start, seed = time.monotonic(), arguments.seed
    rank, size = training.ranks.rank, training.ranks.size
    train_data, test_data = digits.load_data(seed)
    loader = digits.make_loader(train_data, training.batch_size, seed, rank, size)
    try:
        resume(training, arguments.checkpoint)
        train(training, loader, arguments, caught)
    except RankZeroError:
        return EXIT_FAILED
    except StopAskedError:
        return EXIT_STOPPED
    share = digits.count_right(training.network, test_data, rank, size)
    right, count = training.ranks.total([*share])
    accuracy, seconds = right / count, time.monotonic() - start
    score = f"{accuracy:.3f} ({right:.0f}/{count:.0f})"
    ranks = f"{size} ranks ({training.device_name()})"
    training.say(f"test accuracy {score} on {ranks} in {seconds:.1f} s")
    if accuracy < arguments.min_accuracy:
        least = arguments.min_accuracy
        training.say(f"test accuracy {accuracy:.3f} is below --min-accuracy {least}", sys.stderr)
        return EXIT_FAILED
    return 0
