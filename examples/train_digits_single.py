#!/usr/bin/env python3
"""Train a small CNN on handwritten digits: one process, one GPU or the CPU, plain PyTorch.

    conda-python-simple train_digits_single.py

It is the one to start from: train_digits.py differs from it by what DistributedDataParallel needs.
"""

from __future__ import annotations

import sys

import digits
import torch
import training


class Ranks:
    """One process, with nobody to talk to."""

    rank = 0
    size = 1

    def total(self, values: list[float]) -> list[float]:
        return values

    def share(self, job: training.Training) -> None:
        pass


def main() -> None:
    arguments = training.parse_arguments(__doc__, batch_of="the process")
    signals = training.catch_signals()
    device = training.choose_device(local_rank=0)
    network = digits.build_network(arguments.seed).to(device)
    optimizer = torch.optim.Adam(network.parameters(), lr=arguments.lr)
    job = training.Training(Ranks(), network, network, optimizer, device, arguments.batch_size)
    sys.exit(training.run(job, arguments, signals))


if __name__ == "__main__":
    main()
