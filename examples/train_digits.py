#!/usr/bin/env python3
"""Train a small CNN on scikit-learn's handwritten digits with DistributedDataParallel.

    python train_digits.py                                            one process
    srun -n 8 … conda-python-distributed train_digits.py              one rank per task
    conda-python-distributed --nproc-per-node 2 train_digits.py       two ranks on this machine

Reads the env:// variables of torch.distributed (RANK, WORLD_SIZE, LOCAL_RANK, MASTER_ADDR,
MASTER_PORT); without them it runs as one process. With --checkpoint it saves after every epoch and
resumes from there, on any number of ranks that divides the batch size: the batch size is the one of
all ranks together, so the order of the samples is the same.

SIGUSR1 saves a checkpoint after the current step. SIGTERM saves one and stops with exit code 143.
"""

from __future__ import annotations

import argparse
import gc
import os
import signal
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
import torch.distributed.nn  # before there is a group, see destroy_process_group()
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

EXIT_STOPPED = 128 + signal.SIGTERM


@dataclass
class Training:
    """What a checkpoint holds, and what the steps need."""

    model: DistributedDataParallel
    optimizer: torch.optim.Optimizer
    device: torch.device
    checkpoint: Path | None
    epoch: int = 0
    step: int = 0  # the next one of this epoch
    signals: set[int] = field(default_factory=set)
    stopped: bool = False


# --- the process group ----------------------------------------------------------------------------


def init_process_group() -> torch.device:
    backend = "nccl" if torch.cuda.is_available() else "gloo"
    if backend == "gloo":
        device = torch.device("cpu")
        torch.set_num_threads(1)  # so small a model only waits for more
    else:
        device = torch.device("cuda", int(os.environ.get("LOCAL_RANK", "0")))
        torch.cuda.set_device(device)
    if "RANK" in os.environ:
        dist.init_process_group(backend)
    else:
        dist.init_process_group(backend, store=dist.HashStore(), rank=0, world_size=1)
    return device


def destroy_process_group() -> None:
    """Join the group's threads: one that meets an interpreter shutting down aborts the process.

    See pytorch#179291. They are joined when nothing refers to the group any more. A
    DistributedDataParallel does, in reference cycles; and it imports torch.distributed.nn, where
    the group of that moment becomes a default argument for good.
    """
    gc.collect()
    dist.destroy_process_group()


def is_rank_0() -> bool:
    return dist.get_rank() == 0


def say(message: str) -> None:
    if is_rank_0():
        print(message, flush=True)


def total(values: list[float], device: torch.device) -> list[float]:
    """Sum each value over all ranks."""
    tensor = torch.tensor(values, dtype=torch.float64, device=device)
    dist.all_reduce(tensor)
    return tensor.tolist()


# --- data and model -------------------------------------------------------------------------------


def load_data(seed: int) -> tuple[TensorDataset, TensorDataset]:
    images, digits = load_digits(return_X_y=True)
    images = (images / 16).astype(np.float32).reshape(-1, 1, 8, 8)
    parts = train_test_split(images, digits, test_size=0.2, stratify=digits, random_state=seed)
    train_x, test_x, train_y, test_y = map(torch.from_numpy, parts)
    return TensorDataset(train_x, train_y), TensorDataset(test_x, test_y)


def build_model() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(1, 16, kernel_size=3, padding=1),
        nn.ReLU(),
        nn.Conv2d(16, 32, kernel_size=3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Dropout(0.2),
        nn.Linear(32 * 4 * 4, 10),
    )


# --- checkpoints ----------------------------------------------------------------------------------


class CheckpointError(Exception):
    """A checkpoint that cannot be read, found by all ranks alike."""


def rng_state() -> dict[str, torch.Tensor]:
    state = {"cpu": torch.get_rng_state()}
    if torch.cuda.is_available():
        state["cuda"] = torch.cuda.get_rng_state()
    return state


def set_rng_state(state: dict[str, torch.Tensor]) -> None:
    torch.set_rng_state(state["cpu"])
    if "cuda" in state and torch.cuda.is_available():
        torch.cuda.set_rng_state(state["cuda"])


