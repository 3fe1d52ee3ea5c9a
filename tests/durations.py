"""Limits for the time of tests: the report names slower tests and their files."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping

import pytest

__all__ = ["too_long"]

TEST_SECONDS, FILE_SECONDS = 10, 60


def too_long(reports: Iterable[pytest.TestReport]) -> Iterator[str]:
    """Yield a line for each test, and each file, above its limit, the longest first."""
    tests: defaultdict[str, float] = defaultdict(float)
    files: defaultdict[str, float] = defaultdict(float)
    for report in reports:
        tests[report.nodeid] += report.duration
        files[report.nodeid.partition("::")[0]] += report.duration
    yield from _above(files, FILE_SECONDS)
    yield from _above(tests, TEST_SECONDS)


def _above(seconds: Mapping[str, float], limit: int) -> Iterator[str]:
    for name in sorted(seconds, key=lambda item: -seconds[item]):
        if seconds[name] > limit:
            yield f"{seconds[name]:6.0f} s, where {limit} s are enough: {name}"
