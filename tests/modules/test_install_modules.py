"""tools/install-modules: what it finds missing, and what it says where it cannot help."""

from __future__ import annotations

import os
import subprocess
from typing import TYPE_CHECKING

from tests.conftest import ROOT

if TYPE_CHECKING:
    from pathlib import Path


def run(checkout: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Of a copy that has nothing yet, where no package manager is."""
    tools = checkout / "tools"
    tools.mkdir(parents=True)
    (tools / "install-modules").write_text((ROOT / "tools/install-modules").read_text())
    programs = checkout / "bin"
    programs.mkdir()
    for name in ("bash", "dirname", "sort"):
        (programs / name).symlink_to(f"/usr/bin/{name}")
    return subprocess.run(
        ["/bin/bash", tools / "install-modules", *arguments],
        env={"PATH": str(programs)},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


def test_check_names_what_is_missing(tmp_path: Path) -> None:
    done = run(tmp_path / "checkout", "--check")
    assert (done.returncode, done.stderr) == (1, "")
    assert done.stdout.startswith("install-modules: missing: ")
    assert done.stdout.endswith(" environment-modules\n")
    # Only its path says whether Lmod is there.
    there = os.path.exists("/usr/share/lmod/lmod/libexec/lmod")  # noqa: PTH110
    assert (" lmod" in done.stdout) != there


def test_without_apt_one_is_told_and_may_go_on(tmp_path: Path) -> None:
    done = run(tmp_path / "checkout")
    assert (done.returncode, done.stderr) == (0, "")
    assert "tests/modules is skipped" in done.stdout
