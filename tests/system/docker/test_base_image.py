"""Images on somebody else's, from wherever that is kept: inspected, built, tested, held to it."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING

import pytest

from tests.conftest import sifwright
from tests.registries import Registry, running
from tests.spread import spread
from tests.system.apptainer.trees import unpack
from tests.system.docker import bases
from tests.system.docker.base_sites import ENVIRONMENT, NOWHERE, Site
from tests.system.docker.bases import Layout
from tests.system.docker.conftest import require
from tests.system.docker.daemons import docker_engine, podman_service, registry

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.build

KINDS = ("docker", "oci", "oci-archive", "docker-archive", "docker-daemon", "podman")
DEFAULT_KINDS = ("docker", "oci-archive")
ASK = (
    "import os, torch; print(torch.__version__, torch.__file__, os.environ.get('NCCL_NET_PLUGIN'), "
)
ASK += "os.environ['KEPT'])"
# Files of a Python; digits of a sha256.
MANY, DIGITS = 300, 64
TORCH = "/usr/lib/python3/dist-packages/torch/__init__.py"


# ---- wherever it is kept --------------------------------------------------------------------


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory, layout: Layout) -> Iterator[str]:
    """Start Debian's registry with the image; return its address."""
    with registry(tmp_path_factory.mktemp("registry")) as address:
        layout.copy(f"docker://{address}/group/base:1.0")
        yield f"http://{address}"


@pytest.fixture(scope="session")
def daemon(tmp_path_factory: pytest.TempPathFactory, layout: Layout) -> Iterator[str]:
    """Start Docker Engine with the image; return the address of its socket."""
    with docker_engine(tmp_path_factory.mktemp("engine")) as address:
        layout.copy("docker-daemon:group/base:1.0", "--dest-daemon-host", address)
        yield address


@pytest.fixture(scope="session")
def podman(tmp_path_factory: pytest.TempPathFactory, layout: Layout) -> Iterator[str]:
    """Make the same with podman."""
    require("podman")
    with podman_service(tmp_path_factory.mktemp("podman")) as address:
        layout.copy("docker-daemon:group/base:1.0", "--dest-daemon-host", address)
        yield address


@pytest.fixture
def source(request: pytest.FixtureRequest, site: Site, layout: Layout, tmp_path: Path) -> str:
    """Return the same image, kept in the form that the test names."""
    kind = str(request.param)
    if kind == "oci":
        shutil.copytree(layout.folder, tmp_path / "oci")
        return f"oci:{tmp_path}/oci"
    if kind == "docker":
        site.mirror(request.getfixturevalue("server"))
        return "docker://registry.example/group/base:1.0"
    if engine := {"docker-daemon": "daemon", "podman": "podman"}.get(kind):
        site.env["DOCKER_HOST"] = request.getfixturevalue(engine)
        return "docker-daemon:group/base:1.0"
    return layout.copy(f"{kind}:{tmp_path}/base.tar")


@pytest.mark.builds("base-image", by="make test-all", depth="ran on CPUs")
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


@pytest.mark.all
def test_a_bundle_has_what_the_plan_needs_to_know(
    site: Site, tree: Path, engine: str, tmp_path: Path
) -> None:
    """Lock its torch and Python: no registry can be asked, and the tag has moved."""
    source, lock, tar = (
        "registry.example/group/base:1.0",
        tmp_path / "lock.toml",
        tmp_path / "b.tar",
    )
    with running(Registry()) as registry:
        registry.push("group/base", "1.0", bases.layer(tree))
        site.mirror(registry.url)
        locked = sifwright(*site.words("lock", source, "--file", str(lock)), env=site.env)
        assert locked.returncode == 0, locked.stderr
        words = ("local", "base-image", "--set", f"base-image.from={source}", "--lock", lock)
        bundled = sifwright("bundle", *words, "-o", tar, env=site.env)
        assert bundled.returncode == 0, bundled.stderr
    site.mirror(NOWHERE)
    site.env["SIFWRIGHT_CACHE"] = str(tmp_path / "empty")
    built = site.build(source, "--bundle", str(tar), "--offline")
    assert built.returncode == 0, built.stdout + built.stderr
    script = "import torch; print(torch.__version__)"
    assert site.ask(engine, "conda-python-simple", "-c", script) == "2.8.0+cpu"


# ---- which one it is ------------------------------------------------------------------------


@pytest.mark.all
def test_another_archive_of_that_name_is_another_image(
    site: Site, layout: Layout, tree: Path, engine: str, tmp_path: Path
) -> None:
    source = layout.copy(f"oci-archive:{tmp_path}/base.tar")
    assert site.build(source, "--quiet").returncode == 0
    (tmp_path / "base.tar").unlink()
    more = tmp_path / "more"
    (more / "opt").mkdir(parents=True)
    (more / "opt" / "word").write_text("second")
    Layout(folder=tmp_path / "second", environment=ENVIRONMENT).write(tree, more).copy(source)
    again = site.build(source)
    assert again.stdout.splitlines()[-2].startswith("built: "), again.stdout + again.stderr
    assert site.ask(engine, "cat", "/opt/word") == "second"


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
