"""Calls beside other work."""

import sys

import pytest

from sifwright.system import threads
from tests.conftest import run


def test_an_error_reaches_the_future() -> None:
    future = threads.start(lambda: 1 // 0)
    with pytest.raises(ZeroDivisionError):
        future.result(60)


def test_the_end_of_the_program_waits_for_no_call() -> None:
    code = "import os, sifwright.system.threads as t; end, _ = os.pipe()"
    code += "; t.start(lambda: os.read(end, 1))"
    assert run([sys.executable, "-c", code], timeout=60).returncode == 0
