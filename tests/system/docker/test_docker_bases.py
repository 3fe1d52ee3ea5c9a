"""Docker Engine builds on an image that it has, and on an archive; a Dockerfile on the first."""

from __future__ import annotations

import gzip
import io
import json
import lzma
import os
import re
import shlex
import tarfile
from contextlib import closing
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from sifwright.errors import MachineError
from sifwright.host.engines import docker
from sifwright.make_image.docker import image_archives
from sifwright.render.oci_config import Local
from tests.conftest import run, sifwright
from tests.spread import spread
from tests.system.apptainer.steps import make_root
from tests.system.docker.bases import Layout

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.system.docker.built_toys import DockerToy

pytestmark = pytest.mark.build

NAME = "group/base"


@pytest.fixture
def own(docker_toy: DockerToy, tiny_image: str) -> str:
    """Return the id of an image that the engine has, with a name of its own."""
    repository, _, tag = tiny_image.rpartition(":")
    docker_toy.api.pull(repository, tag=tag)
    docker_toy.api.tag(tiny_image, NAME, "1")
    result: str = docker_toy.api.inspect_image(f"{NAME}:1")["Id"]  # type: ignore[no-untyped-call]
    return result


def start(toy: DockerToy, kind: str, name: object) -> None:
    toy.start_from(kind, name)
    toy.image("first")


def rendered(toy: DockerToy) -> tuple[int, str]:
    words = ("render", toy.site, "toy", "--format", "dockerfile", "--output", "-")
    done = sifwright("--project", toy.folder, *words)
    return done.returncode, done.stdout + done.stderr


def test_an_image_of_the_engine(docker_toy: DockerToy, own: str) -> None:
    start(docker_toy, "docker-daemon", f"{NAME}:1")
    assert docker_toy.states()["first"] == "done"
    assert "BASE=of the base" in docker_toy.config()["Env"]
    status, message = rendered(docker_toy)
    assert (status, f"FROM {own}\n" in message) == (0, True)
    start(docker_toy, "docker-daemon", f"{NAME}:2")
    done = docker_toy.docker()
    assert done.returncode == 5, done.stderr
    assert f"{NAME}:2: Docker Engine" in done.stderr


@pytest.mark.all
def test_an_archive(docker_toy: DockerToy, own: str, tmp_path: Path) -> None:
    archive = tmp_path / "base.tar"
    archive.write_bytes(b"".join(docker_toy.api.get_image(f"{NAME}:1")))
    docker_toy.api.remove_image(f"{NAME}:1")
    start(docker_toy, "docker-archive", archive)
    assert docker_toy.states()["first"] == "done"
    assert docker_toy.api.images(NAME) == [], "no name of the archive's is given"
    assert f"FROM {own}\n" in (docker_toy.output / "docker-image/Dockerfile").read_text()
    status, message = rendered(docker_toy)
    assert status == 4
    assert f"skopeo copy docker-archive:{archive} docker-daemon:" in message
    archive.write_bytes(b"no archive")
    done = docker_toy.docker()
    assert done.returncode == 5
    assert f"{archive}: it cannot be read as docker-archive" in done.stderr


@pytest.mark.all
@pytest.mark.parametrize("name", spread(["docker", "podman"], ["docker"]))
@pytest.mark.parametrize("kind", spread(["oci", "oci-archive"], ["oci"], ["oci-archive"]))
def test_a_layout(toy_by: Callable[[str], DockerToy], kind: str, name: str) -> None:
    """Use packed layers, as skopeo leaves them; Docker Engine 20.10 itself cannot load them."""
    docker_toy = toy_by(name)
    folder = docker_toy.folder
    (folder / "more").mkdir()
    (folder / "more" / "one").write_text("one")
    layout = Layout(folder=folder / "written", environment={"BASE": "of the base"})
    layout.write(make_root(folder / "root"), folder / "more")
    path = folder / ("base.tar" if kind == "oci-archive" else "base")
    layout.copy(f"{kind}:{path}", "--dest-compress")
    docker_toy.layer("second", 'test "$(cat /one)" = one\n', test="true\n")
    start(docker_toy, kind, path)
    docker_toy.image("first", "second")
    assert docker_toy.states()["first"] == "done"
    assert "BASE=of the base" in docker_toy.config()["Env"]
    assert docker_toy.states("--force")["first"] == "cached"
    status, message = rendered(docker_toy)
    assert (status, f"skopeo copy {kind}:{path} docker-daemon:" in message) == (4, True)
    # The advised command copies into the engine that was asked, Docker or podman.
    advised = message[message.index("skopeo copy") :].partition(", and name")[0]
    copied = f"group/{kind}:1"
    done = run(shlex.split(advised.replace("NAME:TAG", copied)))
    assert done.returncode == 0, done.stderr
    start(docker_toy, "docker-daemon", copied)
    status, message = rendered(docker_toy)
    assert (status, "FROM sha256:" in message) == (0, True)


