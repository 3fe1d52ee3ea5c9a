"""Our patch of PyTorch's MPI backend: it does what it says, and applies where it is for."""

from __future__ import annotations

import os
import re
import subprocess
from typing import TYPE_CHECKING

import pytest

from sifwright.catalog import mirrors
from tests.unit.conftest import CHECKOUT, program

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from sifwright.catalog.model import Catalog

PATCH = CHECKOUT / "defs/layers/pytorch-source/patches/2.0/cuda-aware-mpich.patch"
SOURCE = "torch/csrc/distributed/c10d/ProcessGroupMPI.cpp"
UPSTREAM = b"MPIX_GPU_SUPPORT_CUDA"
# Code around the function, with an Open MPI (1 or 0: its own answer) or without.
PROGRAM = """\
#include <cstdio>
#include <cstdlib>
#ifdef OPEN_MPI_SAYS
#define MPIX_CUDA_AWARE_SUPPORT 1
int MPIX_Query_cuda_support() {{ return OPEN_MPI_SAYS; }}
#endif
bool cudaAwareMpiCheck() {{
#if defined(MPIX_CUDA_AWARE_SUPPORT)
  if (MPIX_Query_cuda_support() == 1) {{
    return true;
  }} else {{
{changed}
int main() {{ std::printf("%d", cudaAwareMpiCheck()); }}
"""


def _after() -> str:
    """Return the lines of the patch as they are once it is applied."""
    hunks = re.split(r"^@@ .*@@.*\n", PATCH.read_text(), flags=re.MULTILINE)
    assert len(hunks) == 2, "one change, in one place"
    return "\n".join(line[1:] for line in hunks[1].splitlines() if not line.startswith("-"))


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Compile the patched function: for Open MPI with each answer, and for other MPIs."""
    folder = tmp_path_factory.mktemp("mpi-patch")
    (folder / "check.cpp").write_text(PROGRAM.format(changed=_after()))
    result = {"other": [], "open-yes": ["-DOPEN_MPI_SAYS=1"], "open-no": ["-DOPEN_MPI_SAYS=0"]}
    for name, flags in result.items():
        command = [program("g++"), "-std=c++17", "-Wall", "-Werror", *flags]
        subprocess.run([*command, folder / "check.cpp", "-o", folder / name], check=True)
    return {name: folder / name for name in result}


@pytest.mark.parametrize(
    ("mpi", "variable", "takes_gpu_buffers"),
    [
        ("other", None, False),
        ("other", "", False),
        ("other", "0", False),
        ("other", "1", True),
        ("open-yes", "0", True),
        ("open-yes", None, True),
        ("open-no", "1", False),
    ],
)
def test_the_variable_decides_unless_open_mpi_does(
    compiled: dict[str, Path], mpi: str, variable: str | None, *, takes_gpu_buffers: bool
) -> None:
    environment = {} if variable is None else {"MPICH_GPU_SUPPORT_ENABLED": variable}
    done = subprocess.run([compiled[mpi]], env=environment, check=True, capture_output=True)
    assert done.stdout == (b"1" if takes_gpu_buffers else b"0")


def _git(*words: str | Path) -> subprocess.CompletedProcess[bytes]:
    """Run git as a build does, with the rules of the mirrors file."""
    rules = mirrors.git_config(mirrors.load().of("git"))
    settings = [word for key, value in rules for word in ("-c", f"{key}={value}")]
    environment = {**os.environ, "GIT_TERMINAL_PROMPT": "0"}
    return subprocess.run(
        [program("git"), *settings, *map(str, words)],
        env=environment,
        check=False,
        capture_output=True,
        timeout=600,
    )


def _versions(real: Catalog) -> Iterator[tuple[str, str, bool]]:
    """Return each version of torch with its commit, and whether the patch is for it."""
    pins = real.layers["pytorch-source"].sources[0].versions
    rows = real.versions["torch"]
    for version, pin in pins.items():
        if pin.digest:
            yield version, pin.digest, rows[version]["mpi-patch"][0] != "none"


@pytest.fixture(scope="module")
def sources(real: Catalog, tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """Return the file to be patched, of every version that the mirror has at its pinned commit."""
    url = real.layers["pytorch-source"].sources[0].url
    if not os.environ.get(mirrors.VARIABLE) or mirrors.load().redirect(url, "git") == url:
        pytest.skip(f"no mirror of {url}: name one in the file of {mirrors.VARIABLE}")
    folder = tmp_path_factory.mktemp("pytorch")
    _git("init", "--quiet", folder)
    results = {}
    for version, commit, _ in _versions(real):
        # Only the file and the folders on the way to it, where the server can do that.
        depth = ("--depth=1", "--filter=blob:none", "--no-tags")
        if _git("-C", folder, "fetch", "--quiet", *depth, url, commit).returncode == 0:
            results[version] = _git("-C", folder, "show", f"{commit}:{SOURCE}").stdout
    assert results, f"the mirror of {url} has none of the pinned commits"
    return results


def _apply(folder: Path, text: bytes) -> int:
    (folder / SOURCE).parent.mkdir(parents=True)
    (folder / SOURCE).write_bytes(text)
    command = [program("patch"), "-p1", "--forward", "--fuzz=0"]
    with PATCH.open("rb") as patch:
        return subprocess.run(command, stdin=patch, cwd=folder, check=False).returncode


@pytest.mark.all
def test_it_applies_to_the_versions_it_is_for(
    real: Catalog, sources: dict[str, bytes], tmp_path: Path
) -> None:
    for version, _, patched in _versions(real):
        if version not in sources:
            continue
        if UPSTREAM in sources[version]:
            # install.sh leaves the patch out of such a source, so a row that names it does no harm.
            assert version.startswith("2.12.") or not patched, version
        else:
            assert patched, f"{version} has no change from upstream, and gets no patch"
            assert _apply(tmp_path / version, sources[version]) == 0, version
