"""Images on somebody else's that are refused, or stopped half-way: what was built stays."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT, run, sifwright
from tests.spread import spread
from tests.system.docker.base_sites import ENVIRONMENT, Site
from tests.system.docker.bases import Layout
from tests.system.slurm.slurm import command_of
from tests.waiting import wait_for

pytestmark = [pytest.mark.all, pytest.mark.build]

# Bytes that pack to nothing. Where there is no room for them, or for what is packed.
ZEROS = 600_000_000
FULL = {
    "TMPDIR": ("300m", "no space left on device"),
    "SIFWRIGHT_CACHE": ("8m", "mb are needed"),
}


# ---- refused before anything is built -------------------------------------------------------


def _write(top: Path, *names: str) -> Path:
    for name in names:
        (top / name).parent.mkdir(parents=True, exist_ok=True)
        (top / name).write_text("")
    return top


PYTHON = ("usr/bin/python3.11", "usr/bin/python3", "usr/lib/python3.11/os.py")
REFUSED = {
    "musl": ((*PYTHON, "lib/ld-musl-x86_64.so.1"), "amd64", "its C library is musl"),
    "another processor": (PYTHON, "arm64", "linux/arm64"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused_with_the_reason(site: Site, tmp_path: Path, name: str) -> None:
    files, processor, reason = REFUSED[name]
    top = _write(tmp_path / "tree", *files)
    source = Layout(folder=tmp_path / "oci", processor=processor).write(top).name
    refused = site.build(source)
    assert refused.returncode == 4, refused.stderr
    assert f"base-image.from={source} (--set): " in refused.stderr
    assert reason in refused.stderr
    assert not (site.folder / "build").exists()


def test_a_refused_base_is_a_finding_of_lint(site: Site, tmp_path: Path) -> None:
    """List it beside other findings of the site; `inspect` calls it refused as well."""
    top = _write(tmp_path / "tree", "usr/bin/perl")
    source = Layout(folder=tmp_path / "oci").write(top).name
    words = ["lint", "slurm-generic", "base-image", "--set", f"base-image.from={source}"]
    done = sifwright(*words, env=site.env)
    assert done.returncode == 4, done.stderr
    assert f"base-image.from={source} (--set): error: it has no Python [plan]" in done.stdout
    assert "note: Everything that differs between clusters" in done.stdout
    last = sifwright("inspect", source, env=site.env).stdout.splitlines()[-1]
    assert last == "as a base    refused: it has no Python"


def test_missing_images_are_named(site: Site) -> None:
    for source in ("oci-archive:none.tar", "docker-archive:none.tar", "oci:none"):
        refused = site.plan(source)
        assert refused.returncode == 4
        assert "none" in refused.stderr
        assert "Traceback" not in refused.stderr
    refused = site.plan("oci-archive:many.tar:one")
    assert refused.returncode == 2
    assert "each of one image" in refused.stderr


# ---- stopped half-way -----------------------------------------------------------------------


# Python runs this before anything else: it goes on as a process that a test can tell from others.
HOLD = """import os, sys
os.execv(sys.executable, ["{name}", "-S", "-c", "import time; time.sleep(600)"])
"""


def _running(name: str) -> bool:
    """Return whether a program of that name runs, in a container or not."""
    commands = (command_of(int(path.name)) for path in Path("/proc").glob("[0-9]*"))
    return any(command.startswith(name) for command in commands)


def test_a_build_that_is_killed_leaves_the_image_from_before(
    site: Site, layout: Layout, tree: Path, tmp_path: Path
) -> None:
    assert site.build(layout.name, "--quiet").returncode == 0
    before = site.sif.read_bytes()
    more, name = tmp_path / "more", f"held-{os.getpid()}"
    folder = more / "usr" / "lib" / "python3.11" / "sitecustomize.py"
    folder.parent.mkdir(parents=True)
    folder.write_text(HOLD.format(name=name))
    source = Layout(folder=tmp_path / "second", environment=ENVIRONMENT).write(tree, more).name
    words = [sys.executable, "-m", "sifwright", *site.words("build", source)]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    with subprocess.Popen(words, cwd=ROOT, env=site.env, **quiet) as process:  # type: ignore[call-overload]
        assert wait_for(lambda: _running(name))
        process.send_signal(signal.SIGKILL)
    assert wait_for(lambda: not _running(name))
    assert site.sif.read_bytes() == before
    assert f"up to date: {site.sif}" in site.build(layout.name).stdout


@pytest.mark.skipif(os.geteuid() != 0, reason="mounting a small file system needs root")
@pytest.mark.parametrize("full", spread(FULL, ["SIFWRIGHT_CACHE"]))
def test_a_disk_that_gets_full(
    site: Site, layout: Layout, tree: Path, tmp_path: Path, full: str
) -> None:
    """Fill it during the build, by an image that unpacks to far more than its size foretells."""
    size, reason = FULL[full]
    assert site.build(layout.name, "--quiet").returncode == 0
    before = site.sif.read_bytes()
    more, small = tmp_path / "more", tmp_path / "small"
    for folder in (more, small):
        folder.mkdir()
    with (more / "zeros").open("wb") as file:
        file.truncate(ZEROS)
    written = Layout(folder=tmp_path / "second", environment=ENVIRONMENT).write(tree, more)
    source = written.copy(f"oci-archive:{tmp_path}/second.tar")
    assert run(["mount", "-t", "tmpfs", "-o", f"size={size}", "none", small]).returncode == 0
    try:
        done = sifwright(*site.words("build", source), env={**site.env, full: str(small)})
    finally:
        run(["umount", "--lazy", small])
    assert done.returncode in {5, 6, 7}, done.stdout + done.stderr
    assert reason in done.stderr.lower(), done.stderr
    assert site.sif.read_bytes() == before
    assert [path.name for path in site.output.iterdir() if path.name.startswith(".")] == []
    assert f"up to date: {site.sif}" in site.build(layout.name).stdout
