"""Images on a base image of each kind of source: inspected, built, tested, held to the base."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.conftest import run, sifwright
from tests.registries import Registry, running
from tests.spread import spread
from tests.system.apptainer.trees import unpack
from tests.system.docker import bases
from tests.system.docker.base_sites import NOWHERE, Site
from tests.system.docker.bases import Layout

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable, Iterator

pytestmark = pytest.mark.build

KINDS = ("docker", "oci", "oci-archive", "docker-archive", "docker-daemon", "podman")
DEFAULT_KINDS = ("docker", "oci-archive")
ASK = "import os, torch; print(torch.__version__, torch.__file__, "
ASK += "*map(os.environ.get, ('NCCL_NET_PLUGIN', 'KEPT')))"
# Files of a Python; digits of a sha256.
MANY, DIGITS = 300, 64
TORCH = "/usr/lib/python3/dist-packages/torch/__init__.py"
IMAGE = "sifwright/base-image:local"
PASSWORD = "hardly-a-word"  # noqa: S105
# A toy image has no room for the real one and its repositories.
DNF = """#!/bin/bash
cache=/var/cache/dnf/appstream-0123456789abcdef/repodata
mkdir -p $cache
echo '<timestamp>1700000000</timestamp>' >$cache/repomd.xml
echo "$*" >/opt/upgraded
"""


# ---- wherever it is kept --------------------------------------------------------------------


@pytest.fixture
def source(request: pytest.FixtureRequest, site: Site, layout: Layout, tmp_path: Path) -> str:
    """Return the same image, kept in the form that the test names."""
    kind = str(request.param)
    if kind == "oci":
        shutil.copytree(layout.folder, tmp_path / "oci")
        return f"oci:{tmp_path}/oci"
    if kind == "docker":
        host = request.getfixturevalue("loopback_registry")
        layout.copy(f"docker://{host}/group/base:1.0")
        site.mirror(f"http://{host}")
        return "docker://registry.example/group/base:1.0"
    if engine := {"docker-daemon": "docker", "podman": "podman"}.get(kind):
        address = site.env["DOCKER_HOST"] = request.getfixturevalue("engines")(engine)
        return layout.copy("docker-daemon:somebody/base:1.0", "--dest-daemon-host", address)
    return layout.copy(f"{kind}:{tmp_path}/base.tar")


@pytest.mark.parametrize("source", spread(KINDS, DEFAULT_KINDS), indirect=True)
def test_its_torch_is_used_wherever_it_is(site: Site, source: str, engine: str) -> None:
    built = site.build(source)
    assert built.returncode == 0, built.stdout + built.stderr
    message = site.ask(engine, "conda-python-simple", "-c", ASK)
    assert message == f"2.8.0+cpu {TORCH} None yes"
    record = json.loads((site.output / "record.json").read_text())
    base, *others = record["plan"]["steps"]
    assert [step["layer"] for step in others] == ["run-scripts"]
    assert base["options"]["torch"]["origin"].startswith(f"inspected {source}@sha256:")
    pinned = record["sources"][0]["digest"] if "docker://" in source else record["base_sha256"]
    assert len(pinned.removeprefix("sha256:")) == DIGITS
    assert f"up to date: {site.sif}" in site.build(source).stdout


@pytest.mark.all
def test_the_files_of_the_image_are_kept(
    site: Site, layout: Layout, tree: Path, engine: str, tmp_path: Path
) -> None:
    """Keep all files, except those that the layer declares to remove, and times in bytecode."""
    assert site.build(layout.name, "--layout", "flat", "--quiet").returncode == 0
    result = unpack(engine, site.sif, tmp_path)
    files = [path.relative_to(tree) for path in tree.rglob("*") if path.is_file()]
    assert len(files) > MANY
    changed = [name for name in files if _contents(result / name) != _contents(tree / name)]
    assert changed == []


def _contents(path: Path) -> bytes:
    """Return a file's bytes, of bytecode without its header, which has the time of the source."""
    return path.read_bytes()[16 if path.suffix == ".pyc" else 0 :]


# ---- which one it is ------------------------------------------------------------------------


@pytest.fixture
def toy(site: Site, tree: Path) -> Iterator[Registry]:
    """Make a registry that a test can spoil, with the image."""
    with running(Registry()) as served:
        site.mirror(served.url)
        served.push("group/base", "1.0", bases.layer(tree))
        yield served


def _planned_torch(planned: subprocess.CompletedProcess[str]) -> str:
    (line,) = (line for line in planned.stdout.splitlines() if line.strip().startswith("torch = "))
    return line.split()[2]


def test_a_tag_is_held_to_its_digest(site: Site, toy: Registry, tree: Path, tmp_path: Path) -> None:
    """Plan the built digest after a tag has moved, and build nothing."""
    source = "docker://registry.example/group/base:1.0"
    assert site.build(source, "--quiet").returncode == 0
    before = site.sif.read_bytes()
    other = tmp_path / "other"
    bases.add_torch(other, "2.7.1+cpu")
    toy.push("group/base", "1.0", bases.layer(tree, other))
    assert _planned_torch(site.plan(source, "--explain")) == "2.8.0"
    elsewhere = ("--output", str(tmp_path / "elsewhere"))
    assert _planned_torch(site.plan(source, "--explain", *elsewhere)) == "2.7.1"
    refused = site.build(source, "--force")
    assert refused.returncode == 6
    assert "registry.example/group/base:1.0 is not what it was" in refused.stderr
    assert site.sif.read_bytes() == before


