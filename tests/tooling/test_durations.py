"""A run names the tests and the files that take too long."""

from __future__ import annotations

import pytest

from tests.durations import too_long


def _report(name: str, duration: float) -> pytest.TestReport:
    return pytest.TestReport(name, ("", None, ""), {}, "passed", None, "call", duration=duration)


def test_a_test_and_a_file_above_the_limit_are_named() -> None:
    reports = [_report(f"tests/a.py::test_{number}", 9) for number in range(7)]
    reports += [_report("tests/b.py::test_b", 6), _report("tests/b.py::test_b", 5)]
    assert list(too_long(reports)) == [
        "    63 s, where 60 s are enough: tests/a.py",
        "    11 s, where 10 s are enough: tests/b.py::test_b",
    ]
