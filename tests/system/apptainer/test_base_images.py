"""Images on an image of a registry: asked for before, built by digest, held to it later."""

from __future__ import annotations

import io
import json
import shutil
import tarfile
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from tests.conftest import sifwright
from tests.registries import Registry, running
from tests.system.apptainer.toys import Toy, make_toy, succeeded
from tests.system.apptainer.trees import unpack

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Iterator
    from pathlib import Path

NAME = "registry.example/group/base"
IMAGE = {"type": "string", "description": "Image to start from", "default": f"{NAME}:1.0"}


@pytest.fixture(scope="session")
def root(engine: str, tiny_base: Path, tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """Return the tree of the tiny base, as the one layer of an image."""
    folder = tmp_path_factory.mktemp("root")
    tree = unpack(engine, tiny_base, folder)
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w") as tar:
        tar.add(tree, arcname=".")
    return data.getvalue()


@dataclass(kw_only=True)
class Site:
    """A toy on an image of a registry without TLS, which a mirrors file leads to."""

    toy: Toy
    registry: Registry
    root: bytes
    mirrors: Path

    def push(self, tag: str = "1.0", *, word: str = "") -> str:
        """Push the tiny base, with one more file if there is a word."""
        data = io.BytesIO(self.root)
        if word:
            with tarfile.open(fileobj=data, mode="a") as tar:
                entry = tarfile.TarInfo("./word")
                entry.size = len(word)
                tar.addfile(entry, io.BytesIO(word.encode()))
        return self.registry.push("group/base", tag, data.getvalue())

    def build(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return self.toy.build(*arguments)

    def run(self, *words: object) -> subprocess.CompletedProcess[str]:
        return sifwright("--project", self.toy.folder, *words)

    def text(self, name: str) -> str:
        return (self.toy.output / name).read_text()


@pytest.fixture
def site(root: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    toy = make_toy(tmp_path / "project", tmp_path / "unused")
    lines = {"Bootstrap": "docker", "From": {"option": "image"}}
    header = {"bootstrap": lines, "options": {"image": IMAGE}, "provides": ["base"]}
    toy.layer("base-local", "true\n", header=header)
    toy.layer("hello", "echo hello >/hello\n")
    toy.image("hello")
    with running(Registry()) as registry:
        mirrors = tmp_path / "mirrors.yaml"
        monkeypatch.setenv("SIFWRIGHT_MIRRORS", str(mirrors))
        # The engine's own cache knows layers by their digest, and would not ask for them again.
        monkeypatch.setenv("APPTAINER_CACHEDIR", str(tmp_path / "cache"))
        mirrors.write_text(json.dumps({"oci": {"registry.example": registry.url}}))
        yield Site(toy=toy, registry=registry, root=root, mirrors=mirrors)


def test_the_digest_asked_for_is_built_until_a_new_one_is_accepted(site: Site, engine: str) -> None:
    digest = site.push(word="first")
    succeeded(site.build())
    assert site.toy.execute(engine, "cat", "/word", "/hello") == "firsthello\n"
    assert f"\nFrom: {site.registry.host}/group/base@{digest}\n" in site.text("recipe/toy.def")
    record = json.loads(site.text("record.json"))
    used = {"layer": "base-local", "source": "From", "ref": f"{NAME}:1.0", "digest": digest}
    assert record["sources"] == [used]
    assert json.loads(site.text("pins.json")) == {f"base-local From {NAME}:1.0": digest}
    # The engine asked for the digest only: the tag may have moved in between.
    asked = [line for line in site.registry.asked if line.endswith("/manifests/1.0")]
    assert {line.split()[0] for line in asked} == {"HEAD"}
    before = len(site.registry.asked)
    assert "up to date" in site.build().stdout
    assert len(site.registry.asked) == before
    image = site.toy.sif.read_bytes()
    second = site.push(word="second")
    refused = site.build("--force")
    assert refused.returncode == 6
    assert f"layer 'base-local': {NAME}:1.0 is not what it was" in refused.stderr
    assert f"expected: {digest}\n    found:    {second}" in refused.stderr
    assert site.toy.sif.read_bytes() == image
    (site.toy.output / "pins.json").unlink()
    assert site.build("--quiet", "--force").returncode == 0
    assert site.toy.execute(engine, "cat", "/word") == "second"
    # Its digest still names the first one.
    assert site.build("--quiet", "--set", f"base-local.image={NAME}@{digest}").returncode == 0
    assert site.toy.execute(engine, "cat", "/word") == "first"


def test_no_such_tag(site: Site) -> None:
    site.push("1.0")
    failed = site.build("--set", f"base-local.image={NAME}:1.1")
    assert failed.returncode == 5
    expected = (
        f"layer 'base-local': the base image {NAME}:1.1 cannot be fetched"
        f" (asked: {site.registry.host}/group/base:1.1): there is no 1.1. Did you mean '1.0'?"
    )
    assert expected in failed.stderr
    assert not site.toy.output.exists()


def test_without_the_registry_a_later_layer_is_built(site: Site, engine: str) -> None:
    """Build on the base image as it was, also after the image has changed."""
    digest = site.push(word="kept")
    assert site.build().returncode == 0
    site.mirrors.write_text(json.dumps({"oci": {"registry.example": "http://127.0.0.1:9"}}))
    site.toy.layer("hello", "echo edited >/hello\n")
    for folder in (site.toy.output, None):
        if folder is None:
            shutil.rmtree(site.toy.output)
        built = succeeded(site.build("--force"))
        assert f"is taken as it was, {digest}: " in built.stdout
        assert site.toy.execute(engine, "cat", "/word", "/hello") == "keptedited\n"


def test_a_registry_that_gives_another_layer(site: Site) -> None:
    """Publish nothing: the image's digest covers the layer, so the engine refuses it."""
    site.push()
    blobs = site.registry.blobs
    largest = max(blobs, key=lambda name: len(blobs[name]))
    data = bytearray(blobs[largest])
    data[len(data) // 2] ^= 1
    blobs[largest] = bytes(data)
    failed = site.build("--no-cache")  # another test may have left what it would use
    assert failed.returncode == 6
    assert not site.toy.sif.exists()
    assert not (site.toy.output / "pins.json").exists()


def test_a_lock_holds_the_image_whatever_its_tag(
    site: Site, engine: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    locked = site.push(word="locked")
    lock = ("lock", "local", "toy", "--output", site.toy.folder / "build")
    succeeded(site.run(*lock))
    moved = site.push(word="moved")
    monkeypatch.setenv("SIFWRIGHT_CACHE", str(tmp_path / "empty"))
    succeeded(site.build("--locked"))
    assert site.toy.execute(engine, "cat", "/word") == "locked"
    image = site.toy.sif.read_bytes()

    # Its record names the lock, which is enough to build it again.
    again = succeeded(site.run("verify", site.toy.sif, "--rebuild"))
    digest = json.loads(site.text("record.json"))["lock"][:12]
    assert f"another build from the lock {digest} gives the same bytes" in again.stdout

    del site.registry.manifests["group/base"][locked]
    monkeypatch.setenv("SIFWRIGHT_CACHE", str(tmp_path / "other"))
    refused = site.build("--locked", "--force")
    assert refused.returncode == 6, refused.stdout + refused.stderr
    assert f"group/base@{locked}" in refused.stderr
    assert site.toy.sif.read_bytes() == image

    refused = site.run(*lock)
    assert refused.returncode == 6
    assert f"expected: {locked}\n    found:    {moved}" in refused.stderr
    assert "sifwright lock SITE IMAGE --update base" in refused.stderr

    updated = succeeded(site.run(*lock, "--update", "base"))
    assert f"base digest: {locked} -> {moved}" in updated.stdout.splitlines()
    assert list(json.loads(site.text("pins.json")).values()) == [moved]
    assert site.run(*lock).returncode == 0
    assert site.build("--locked").returncode == 0
    assert site.toy.execute(engine, "cat", "/word") == "moved"


def test_a_bundle_has_the_base_image(
    site: Site, engine: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Lock the digest of an index of images for several processors, the usual case."""
    site.push(word="locked")
    succeeded(site.run("lock", "local", "toy", "--output", site.toy.folder / "build"))
    succeeded(site.run("bundle", "local", "toy", "-o", tmp_path / "b.tar"))
    site.registry.manifests.clear()
    site.registry.blobs.clear()
    # Also from the cache alone.
    succeeded(site.build("--locked", "--offline"))
    image = site.toy.sif.read_bytes()
    monkeypatch.setenv("SIFWRIGHT_CACHE", str(tmp_path / "empty"))
    succeeded(site.build("--bundle", str(tmp_path / "b.tar"), "--offline", "--force"))
    assert site.toy.execute(engine, "cat", "/word") == "locked"
    assert site.toy.sif.read_bytes() == image