@pytest.mark.all
@pytest.mark.usefixtures("toy")
def test_without_its_registry_it_is_planned_as_it_was(site: Site) -> None:
    source = "docker://registry.example/group/base:1.0"
    assert site.build(source, "--quiet").returncode == 0
    site.mirror(NOWHERE)
    planned = site.plan(source)
    assert (planned.returncode, planned.stderr) == (0, "")
    assert "every step is cached" in planned.stdout


@pytest.mark.all
def test_a_login_that_is_missing_is_said(site: Site, toy: Registry) -> None:
    toy.login = "me:secret"
    refused = site.plan("docker://registry.example/group/base:1.0")
    assert refused.returncode != 0
    assert "APPTAINER_DOCKER_USERNAME" in refused.stderr
    assert "secret" not in refused.stderr
    site.env["APPTAINER_DOCKER_USERNAME"], site.env["APPTAINER_DOCKER_PASSWORD"] = "me", "secret"
    assert site.build("docker://registry.example/group/base:1.0", "--quiet").returncode == 0


@pytest.mark.all
def test_a_refused_base_is_built_by_nobody(site: Site, tmp_path: Path) -> None:
    """List it beside other findings of the site; `inspect` calls it refused as well."""
    program = tmp_path / "tree" / "usr" / "bin" / "perl"
    program.parent.mkdir(parents=True)
    program.touch()
    source = Layout(folder=tmp_path / "oci").write(tmp_path / "tree").name
    refused = site.build(source)
    assert (refused.returncode, (site.folder / "build").exists()) == (4, False), refused.stderr
    assert f"base-image.from={source} (--set): it has no Python" in refused.stderr
    two = site.plan("oci-archive:many.tar:one")
    assert (two.returncode, "each of one image" in two.stderr) == (2, True)
    words = ["lint", "slurm-generic", "base-image", "--set", f"base-image.from={source}"]
    done = sifwright(*words, env=site.env)
    assert done.returncode == 4, done.stderr
    assert f"base-image.from={source} (--set): error: it has no Python [plan]" in done.stdout
    assert "note: Everything that differs between clusters" in done.stdout
    last = sifwright("inspect", source, env=site.env).stdout.splitlines()[-1]
    assert last == "as a base    refused: it has no Python"


@pytest.mark.all
def test_updates_of_rpm_packages(site: Site, engine: str, tmp_path: Path) -> None:
    """Take them in the first layer."""
    tree = bases.make_tree(tmp_path / "tree")
    for name in ("awk", "cp", "date", "sort", "tail"):
        shutil.copy(Path(shutil.which(name) or name).resolve(), tree / "usr" / "bin" / name)
    (tree / "usr" / "bin" / "dnf").write_text(DNF)
    (tree / "usr" / "bin" / "dnf").chmod(0o755)
    bases.add_torch(tree)
    layout = Layout(folder=tmp_path / "oci", environment={"PATH": "/usr/bin:/bin"}).write(tree)
    built = site.build(layout.name, "--set", "base-image.updates=true")
    assert built.returncode == 0, built.stdout + built.stderr
    assert site.ask(engine, "cat", "/opt/upgraded").startswith("upgrade -q -y --refresh")
    archives = json.loads((site.output / "record.json").read_text())["archives"]
    date = "2023-11-14T22:13:20Z"
    assert archives == [{"layer": "base-image", "suite": "appstream", "date": date}]


# ---- by Docker Engine ----------------------------------------------------------------------


@pytest.fixture
def daemon(site: Site, engines: Callable[[str], str]) -> str:
    site.env["DOCKER_HOST"] = engines("docker")
    return site.env["DOCKER_HOST"]


def asked(daemon: str, *options: str) -> str:
    """Ask the image's Python for torch, and for the plugin that the base names."""
    command = ["docker", "--host", daemon, "run", "--rm", "--network", "host", *options, IMAGE]
    done = run([*command, "conda-python-simple", "-c", ASK])
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.mark.all
def test_an_image_of_the_engine(site: Site, layout: Layout, daemon: str) -> None:
    """Take the base's values for NCCL back, and keep a person's."""
    layout.copy("docker-daemon:group/torch:1.0", "--dest-daemon-host", daemon)
    built = site.build("docker-daemon:group/torch:1.0", "--engine", "docker")
    assert built.returncode == 0, built.stdout + built.stderr
    assert asked(daemon) == f"2.8.0+cpu {TORCH} None yes"
    assert asked(daemon, "--env", "NCCL_NET_PLUGIN=mine").endswith(" mine yes")


@pytest.mark.all
def test_a_registry_with_a_login(site: Site, tree: Path, daemon: str) -> None:
    source = "docker://registry.example/private/base:1.0"
    with running(Registry(login=f"me:{PASSWORD}")) as served:
        site.mirror(served.url)
        served.push("private/base", "1.0", bases.layer(tree))
        refused = site.build(source, "--engine", "docker")
        assert refused.returncode == 4
        assert "APPTAINER_DOCKER_USERNAME" in refused.stderr
        site.env["APPTAINER_DOCKER_USERNAME"] = "me"
        site.env["APPTAINER_DOCKER_PASSWORD"] = PASSWORD
        built = site.build(source, "--engine", "docker", "--verbose")
    assert built.returncode == 0, built.stdout + built.stderr
    assert asked(daemon).startswith("2.8.0+cpu ")
    kept = [path.read_text() for path in (site.output / "docker-image").iterdir()]
    output = run(["docker", "--host", daemon, "image", "inspect", IMAGE]).stdout
    assert kept
    assert not any(PASSWORD in text for text in (built.stdout, built.stderr, output, *kept))