def write_atomically(state: dict[str, Any], path: Path) -> None:
    """Leave the old checkpoint or the new one, whenever we are killed."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with temporary.open("wb") as file:
            torch.save(state, file)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def save(training: Training) -> None:
    """Save on all ranks together, as each has random numbers of its own."""
    if training.checkpoint is None:
        return
    rng: list[Any] = [None] * dist.get_world_size()
    dist.all_gather_object(rng, rng_state())
    if is_rank_0():
        state = {
            "model": training.model.module.state_dict(),
            "optimizer": training.optimizer.state_dict(),
            "epoch": training.epoch,
            "step": training.step,
            "rng": rng,
        }
        write_atomically(state, training.checkpoint)


def read_checkpoint(path: Path) -> dict[str, Any]:
    """Return the state on rank 0; empty without a checkpoint, an error if it cannot be read."""
    try:
        return torch.load(path, map_location="cpu", weights_only=True) if path.exists() else {}
    except Exception as error:  # noqa: BLE001 - a damaged file raises nearly anything
        return {
            "error": f"{path}: no checkpoint that can be read ({type(error).__name__}: {error})"
        }


def resume(training: Training) -> None:
    """Rank 0 reads and tells the others, who may not see the file."""
    if training.checkpoint is None:
        return
    states = [read_checkpoint(training.checkpoint) if is_rank_0() else {}]
    dist.broadcast_object_list(states, device=training.device)
    state = states[0]
    if "error" in state:
        raise CheckpointError(state["error"])
    if state:
        restore(training, state)
        say(f"resumed from {training.checkpoint}: epoch {training.epoch}, step {training.step}")


def restore(training: Training, state: dict[str, Any]) -> None:
    training.model.module.load_state_dict(state["model"])
    training.optimizer.load_state_dict(state["optimizer"])
    training.epoch, training.step = state["epoch"], state["step"]
    if len(state["rng"]) == dist.get_world_size():
        set_rng_state(state["rng"][dist.get_rank()])


# --- signals --------------------------------------------------------------------------------------


def catch_signals(signals: set[int]) -> None:
    for number in (signal.SIGUSR1, signal.SIGTERM):
        signal.signal(number, lambda caught, _frame: signals.add(caught))


def handle_signals(training: Training) -> None:
    """Do what any rank was asked for on all of them, at the same step."""
    caught = set(training.signals)
    training.signals -= caught  # and no more: another may come at any moment
    asked = [float(number in caught) for number in (signal.SIGUSR1, signal.SIGTERM)]
    to_save, to_stop = total(asked, training.device)
    if to_save or to_stop:
        save(training)
        what = (
            f"saved {training.checkpoint}" if training.checkpoint else "no --checkpoint to save to"
        )
        say(f"epoch {training.epoch}, step {training.step}: {what}")
    if to_stop:
        say("stopped by SIGTERM")
        training.stopped = True


# --- training -------------------------------------------------------------------------------------


def make_loader(data: TensorDataset, batch_size: int, seed: int) -> DataLoader[Any]:
    sampler: DistributedSampler[Any] = DistributedSampler(data, shuffle=True, seed=seed)
    return DataLoader(
        data,
        batch_size=batch_size // dist.get_world_size(),
        sampler=sampler,
        generator=torch.Generator(),  # or each iterator takes a number from those of the training
    )


def train_step(training: Training, images: torch.Tensor, digits: torch.Tensor) -> float:
    output = training.model(images.to(training.device))
    loss = nn.functional.cross_entropy(output, digits.to(training.device))
    training.optimizer.zero_grad()
    loss.backward()
    training.optimizer.step()
    return loss.item()


def train_epoch(training: Training, loader: DataLoader[Any]) -> float:
    """Return the mean loss of the steps, which after a resume are the rest of the epoch."""
    assert isinstance(loader.sampler, DistributedSampler)  # noqa: S101 - make_loader's
    loader.sampler.set_epoch(training.epoch)
    training.model.train()
    losses = []
    for step, (images, digits) in enumerate(loader):
        if step < training.step:
            continue
        losses.append(train_step(training, images, digits))
        training.step = step + 1
        handle_signals(training)
        if training.stopped:
            break
    loss, steps = total([sum(losses), len(losses)], training.device)
    return loss / max(steps, 1)


def train(training: Training, loader: DataLoader[Any], epochs: int) -> None:
    while training.epoch < epochs:
        loss = train_epoch(training, loader)
        if training.stopped:
            return
        training.epoch, training.step = training.epoch + 1, 0
        save(training)
        say(f"epoch {training.epoch}/{epochs} loss {loss:.4f}")


@torch.no_grad()
def evaluate(training: Training, data: TensorDataset) -> tuple[int, int]:
    """Count the right answers. DistributedSampler would repeat samples to make the shares equal."""
    images, digits = (
        part[dist.get_rank() :: dist.get_world_size()].to(training.device) for part in data.tensors
    )
    training.model.eval()
    right = (training.model.module(images).argmax(dim=1) == digits).sum().item()
    right, count = total([right, len(digits)], training.device)
    return int(right), int(count)


# --- the command ----------------------------------------------------------------------------------


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--batch-size", type=int, default=64, help="of all ranks together")
    parser.add_argument("--lr", type=float, default=2e-3)
    parser.add_argument("--checkpoint", type=Path, metavar="PATH", help="save here and resume")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--min-accuracy", type=float, default=0.0, help="fail below this")
    arguments = parser.parse_args()
    ranks = int(os.environ.get("WORLD_SIZE", "1"))
    if arguments.batch_size < 1 or arguments.batch_size % ranks:
        parser.error(f"--batch-size {arguments.batch_size} does not divide among {ranks} ranks")
    return arguments


def prepare(arguments: argparse.Namespace, device: torch.device) -> Training:
    torch.manual_seed(arguments.seed)
    model = DistributedDataParallel(build_model().to(device))
    torch.manual_seed(arguments.seed + dist.get_rank())  # each rank drops out other units
    optimizer = torch.optim.Adam(model.parameters(), lr=arguments.lr)
    return Training(model, optimizer, device, arguments.checkpoint)


def run(arguments: argparse.Namespace, device: torch.device) -> int | str:
    """Return what to exit with: a code or a message."""
    start = time.monotonic()
    training = prepare(arguments, device)
    catch_signals(training.signals)
    train_data, test_data = load_data(arguments.seed)
    try:
        resume(training)
    except CheckpointError as error:
        return str(error)
    train(training, make_loader(train_data, arguments.batch_size, arguments.seed), arguments.epochs)
    if training.stopped:
        return EXIT_STOPPED
    accuracy = report(evaluate(training, test_data), time.monotonic() - start)
    if accuracy < arguments.min_accuracy:
        return f"test accuracy {accuracy:.3f} is below --min-accuracy {arguments.min_accuracy}"
    return 0


def report(right_and_count: tuple[int, int], seconds: float) -> float:
    right, count = right_and_count
    accuracy, ranks = right / count, dist.get_world_size()
    say(f"test accuracy {accuracy:.3f} ({right}/{count}) on {ranks} ranks in {seconds:.1f} s")
    return accuracy


def main() -> None:
    arguments = parse_arguments()
    device = init_process_group()
    code = run(arguments, device)
    # Not after an exception: the other ranks may wait in a collective that this one has left.
    destroy_process_group()
    sys.exit(code)


if __name__ == "__main__":
    main()
