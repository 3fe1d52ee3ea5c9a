"""A line about skipped tests and the reasons: a machine may lack root, Docker or the network."""

import shutil
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import pytest

__all__ = ["left_out", "without_programs"]

# Program of Debian's package squashfs-tools: sifwright runs it, and so do many tests.
PROGRAMS = {"mksquashfs"}


@contextmanager
def without_programs() -> Iterator[None]:
    """Skip a test that ran a program which the machine lacks."""
    try:
        yield
    except FileNotFoundError as error:
        name = error.filename
        if name not in PROGRAMS or shutil.which(name):
            raise
        pytest.skip(f"{name} is not installed")


def left_out(reports: Iterable[pytest.TestReport]) -> Iterator[str]:
    """Yield one line with the number of skipped tests for each reason, if there are any."""
    reasons = Counter(map(_reason, reports))
    if reasons:
        message = "; ".join(f"{number}: {reason}" for reason, number in reasons.most_common())
        yield f"left out {reasons.total()} tests: {message}"


def _reason(report: pytest.TestReport) -> str:
    longrepr = report.longrepr
    return str(longrepr[2] if isinstance(longrepr, tuple) else longrepr).removeprefix("Skipped: ")
