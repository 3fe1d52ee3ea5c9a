"""The tests of layers run in the finished image, and one that fails refuses the image."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from sifwright.errors import TestError
from sifwright.make_image.resolve_request.output_parser import OutputParser
from sifwright.make_image.test_image.run_tests import run_tests
from sifwright.system.progress import QuietProgress, Timer

if TYPE_CHECKING:
    from collections.abc import Mapping

TESTS = {"base": "", "tool": "tool --version", "extra": "true"}


class Machine:
    """Notes of which layers the tests ran, None being all."""

    def __init__(self, status: int = 0) -> None:
        self.status = status
        self.ran: list[object] = []

    def test(self, _artifact: object, layers: object) -> int:
        self.ran.append(layers)
        return self.status


def prove(machine: Any, tests: str, passed: Mapping[str, str], key: str = "1") -> dict[str, str]:
    layers = [SimpleNamespace(layer=SimpleNamespace(name=n, test=t)) for n, t in TESTS.items()]
    context: Any = SimpleNamespace(
        plan=SimpleNamespace(steps=layers),
        options=SimpleNamespace(tests=tests),
        output=SimpleNamespace(entries=lambda _: passed),
        watcher=OutputParser(timer=Timer(QuietProgress()), fix=""),
    )
    artifact: Any = SimpleNamespace(keys=["1", "1", key])
    return run_tests(context, machine, artifact)


def test_tests_run_again_where_the_layer_is_another() -> None:
    machine = Machine()
    passed = prove(machine, "all", {})
    assert list(passed) == ["tool", "extra"]
    prove(machine, "all", passed)
    prove(machine, "untested", passed, key="2")
    assert machine.ran == [None, None, ["extra"]]


def test_a_failed_test_refuses_the_image() -> None:
    with pytest.raises(TestError, match="the test failed in the finished image"):
        prove(Machine(status=1), "all", {})
