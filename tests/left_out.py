"""What a run left out, and why, in one line: a machine may lack root, Docker or the network."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import pytest

__all__ = ["left_out"]


def left_out(reports: Iterable[pytest.TestReport]) -> Iterator[str]:
    """Yield one line with the number of skipped tests for each reason, if there are any."""
    reasons = Counter(map(_reason, reports))
    if reasons:
        said = "; ".join(f"{number}: {reason}" for reason, number in reasons.most_common())
        yield f"left out {reasons.total()} tests: {said}"


def _reason(report: pytest.TestReport) -> str:
    longrepr = report.longrepr
    return str(longrepr[2] if isinstance(longrepr, tuple) else longrepr).removeprefix("Skipped: ")
