"""Files of `easyconfig` and `modulefile`, without any program to install them."""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import sys
import tarfile
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from sifwright.install import easybuild_folder
from sifwright.install.installed_image import InstalledImage
from sifwright.install.module import describe
from tests.catalogs import REAL
from tests.unit.conftest import CHECKOUT, Cli

if TYPE_CHECKING:
    from pathlib import Path

COMMITTED = sorted((CHECKOUT / "easyconfigs").glob("*/*.eb"))
SITES = REAL.sites
PLANNED = ["--central", "--date", "20261122"]


def written(run_cli: Cli, site: str, folder: Path, *words: str) -> Path:
    result = run_cli("--project", CHECKOUT, "easyconfig", site, *words, "--output", folder)
    assert (result.code, result.err) == (0, "")
    (path,) = folder.glob(f"{site}/*/easybuild/*.eb")
    return path


@pytest.mark.parametrize("path", COMMITTED, ids=[path.parent.name for path in COMMITTED])
def test_committed_easyconfigs_are_what_is_generated(
    run_cli: Cli, tmp_path: Path, path: Path
) -> None:
    result = written(run_cli, path.parent.name, tmp_path, "--date", path.stem[-8:])
    names = {file.name for file in result.parent.iterdir()}
    # An image put there by hand is none of the repository's files.
    assert {file.name for file in path.parent.iterdir() if file.suffix != ".sif"} == names
    for name in sorted(names):
        same = (result.parent / name).read_bytes() == (path.parent / name).read_bytes()
        assert same, f"{name} is not what is generated: make easyconfigs, look at the difference"


def test_every_site_with_a_scheduler_has_an_easyconfig() -> None:
    expected = {site.name for site in SITES.values() if site.scheduler != "local"}
    assert {path.parent.name for path in COMMITTED} == expected, "make easyconfigs"


def test_archive_is_the_same_everywhere(tmp_path: Path) -> None:
    """Vary the umask, the time, the time zone and the order of the files."""
    program = (
        "import sys; from sifwright.cli.main import main;"
        f"sys.exit(main(['--project', {str(CHECKOUT)!r}, 'easyconfig', 'lumi', *{PLANNED!r}]))"
    )
    digests = set()
    for number, umask in enumerate((0o022, 0o077)):
        folder = tmp_path / str(number)
        folder.mkdir()
        env = {**os.environ, "TZ": f"UTC+{number}", "PYTHONHASHSEED": str(number)}
        subprocess.run(
            [sys.executable, "-c", program], cwd=folder, env=env, umask=umask, check=True
        )
        archives = sorted(folder.glob("build/lumi/*/easybuild/*.tar.gz"))
        for path in archives:
            digests.add(hashlib.sha256(path.read_bytes()).hexdigest())
            assert path.stat().st_mode & 0o777 == 0o644
        (config,) = folder.glob("build/lumi/*/easybuild/*.eb")
        assert digests == set(re.findall("[0-9a-f]{64}", config.read_text()))
    assert len(digests) == len(archives) == 2


def usage(text: str) -> str:
    """Cut the module's help out of an easyconfig."""
    return text.partition('usage = """')[2].partition('"""')[0]


def test_help_tells_srun_by_which_pmi_the_images_mpi_starts(run_cli: Cli, tmp_path: Path) -> None:
    words = ("slurm-generic", "pytorch-horovod", *PLANNED)
    result = run_cli("--project", CHECKOUT, "easyconfig", *words, "--output", tmp_path)
    assert result.code == 0, result.err
    (config,) = tmp_path.rglob("*.eb")
    assert "--ntasks-per-node=1 --mpi=pmix --kill-on-bad-exit=1" in usage(config.read_text())


def test_help_names_accelerate_where_the_image_has_it(run_cli: Cli, tmp_path: Path) -> None:
    text = usage(written(run_cli, "slurm-generic", tmp_path, "pytorch-full", *PLANNED).read_text())
    assert "torchrun and accelerate are in the image as well" in " ".join(text.split())


def test_a_module_does_not_wait_for_an_image(run_cli: Cli) -> None:
    words = ["modulefile", "lumi", "--date", "20261122", "--format", "lua", "--root", "/x"]
    result = run_cli("--project", CHECKOUT, *words)
    assert (result.code, result.out) == (2, "")
    assert "Add --central" in result.err


