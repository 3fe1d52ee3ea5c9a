"""The mirrors in this machine's apt configuration."""

import subprocess
from collections.abc import Iterator
from pathlib import Path
from unittest.mock import Mock

import pytest

from sifwright.host.network import apt_mirror
from sifwright.system import processes


@pytest.fixture
def forgetful() -> Iterator[None]:
    """Forget apt's answer before and after the test."""
    apt_mirror._ask_once.cache_clear()  # noqa: SLF001
    yield
    apt_mirror._ask_once.cache_clear()  # noqa: SLF001


@pytest.mark.usefixtures("forgetful")
def test_apt_is_asked_without_a_home_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("SIFWRIGHT_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(Path, "home", Mock(side_effect=RuntimeError))
    done = subprocess.CompletedProcess([], 0, "http://mirror.example/d/|Debian|Debian\n")
    monkeypatch.setattr(processes, "capture", Mock(return_value=done))
    monkeypatch.setattr("shutil.which", lambda program: f"/usr/bin/{program}")
    assert apt_mirror.mirror(apt_mirror.DEBIAN) == "http://mirror.example/d"
