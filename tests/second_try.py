"""`--second-try`: a failed test of tiers smoke and all runs once more, by itself.

Tests that pass then are listed at the end, with their first failure. Machines have bad moments; a
test that needs its second try often has a fault of its own.
"""

import subprocess
import sys
from collections.abc import Iterable, Mapping, MutableMapping, Sequence
from pathlib import Path

import pytest

from tests.tiers import tier

__all__ = ["run_again", "summary"]

# A checkout that is broken fails everywhere: nobody waits for a second try of everything.
MOST = 20
CATEGORY = "passed at the second try"
ROOT = Path(__file__).resolve().parents[1]


def run_again(stats: MutableMapping[str, list[pytest.TestReport]]) -> bool:
    """Move the failures of tests that pass now to a category of their own; tell whether all do."""
    failures = stats.get("failed", []) + stats.get("error", [])
    names = {
        failure.nodeid
        for failure in failures
        if tier(failure.nodeid, failure.keywords) in {"smoke", "all"}
    }
    passed = {name for name in names if passes_alone(name)} if len(names) <= MOST else set()
    for category in ("failed", "error"):
        reports = stats.pop(category, [])
        stats[category] = [failure for failure in reports if failure.nodeid not in passed]
    stats[CATEGORY] = [failure for failure in failures if failure.nodeid in passed]
    return len(stats[CATEGORY]) == len(failures)


def passes_alone(name: str) -> bool:
    """Run one test in a process of its own."""
    command = [sys.executable, "-m", "pytest", "-q", "-n", "0", "-m", "", name]
    return subprocess.run(command, cwd=ROOT, check=False, capture_output=True).returncode == 0


def summary(stats: Mapping[str, Sequence[pytest.TestReport]]) -> Iterable[str]:
    """Yield the names, then the first failures."""
    reports = stats.get(CATEGORY, ())
    yield from dict.fromkeys(f"{CATEGORY}: {report.nodeid}" for report in reports)
    yield from (report.longreprtext for report in reports)