def test_central_folder_is_the_sites_or_that_of_a_variable(run_cli: Cli, tmp_path: Path) -> None:
    text = written(run_cli, "lumi", tmp_path / "a", *PLANNED).read_text()
    assert f'"{SITES["lumi"].central}"' in text
    assert "download_instructions" not in text
    text = written(run_cli, "derecho", tmp_path / "a", *PLANNED).read_text()
    assert '"$SIFWRIGHT_IMAGES"' in text
    words = ["--central", "/img/of us", "--date", "20261122"]
    assert '"/img/of us"' in written(run_cli, "lumi", tmp_path / "b", *words).read_text()


def test_an_older_bundle_goes(run_cli: Cli, tmp_path: Path) -> None:
    first = written(run_cli, "lumi", tmp_path, *PLANNED)
    (first.parent / "notes.txt").write_text("mine")
    second = written(run_cli, "lumi", tmp_path, "--central", "--date", "20261123")
    assert first != second
    assert {path.name for path in first.parent.iterdir()} == {
        *("notes.txt", second.name, easybuild_folder.PROGRAMS),
        second.name.replace(".eb", "-notes.tar.gz"),
    }


@pytest.mark.parametrize("syntax", ["lua", "tcl"])
def test_modulefile_is_printed_or_written(run_cli: Cli, tmp_path: Path, syntax: str) -> None:
    words = ["modulefile", "lumi", *PLANNED, "--format", syntax, "--root", "/appl/my pytorch"]
    printed = run_cli("--project", CHECKOUT, *words)
    assert (printed.code, printed.err) == (0, "")
    assert '"/appl/my pytorch"' in printed.out
    target = tmp_path / "modules/PyTorch/module"
    assert run_cli("--project", CHECKOUT, *words, "--write", target).code == 0
    assert target.read_text() == printed.out


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["lumi"], "there is no image yet"),
        (["lumi", "--central"], "Or give the date of a later build: --date YYYYMMDD"),
        (["lumi", "--central", "--date", "2026-11-22"], "Example: 20261122"),
        (["lumi", "--central", "images", "--date", "20261122"], "Begin it with /, and"),
        (["lumi", "--central", "/a\nb", "--date", "20261122"], "printable"),
        (["nowhere"], "there is no site 'nowhere'"),
        (["lumi", "pytorch", "--from", "x.sif"], "Leave IMAGE"),
        (["lumi", "--from", "x.sif"], "x.sif: cannot be used as a SIF"),
        (["lumi", "--from", "."], "not a regular file"),
        (["lumi", "--image-url", "ftp://x.example/y"], "Give http:// or https://"),
        (["lumi", "--image-url", "https://me:pw@x.example/y"], "without a user name"),
        (["lumi", "--image-url", "https://x.example", "--central"], "Build the image first"),
    ],
)
def test_senseless_requests_are_refused(
    run_cli: Cli, tmp_path: Path, words: list[str], says: str
) -> None:
    result = run_cli("--project", CHECKOUT, "easyconfig", *words, "--output", tmp_path / "build")
    assert (result.code, result.out) == (2, "")
    assert says in result.err
    assert not (tmp_path / "build").exists()


NO_TORCH = """\
description: An image without torch
layers: [{layer: base-debian}, {layer: python-venv}, {layer: run-scripts}]
"""


def test_an_image_without_torch_is_refused(
    run_cli: Cli, tmp_path: Path, real_project: Path
) -> None:
    (real_project / "defs/images/plain.yaml").write_text(NO_TORCH)
    words = ["easyconfig", "local", "plain", *PLANNED]
    result = run_cli("--project", real_project, *words, "--output", tmp_path / "build")
    assert (result.code, result.out) == (2, "")
    assert "defs/images/plain.yaml: no layer of image 'plain' provides torch" in result.err
    assert not (tmp_path / "build").exists()


def test_plain_names_of_commands_where_the_site_asks_for_them(tmp_path: Path) -> None:
    catalog = REAL
    site = replace(SITES["local"], commands=("python", "torchrun"))
    facts = InstalledImage(torch="2.13.0", python="3.11", stack="cpu", date="20261122")
    notes = easybuild_folder.EasyBuildFolder(
        module=describe(site, facts, "/central"),
        facts=facts,
        sif=None,
        programs=tuple(easybuild_folder.programs(catalog)),
        notes=tuple(easybuild_folder.notes(site, {})),
        links=easybuild_folder.links(site),
    )
    text = easybuild_folder.write(notes, tmp_path).read_text()
    assert "ln -sf pytorch-python bin/python" in text
    assert "bin/pip" not in text
    with tarfile.open(next(tmp_path.glob("*-notes.tar.gz"))) as tar:
        links = {member.name: member.linkname for member in tar if member.issym()}
    assert links == {"bin/python": "pytorch-python", "bin/torchrun": "pytorch-torchrun"}
