"""One image, wherever it is: real programs put it there, and it is always found to be the same."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from sifwright.errors import MachineError, SifwrightError
from sifwright.images.sources import docker_engine as daemon
from sifwright.images.sources.inspect_image import facts_of
from sifwright.system.progress import QuietProgress
from tests.conftest import ROOT, run, sifwright
from tests.spread import spread
from tests.system.docker.daemons import LIMITS
from tests.system.docker.toys import ENVIRONMENT, FACTS, LOWER, UPPER, lay

if TYPE_CHECKING:
    from collections.abc import Callable

    from sifwright.images.contents.image_facts import ImageFacts

# Usual names of images, and the commands that put the image there.
COPIES = {
    "oci:{}/layout:toy": (),
    "oci-archive:{}/oci.tar:toy": (),
    "docker-archive:{}/docker.tar:toy:1": (),
    "docker://{host}/a/gzip:1": ("--dest-compress-format=gzip",),
    "docker://{host}/a/zstd:1": ("--dest-compress-format=zstd", "--dest-compress-level=1"),
    "docker://{host}/a/docker:1": ("--format=v2s2",),
}


class ImageCopies:
    """A folder with the image in it, and where it was copied to."""

    def __init__(self, folder: Path, host: str) -> None:
        self.folder, self.host = folder, host
        self.settings = os.environ | {"CONTAINERS_CONF": str(folder / "containers.conf")}
        (folder / "containers.conf").write_text(LIMITS)

    def run(self, *command: object) -> str:
        done = run(command, env=self.settings)
        assert done.returncode == 0, f"{command}: {done.stderr}"
        return done.stdout.strip()

    def buildah(self, *words: object) -> str:
        roots = ("--root", self.folder / "root", "--runroot", self.folder / "run")
        return self.run("buildah", *roots, *words)

    def name(self, template: str) -> str:
        return template.format(self.folder, host=self.host)

    def find_source(self, template: str) -> str:
        """Return the name that sifwright gets: this registry has no TLS."""
        return self.name(template).replace("docker://", "http://")


def _build(copies: ImageCopies) -> None:
    """Build two layers by buildah, the upper one with whiteouts, as an OCI layout."""
    lay(copies.folder / "lower", LOWER)
    lower = copies.buildah("from", "scratch")
    copies.buildah("add", "-q", lower, copies.folder / "lower", "/")
    copies.buildah("commit", "-q", lower, "toy:lower")
    upper = copies.buildah("from", "toy:lower")
    mounted = copies.buildah("mount", upper)
    lay(Path(mounted), UPPER)
    copies.buildah("umount", upper)
    env = [word for name, text in ENVIRONMENT.items() for word in ("--env", f"{name}={text}")]
    label = next(f"{name}={text}" for name, text in FACTS.labels.items())
    copies.buildah("config", *env, "--user", "1000", "--label", label, upper)
    copies.buildah("commit", "-q", upper, "toy:1")
    copies.buildah("push", "-q", "toy:1", f"oci:{copies.folder}/layout:toy")


@pytest.fixture(scope="module")
def copies(loopback_registry: str, tmp_path_factory: pytest.TempPathFactory) -> ImageCopies:
    result = ImageCopies(tmp_path_factory.mktemp("inspect"), loopback_registry)
    _build(result)
    source = f"oci:{result.folder}/layout:toy"
    for template, options in COPIES.items():
        if template != "oci:{}/layout:toy":
            target = result.name(template)
            result.run("skopeo", "copy", "--dest-tls-verify=false", *options, source, target)
    return result


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SIFWRIGHT_CACHE", str(tmp_path / "cache"))


def facts(name: str, processor: str = "x86_64") -> ImageFacts:
    return facts_of(name, processor=processor, progress=QuietProgress())


def bare(image_facts: ImageFacts) -> ImageFacts:
    """Return the facts that do not depend on the source."""
    assert image_facts.bytes > 0
    assert image_facts.digest.startswith("sha256:")
    labels = {name: text for name, text in image_facts.labels.items() if "buildah" not in name}
    return replace(image_facts, source="", digest="", bytes=0, labels=labels)


@pytest.mark.parametrize("template", COPIES)
def test_the_same_image_everywhere(copies: ImageCopies, template: str) -> None:
    values = facts(copies.find_source(template))
    assert bare(values) == FACTS
    assert values.source == copies.find_source(template)


def test_the_digest_is_the_manifest_s(copies: ImageCopies) -> None:
    name = copies.name("docker://{host}/a/gzip:1")
    told = copies.run("skopeo", "inspect", "--tls-verify=false", "--format={{.Digest}}", name)
    values = facts(copies.find_source("docker://{host}/a/gzip:1"))
    assert values.digest == told
    assert facts(f"{copies.find_source('docker://{host}/a/gzip')}@{told}").digest == told


@pytest.mark.parametrize("name", spread(["docker", "podman"], ["docker"]))
def test_an_engine(
    copies: ImageCopies,
    engines: Callable[[str], str],
    name: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("DOCKER_HOST", engines(name))
    with daemon.connected("toy:1") as client:
        list(client.load_image((copies.folder / "docker.tar").read_bytes()))
        tagged = next(image["Id"] for image in client.images() if "toy:1'" in str(image))
    assert bare(facts("docker-daemon:toy:1")) == FACTS
    digest = facts("docker-daemon:toy:1").digest
    assert digest.removeprefix("sha256:") == tagged.removeprefix("sha256:")
    with pytest.raises(SifwrightError, match="the engine has no such image"):
        facts("docker-daemon:toy:2")
    with pytest.raises(SifwrightError, match="not for aarch64"):
        facts("docker-daemon:toy:1", "aarch64")


def test_no_engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/none.sock")
    with pytest.raises(MachineError, match="there is no such socket"):
        facts("docker-daemon:toy:1")


def test_a_sif_made_of_it(copies: ImageCopies, engine: str, tmp_path: Path) -> None:
    sif, tree = tmp_path / "toy.sif", copies.name("docker-archive:{}/docker.tar")
    copies.run(engine, "build", "--fakeroot", sif, tree)
    image_facts = bare(facts(str(sif)))
    assert image_facts.environment.items() >= ENVIRONMENT.items()
    assert image_facts.labels.items() >= FACTS.labels.items()
    # A SIF has no user.
    assert replace(image_facts, environment=ENVIRONMENT, labels=FACTS.labels, user="1000") == FACTS


def test_a_mirror(copies: ImageCopies, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rules = {"oci": {"docker.io/someone": f"http://{copies.host}/a"}}
    (tmp_path / "mirrors.yaml").write_text(json.dumps(rules))
    monkeypatch.setenv("SIFWRIGHT_MIRRORS", str(tmp_path / "mirrors.yaml"))
    assert bare(facts("docker://someone/gzip:1")) == FACTS


@pytest.mark.all
@pytest.mark.image
def test_our_own_image_says_the_same_when_it_runs(image: Path, engine: str) -> None:
    image_facts = facts(str(image))
    script = (
        "import json,os,platform,sys,torch; print(json.dumps([sys.prefix, os.environ['PATH'],"
        " '.'.join(map(str, sys.version_info[:2])), torch.__version__, torch.version.cuda,"
        " platform.freedesktop_os_release()['VERSION_ID'], ' '.join(platform.libc_ver())]))"
    )
    done = run([engine, "exec", "--cleanenv", image, "python", "-c", script])
    first = image_facts.pythons[0]
    assert first.torch is not None
    message: list[object] = [
        first.prefix,
        image_facts.environment["PATH"],
        first.version,
        first.torch.version,
    ]
    message += [first.torch.cuda or None, image_facts.os_version, image_facts.libc]
    assert message == json.loads(done.stdout), done.stderr


def test_the_command(copies: ImageCopies) -> None:
    name = copies.name("docker-archive:{}/docker.tar")
    done = sifwright("inspect", name)
    assert done.returncode == 0, done.stderr
    last = "as a base    a plan on it uses /opt/conda/bin/python 3.12 and its torch 2.8.0+cu126"
    assert done.stdout.splitlines()[-1] == last
    told = sifwright("inspect", name, "--json")
    assert told.stderr == ""
    assert json.loads(told.stdout) == json.loads(json.dumps(asdict(facts(name))))
    other = sifwright("inspect", name, "--processor", "aarch64", cwd=ROOT)
    assert other.returncode == 2
    assert "not for aarch64 (linux/arm64)" in other.stderr
