"""What a build says that is stopped: which image stands there then."""

from __future__ import annotations

from contextlib import contextmanager
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from sifwright.build import build_sif as module
from sifwright.build.build_sif import build
from sifwright.build.request import build_options, host_settings
from sifwright.build.request.image_folder import ImageFolder
from sifwright.errors import Interrupted
from sifwright.system.progress import QuietProgress

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

NOTHING: Any = SimpleNamespace(tests="all")


def _stop(*_: object) -> None:
    raise KeyboardInterrupt


@pytest.fixture
def output(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ImageFolder:
    """Where a build goes whose only act is to be stopped when it removes its folders."""
    engine = SimpleNamespace(test_command=lambda *_: [])
    task = SimpleNamespace(made=tmp_path, engine=engine, log=None, watcher=None)

    @contextmanager
    def prepared(*_: object) -> Iterator[object]:
        yield task

    @contextmanager
    def making(_: object) -> Iterator[None]:
        yield
        raise KeyboardInterrupt

    for place in (build_options, "expected_record"), (host_settings, "values"):
        monkeypatch.setattr(*place, lambda *_: {})
    for name in ("require_header", "_write_plan", "_test_digests", "_run_tests", "_publish"):
        monkeypatch.setattr(module, name, lambda *_: None)
    monkeypatch.setattr(module, "build_context", prepared)
    monkeypatch.setattr(module, "_making", making)
    return ImageFolder(folder=tmp_path, name="image")


def test_a_build_that_is_stopped_after_the_new_image_is_there(output: ImageFolder) -> None:
    with pytest.raises(Interrupted, match="the new image is in place"):
        build(NOTHING, output, QuietProgress(), NOTHING)


@pytest.mark.parametrize("name", ["_run_tests", "_publish"])
def test_a_build_that_is_stopped_before(
    output: ImageFolder, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setattr(module, name, _stop)
    with pytest.raises(KeyboardInterrupt):
        build(NOTHING, output, QuietProgress(), NOTHING)