def _other_byte(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


def _pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


HARMS: dict[Callable[[Path], None], str] = {
    Path.unlink: "",
    _other_byte: "has the digest sha256:",
    _pipe: "is no file",
}


@pytest.mark.all
@pytest.mark.parametrize("combine", spread([zip, product], [zip]))
def test_a_layout_that_is_none(
    docker_toy: DockerToy, tmp_path: Path, combine: type[zip[Any] | product[Any]]
) -> None:
    """Harm each file once and do each harm once; at night, each to each."""
    layout = Layout(folder=tmp_path / "base").write(make_root(tmp_path / "root"))
    start(docker_toy, "oci", layout.folder)
    assert docker_toy.docker().returncode == 0
    before = docker_toy.id()
    blobs = sorted((layout.folder / "blobs/sha256").iterdir(), key=lambda path: path.stat().st_size)
    config, manifest, layer = blobs
    index = json.loads((layout.folder / "index.json").read_text())
    for path, (harm, message) in combine((layer, config, manifest), HARMS.items()):
        kept = path.read_bytes()
        harm(path)
        index["once"] = index.get("once", 0) + 1  # or what was loaded before is taken
        (layout.folder / "index.json").write_text(json.dumps(index))
        done = docker_toy.docker(timeout=240)
        assert done.returncode == MachineError.exit_code, done.stderr
        assert f"{layout.folder}: it cannot be read as oci: " in done.stderr
        assert re.search(message, done.stderr), done.stderr
        path.unlink(missing_ok=True)
        path.write_bytes(kept)
    assert docker_toy.id() == before


@pytest.mark.all
def test_a_layout_with_two_images(docker_toy: DockerToy, tmp_path: Path) -> None:
    layout = Layout(folder=tmp_path / "one").write(make_root(tmp_path / "root"))
    for name in ("a", "b"):
        layout.copy(f"oci:{tmp_path / 'two'}:{name}")
    start(docker_toy, "oci", tmp_path / "two")
    done = docker_toy.docker()
    assert done.returncode == MachineError.exit_code
    assert "it has 2 images: a, b\n    Take one out, 'skopeo copy " in done.stderr


@pytest.mark.all
@pytest.mark.parametrize("name", spread(["docker", "podman"], ["docker"]))
def test_a_layout_packed_with_zstd(
    toy_by: Callable[[str], DockerToy], name: str, tmp_path: Path
) -> None:
    """Load it here: Docker Engine 20.10 calls it no tar archive."""
    docker_toy = toy_by(name)
    layout = Layout(folder=tmp_path / "one").write(make_root(tmp_path / "root"))
    layout.copy(f"oci:{tmp_path / 'zstd'}", "--dest-compress-format=zstd")
    docker_toy.layer("first", "true\n")
    docker_toy.layer("second", "true\n", test="true\n")
    start(docker_toy, "oci", tmp_path / "zstd")
    docker_toy.image("first", "second")
    done = docker_toy.docker()
    if name == "podman" or int(docker_toy.api.version()["Version"].split(".")[0]) >= 23:
        assert done.returncode == 0, done.stderr
        return
    assert done.returncode == MachineError.exit_code
    assert "does not unpack zstd\n    Pack it with gzip: " in done.stderr


def _archive(manifest: bytes) -> bytes:
    """Make an archive, also of an image that cannot be packed, to cut a part off."""
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w") as archive:
        for name, text in (("manifest.json", manifest), ("noise", os.urandom(300_000))):
            entry = tarfile.TarInfo(name)
            entry.size = len(text)
            archive.addfile(entry, io.BytesIO(text))
    return data.getvalue()


WHOLE = _archive(json.dumps([{"Config": "x.json", "Layers": []}]).encode())
PACKED = gzip.compress(WHOLE)
DAMAGED = {
    "cut off": WHOLE[:200_000],
    "gzip, cut off": PACKED[:200_000],
    "gzip, other bytes": PACKED[:1000] + bytes(5000) + PACKED[6000:],
    "gzip, another sum": PACKED[:-8] + bytes(8),
    "xz, other bytes": lzma.compress(WHOLE)[:1000] + bytes(5000),
    "a list of no images": _archive(b"[1]"),
    "no list": _archive(b"{}"),
    "two images": _archive(b"[{}, {}]"),
    "deep": _archive(b"[" * 100_000),
    "no image": WHOLE,
    "empty": b"",
}


@pytest.mark.usefixtures("docker_toy")
@pytest.mark.parametrize("case", DAMAGED)
def test_an_archive_that_is_damaged(tmp_path: Path, case: str) -> None:
    """Report the archive, not a lost engine."""
    archive = tmp_path / "base.tar"
    archive.write_bytes(DAMAGED[case])
    engine = docker.find()
    with closing(engine.api), pytest.raises(MachineError) as caught:
        image_archives.load(engine, Local(kind="docker-archive", name=str(archive)))
    (problem,) = caught.value.problems
    assert problem.where == str(archive)
    assert problem.what.startswith("it cannot be read as docker-archive: ")
    assert "docker save" in problem.fix


@pytest.mark.parametrize("path", ["/dev/zero", "pipe", "none"])
def test_an_archive_that_is_no_file(docker_toy: DockerToy, tmp_path: Path, path: str) -> None:
    os.mkfifo(tmp_path / "pipe")
    start(docker_toy, "docker-archive", tmp_path / path)
    done = docker_toy.docker(timeout=240)
    assert done.returncode == MachineError.exit_code
    assert f"{tmp_path / path}: " in done.stderr
