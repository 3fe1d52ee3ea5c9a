"""%setup runs on the building machine: what it may touch, and what it hands over by hand."""

from __future__ import annotations

import re
import shutil
from importlib import resources
from typing import TYPE_CHECKING

import pytest

from sifwright.build.request import host_settings
from sifwright.host.network import pip_settings
from tests.conftest import run

if TYPE_CHECKING:
    from pathlib import Path

SCRIPT = resources.files("sifwright").joinpath("render", "templates", "setup.sh").read_text()
LINKS = [".sifwright", "etc", ".singularity.d", ".singularity.d/env", ".singularity.d/labels.json"]
NAMES = ("hostname", "resolv.conf", "hosts")


@pytest.fixture
def rootfs(tmp_path: Path) -> Path:
    """A root with the machine's files in it; one is a link that leads out of it."""
    (tmp_path / "rootfs" / "etc").mkdir(parents=True)
    (tmp_path / "outside").write_text("outside\n")
    for name in NAMES[:2]:
        (tmp_path / "rootfs" / "etc" / name).write_text("of the machine\n")
    (tmp_path / "rootfs" / "etc" / NAMES[2]).symlink_to(tmp_path / "outside")
    return tmp_path / "rootfs"


def _setup(environment: dict[str, str]) -> str:
    env = {"PATH": "/usr/bin:/bin", **environment}
    done = run(["sh", "-e", "-c", SCRIPT], env=env)
    return f"{done.returncode} {done.stderr}"


@pytest.mark.parametrize("variable", ["APPTAINER_ROOTFS", "SINGULARITY_ROOTFS"])
def test_it_cleans_the_image_and_follows_no_link(rootfs: Path, variable: str) -> None:
    assert _setup({variable: str(rootfs)}).startswith("0 ")
    assert [(rootfs / "etc" / name).read_text() for name in NAMES] == ["", "", "outside\n"]


@pytest.mark.parametrize("link", LINKS)
def test_folders_of_the_machine_behind_links_stay_as_they_are(
    rootfs: Path, tmp_path: Path, link: str
) -> None:
    """A base image can bring any link."""
    (tmp_path / "machine").mkdir()
    for name in (*NAMES, "environment"):
        (tmp_path / "machine" / name).write_text("outside\n")
    shutil.rmtree(rootfs / link, ignore_errors=True)
    (rootfs / link).parent.mkdir(exist_ok=True)
    (rootfs / link).symlink_to(tmp_path / "machine")
    said = _setup({"APPTAINER_ROOTFS": str(rootfs)})
    refused = (
        f"links of the base image, which may lead out of it: start from another: {link}\n" in said
    )
    assert said.startswith("0 ") != refused == (link != ".sifwright"), said
    left = {path.name: path.read_text() for path in (tmp_path / "machine").iterdir()}
    assert left == dict.fromkeys((*NAMES, "environment"), "outside\n")


def test_it_stops_before_it_touches_the_machine_itself() -> None:
    """The lines that write come after the two that refuse: those alone are run here."""
    refusals, writes, _ = SCRIPT.partition('rm -rf "$build')
    assert writes
    assert ">" not in re.sub(r"#.*|>&2", "", refusals)
    for environment in ({}, {"APPTAINER_ROOTFS": "/"}, {"APPTAINER_ROOTFS": ""}):
        done = run(["sh", "-e", "-c", refusals], env={"PATH": "/usr/bin:/bin", **environment})
        assert done.returncode != 0
        assert "machine itself" in done.stderr


def test_by_hand_and_by_sifwright_hand_over_the_same_variables(rootfs: Path) -> None:
    keys = [key for key in pip_settings.PIP_KEYS if key not in {"find-links", "cert"}]
    names = [*pip_settings.environment(dict.fromkeys(keys, "")), *host_settings.PROXIES]
    names += [name.upper() for name in host_settings.PROXIES]
    names.append("MAX_JOBS")
    value = "a 'b' $c\nd"
    done = _setup({"APPTAINER_ROOTFS": str(rootfs), **dict.fromkeys(names, value)})
    assert done.startswith("0 "), done
    file = rootfs / ".sifwright" / "machine" / "environment"
    shown = run(["sh", "-c", f'. "{file}"; env -0'], env={}).stdout.split("\0")
    for name in names:
        assert f"{name}={value}" in shown


def test_by_hand_and_by_sifwright_look_for_the_same_certificates() -> None:
    for bundle in pip_settings.CA_BUNDLES:
        assert bundle in SCRIPT
    for variable in pip_settings.CA_VARIABLES:
        assert variable in SCRIPT
