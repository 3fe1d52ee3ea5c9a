"""`sifwright deliver` refuses what no engine could start, and then writes nothing."""

from __future__ import annotations

import tomllib
from typing import TYPE_CHECKING

import pytest

from sifwright.catalog.model import LayerFile
from sifwright.errors import BuildError
from sifwright.make_image.deliver import oci_archive
from tests.unit.sifs import squashfs_of, write_sif

if TYPE_CHECKING:
    from pathlib import Path

    from tests.unit.conftest import Cli

SHELL = LayerFile(path="/.singularity.d/actions/exec", data=b"#!/bin/sh\n")
CUDA = LayerFile(path="/usr/local/cuda/lib64/libcudart.so", data=b"")


def _sif(folder: Path, *files: LayerFile, processor: str = "arm64") -> Path:
    (folder / "image.sif").unlink(missing_ok=True)
    write_sif(folder / "image.sif", squashfs_of(*files), processor)
    return folder / "image.sif"


@pytest.fixture(autouse=True)
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HOME", "SCRATCH"):
        (tmp_path / name).mkdir()
        monkeypatch.setenv(name, str(tmp_path / name))


def _refused(run_cli: Cli, sif: Path, *words: str, because: str) -> None:
    before = sorted(sif.parent.iterdir())
    done = run_cli("deliver", *words, "--sif", sif)
    assert (done.code, because in done.err) == (2, True), done.err
    assert sorted(sif.parent.iterdir()) == before


def test_an_edf_file_mounts_folders_that_are_there(run_cli: Cli, tmp_path: Path) -> None:
    done = run_cli("deliver", "alps", "--sif", _sif(tmp_path, SHELL, CUDA))
    assert (done.code, done.err) == (0, "")
    edf = tomllib.loads((tmp_path / "pytorch.toml").read_text())
    assert edf["mounts"] == ["${HOME}:${HOME}", "${SCRATCH}:${SCRATCH}"]


def test_an_image_of_a_matrix(run_cli: Cli, tmp_path: Path) -> None:
    folder = tmp_path / "build/perlmutter/pytorch@2.13.0"
    folder.mkdir(parents=True)
    _sif(folder, SHELL, processor="amd64")
    done = run_cli("deliver", "perlmutter", "pytorch@2.13.0", "--output", tmp_path / "build")
    assert "localhost/sifwright/pytorch:perlmutter-2.13.0" in done.out, done.err


def test_an_edf_file_for_mounts_that_are_not_there(
    run_cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sif = _sif(tmp_path, SHELL)
    monkeypatch.setenv("HOME", str(tmp_path / "nowhere"))
    _refused(run_cli, sif, "alps", because="would mount $HOME, which is not there")
    monkeypatch.delenv("SCRATCH")
    _refused(run_cli, sif, "alps", because="would mount $SCRATCH, but SCRATCH is not set")
    assert run_cli("deliver", "alps", "--elsewhere", "--sif", sif).code == 0


def test_engines_that_a_site_lacks(run_cli: Cli, tmp_path: Path) -> None:
    sif = _sif(tmp_path, SHELL, processor="amd64")
    _refused(run_cli, sif, "lumi", because="runs SIFs as they are")
    _refused(run_cli, sif, "perlmutter", "--as", "edf", because="has no Container Engine")


def test_images_that_an_engine_cannot_start(run_cli: Cli, tmp_path: Path) -> None:
    sif = _sif(tmp_path, SHELL, processor="amd64")
    _refused(run_cli, sif, "alps", because="is for amd64, and site 'alps' has arm64")
    _refused(run_cli, _sif(tmp_path, CUDA), "alps", because="has no /.singularity.d/actions/exec")
    sif.write_text("no SIF\n")
    _refused(run_cli, sif, "alps", because="cannot be used as a SIF")
    sif.unlink()
    _refused(run_cli, sif, "alps", because="sifwright build alps pytorch")


def test_a_library_that_the_site_s_plugin_opens(run_cli: Cli, tmp_path: Path) -> None:
    done = run_cli("deliver", "alps", "--sif", _sif(tmp_path, SHELL))
    assert (done.code, "no libcudart.so without a number" in done.err) == (0, True)


@pytest.mark.timeout(60)
def test_many_warnings_do_not_stop_an_archive(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Fill the pipe of a program that fails: nobody may wait for the other."""
    (tmp_path / "sqfs2tar").write_text("#!/bin/sh\nseq 100000 >&2\nexit 1\n")
    (tmp_path / "sqfs2tar").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    with pytest.raises(BuildError, match="sqfs2tar failed: 1\n2\n"):
        oci_archive.write(tmp_path / "x", tmp_path / "x.tar", name="x", architecture="amd64")
