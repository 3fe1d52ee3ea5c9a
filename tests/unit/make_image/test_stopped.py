"""Messages of a build that is stopped, and the image after it."""

from __future__ import annotations

from contextlib import contextmanager
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from sifwright.errors import Interrupted
from sifwright.make_image import build_image as module
from sifwright.make_image.build_image import build_image
from sifwright.system.progress import QuietProgress

if TYPE_CHECKING:
    from collections.abc import Iterator


def _stop(*_: object) -> None:
    raise KeyboardInterrupt


@pytest.fixture
def request_(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return the request of a build whose only act is to be stopped as it removes its folders."""

    @contextmanager
    def prepare(*_: object) -> Iterator[SimpleNamespace]:
        yield SimpleNamespace(plan=SimpleNamespace(steps=()), options=SimpleNamespace(lock=None))

    @contextmanager
    def choose_engine(_: object) -> Iterator[SimpleNamespace]:
        yield SimpleNamespace(finish=None)
        raise KeyboardInterrupt

    for name in ("run_steps", "run_tests", "publish"):
        monkeypatch.setattr(module, name, lambda *_: None)
    monkeypatch.setattr(module, "prepare_build", prepare)
    monkeypatch.setattr(module, "choose_engine", choose_engine)
    return None


def test_a_build_that_is_stopped_after_the_new_image_is_there(request_: Any) -> None:
    with pytest.raises(Interrupted, match="the new image is in place"):
        build_image(request_, QuietProgress())


@pytest.mark.parametrize("name", ["run_tests", "publish"])
def test_a_build_that_is_stopped_before(
    request_: Any, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setattr(module, name, _stop)
    with pytest.raises(KeyboardInterrupt):
        build_image(request_, QuietProgress())
