"""Failed tests of tiers smoke and all run once more, and the summary names them."""

from pathlib import Path

import pytest

from tests import second_try
from tests.left_out import left_out

FLAKY = """
from pathlib import Path

def test_it_passes_at_its_second_try():
    flag = Path(__file__).with_name("flag")
    was_there = flag.exists()
    flag.touch()
    assert was_there
"""


def report(
    name: str, outcome: str = "failed", longrepr: object = "assert 1 == 2", *marks: str
) -> pytest.TestReport:
    keywords = dict.fromkeys(marks, 1)
    return pytest.TestReport(name, ("", 0, ""), keywords, outcome, longrepr, "call")  # type: ignore[arg-type]


def test_a_test_runs_in_a_process_of_its_own(tmp_path: Path) -> None:
    file = tmp_path / "test_flaky.py"
    file.write_text(FLAKY)
    assert [second_try.passes_alone(str(file)) for _ in range(2)] == [False, True]


def test_only_what_passes_is_moved(monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[str] = []

    def passes_alone(name: str) -> bool:
        tried.append(name)
        return name.endswith("good")

    monkeypatch.setattr(second_try, "passes_alone", passes_alone)
    names = ("tests/system/a.py::good", "tests/system/a.py::bad", "tests/unit/a.py::good")
    slow = report("tests/system/slow.py::good", "failed", "assert 1 == 2", "slow")
    stats = {"failed": [*map(report, names), slow], "error": [report(names[0])]}
    assert not second_try.run_again(stats)
    assert sorted(tried) == sorted(names[:2])
    assert [item.nodeid for item in stats["failed"]] == [*names[1:], slow.nodeid]
    message = list(second_try.summary(stats))
    assert message == [f"passed at the second try: {names[0]}", *["assert 1 == 2"] * 2]


def test_all_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(second_try, "passes_alone", lambda _name: True)
    assert second_try.run_again({"failed": [report("tests/system/a.py::good")]})


def test_a_broken_checkout_is_not_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(second_try, "passes_alone", lambda _name: True)
    stats = {"failed": [report(f"tests/system/a.py::{number}") for number in range(30)]}
    assert not second_try.run_again(stats)
    assert len(stats["failed"]) == 30


def test_skipped_tests_are_one_line() -> None:
    reasons = ("no Docker", "no root", "no Docker")
    skipped = [report("a", "skipped", ("a.py", 1, f"Skipped: {reason}")) for reason in reasons]
    assert list(left_out(skipped)) == ["left out 3 tests: 2: no Docker; 1: no root"]
    assert list(left_out([])) == []
