"""Broken launches end with their cause on every rank, soon, instead of waiting for half an hour."""

from __future__ import annotations

import re
from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest

from tests.system.slurm.broken import LAUNCHES, Started, prepare

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.system.slurm.slurm import Cluster

pytestmark = pytest.mark.image


@pytest.fixture(scope="module")
def started(cluster: Cluster, container: list[str]) -> Iterator[dict[str, Started]]:
    """Start all of them side by side, as some only wait.

    Their containers start one launch after the other, each as soon as the one before has started.
    Forty at once took 6 seconds on two slow cores.
    """
    prepare(cluster)
    launches: dict[str, Started] = {}
    with ExitStack() as stack:
        for name in LAUNCHES:
            launches[name] = Started(cluster, name, container)
            stack.enter_context(launches[name].running)
            cluster.run(*container, "python", "-c", "import ssl", host="nid003")
        yield launches
    cluster.cancel_everything()


@pytest.mark.parametrize("name", LAUNCHES)
def test_every_rank_names_the_cause(started: dict[str, Started], name: str) -> None:
    outcomes = started[name].outcomes()
    for rank, outcome in outcomes.items():
        assert outcome.status not in (None, 0), f"rank {rank}: {outcome}"
        assert outcome.printed == "", "it ran the training"
        is_named = any(re.search(pattern, outcome.messages) for pattern in LAUNCHES[name].expected)
        assert is_named, f"rank {rank}: {outcome}"
        assert "Traceback" not in outcome.messages
