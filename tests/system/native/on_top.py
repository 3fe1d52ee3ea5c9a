"""A user's virtual environment over the module of an installation, which two ranks use."""

from __future__ import annotations

import os
from pathlib import Path
from tempfile import mkdtemp

from tests.stacks import ADD_UP
from tests.system.native.project import NOBODY, as_ordinary_user, good
from tests.unit.wheels import make_wheel

__all__ = ["add_up_on_top"]

OWN = "import torch\nplace = torch.__file__\n"


def add_up_on_top(home: Path, tool: str, launcher: str) -> str:
    """Return what ranks print in an environment of the user that loads the module of home/prefix.

    A package of the environment finds torch of the installation.
    """
    folder = Path(mkdtemp(dir=home))
    venv, wheel = folder / "venv", folder / "own-1.0-py3-none-any.whl"
    wheel.write_bytes(make_wheel("own", code=OWN))
    (folder / "add_up.py").write_text(ADD_UP)
    script = f"""set -eu
        {tool.partition(";")[0]}
        module use {home}/prefix/modulefiles
        module load PyTorch
        python -m venv --system-site-packages {venv}
        extend-venv-activate {venv}
        module unload PyTorch
        source {venv}/bin/activate
        python -m pip install --quiet --no-index {wheel}
        python -c 'import own; print(own.__file__, own.place)'
        {launcher} python {folder}/add_up.py"""
    os.chown(folder, NOBODY, NOBODY)
    lines = good(as_ordinary_user(home, "bash", "-c", script)).splitlines()
    own, torch = lines[-2].split()
    assert own.startswith(f"{venv}/lib/")
    assert torch.startswith(f"{(home / 'prefix/current').resolve()}/venv/lib/")
    return lines[-1]
