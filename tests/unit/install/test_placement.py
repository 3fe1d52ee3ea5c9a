"""An installation without EasyBuild."""

from __future__ import annotations

import os
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from sifwright.catalog.model import LayerFile
from sifwright.install import placement

if TYPE_CHECKING:
    from pathlib import Path


def test_others_can_read_and_run_it_whatever_the_umask(tmp_path: Path) -> None:
    program = LayerFile(path="bin/run", data=b"#!/bin/sh\n", executable=True)
    note = LayerFile(path="notes/why", data=b"so", executable=False)
    bundle: Any = SimpleNamespace(programs=(program,), notes=(note,), links={}, sif=None)
    earlier = os.umask(0o077)
    try:
        placement.install(bundle, tmp_path / "root")
    finally:
        os.umask(earlier)
    modes = {name: (tmp_path / "root" / name).stat().st_mode & 0o777 for name in ("bin", "bin/run")}
    assert modes == {"bin": 0o755, "bin/run": 0o755}
    assert (tmp_path / "root/notes/why").stat().st_mode & 0o777 == 0o644
