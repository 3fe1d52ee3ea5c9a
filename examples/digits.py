"""Data and network of the examples: scikit-learn's 1797 handwritten digits of 8 x 8 pixels."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch import nn
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


def load_data(seed: int) -> tuple[TensorDataset, TensorDataset]:
    """Return what to learn from and what to test with."""
    images, digits = load_digits(return_X_y=True)
    images = (images / 16).astype(np.float32).reshape(-1, 1, 8, 8)
    parts = train_test_split(images, digits, test_size=0.2, stratify=digits, random_state=seed)
    train_x, test_x, train_y, test_y = map(torch.from_numpy, parts)
    return TensorDataset(train_x, train_y), TensorDataset(test_x, test_y)


def make_loader(
    data: TensorDataset, batch_size: int, seed: int, rank: int, size: int
) -> DataLoader[Any]:
    """Deal the samples to the ranks, in an order that does not depend on how many there are."""
    sampler: DistributedSampler[Any] = DistributedSampler(
        data, num_replicas=size, rank=rank, seed=seed
    )
    return DataLoader(data, batch_size=batch_size, sampler=sampler)


def build_network(seed: int) -> nn.Module:
    """Make the same weights on every rank."""
    torch.manual_seed(seed)
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


def count_right(network: nn.Module, data: TensorDataset, rank: int, size: int) -> tuple[int, int]:
    """Return how many of this rank's share are recognised, and how many there are.

    DistributedSampler would repeat samples to make the shares equal, so it is not used here.
    """
    device = next(network.parameters()).device
    images, digits = (part[rank::size].to(device) for part in data.tensors)
    network.eval()
    with torch.inference_mode():
        right = int((network(images).argmax(dim=1) == digits).sum())
    return right, len(digits)
