"""Docker Engine and podman build what Apptainer builds: the tree, the metadata, the record."""

from __future__ import annotations

import io
import json
import os
import re
import sys
import tarfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.conftest import run, sifwright
from tests.system.apptainer.steps import DESCRIBE, TIME, Tree, differences
from tests.system.apptainer.wholes import whole
from tests.system.docker.built_toys import SECOND, SEEN
from tests.system.docker.daemons import COPIES
from tests.unit import planted

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.system.docker.built_toys import DockerToy

pytestmark = pytest.mark.build

SECRET = "planted-4711"  # noqa: S105
BELOW = "data"
PLANT = """
[[ $(<"$SIFWRIGHT_BUILD/secrets/key") == canary-of-a-secret ]]
cp -r files/. /
"""
OF_A_BUILD = {"built", "engine", "seconds", "own_seconds", "timeline", "sif_bytes", "files"}
OF_A_BUILD |= {"record_sha256"}
OF_A_BUILD |= {"sif_fingerprint", "sif_parts"}


def inspected(engine: str, sif: Path) -> Any:
    """Return the whole output of Apptainer about a SIF, but for the time of its build."""
    text = run([engine, "inspect", "--all", sif]).stdout
    document = json.loads(text)
    assert document["data"]["attributes"]["labels"].pop("org.label-schema.build-date")
    return document


def recorded(toy: DockerToy) -> dict[str, Any]:
    """Return the record of a SIF without the values that differ between builds, and the names of
    proofs.
    """
    document: dict[str, Any] = json.loads((toy.output / "record.json").read_text())
    document.pop("steps", "")
    document["proofs"] = list(document["proofs"])
    return {name: "" if name in OF_A_BUILD else value for name, value in document.items()}


def below(tree: Tree) -> Tree:
    """Return the part of a tree that is the image's own, without times."""
    return {
        path: [*node[:TIME], *node[TIME + 1 :]]
        for path, node in tree.items()
        if path.startswith(f"{BELOW}/")
    }


@pytest.fixture(
    params=[
        pytest.param("docker", marks=pytest.mark.smoke),
        pytest.param("podman", marks=pytest.mark.all),
    ]
)
def either_toy(toy_by: Callable[[str], DockerToy], request: pytest.FixtureRequest) -> DockerToy:
    return toy_by(request.param)


def test_engines_build_the_same(engine: str, either_toy: DockerToy, tmp_path: Path) -> None:
    toy = either_toy
    done = toy.docker("--format", "sif")
    assert done.returncode == 0, done.stdout + done.stderr
    # Podman's folder for copies, beside its socket.
    assert not [*Path(os.environ["DOCKER_HOST"].removeprefix("unix://")).parent.glob(f"{COPIES}/*")]
    by_docker, says = whole(toy.sif, tmp_path / "one", ""), inspected(engine, toy.sif)
    record = recorded(toy)
    done = toy.build("--force")
    assert done.returncode == 0, done.stdout + done.stderr
    by_apptainer = whole(toy.sif, tmp_path / "two", "")
    assert by_docker["hard links"] == [["./data/again", "./data/one"]]
    assert "security.capability" in by_docker["data/capable"][-1]
    assert differences(by_apptainer, by_docker) == {}
    assert inspected(engine, toy.sif) == says
    assert recorded(toy) == record
    # Steps for a SIF write its epoch, steps for an image do not.
    assert toy.states()["second"] == "done"
    assert toy.printed("cat", f"/{BELOW}/seen") == SEEN
    seen = json.loads(toy.printed("python3", "-c", DESCRIBE, f"/{BELOW}"))
    seen.pop(".")
    image = {f"{BELOW}/{path}": node for path, node in seen.items()}
    assert differences(below(by_apptainer), below(image)) == {}
    assert toy.containers() == []


def test_the_image_is_configured_for_its_users(either_toy: DockerToy) -> None:
    toy = either_toy
    toy.states()
    config = toy.config()
    env = dict(line.split("=", 1) for line in config["Env"])
    assert env == {
        "BASE": "of the base",
        "TOY": "a 'b' \"c\" $d \\e",
        "PATH": "/data/bin:/odd:/usr/sbin:/usr/bin",
        "HOME": "/tmp",
    }
    assert (config["User"], config["Cmd"]) == ("1000:1000", ["bash"])
    assert not config["Entrypoint"]
    assert config["Labels"]["org.sifwright.site"] == toy.site
    assert toy.printed("id", "-u", user="") == "1000\n"


@pytest.mark.all
@pytest.mark.parametrize("layout", ["layered", "flat"])
def test_two_builds_of_a_sif_are_the_same_bytes(docker_toy: DockerToy, layout: str) -> None:
    """Build again in other containers, with another umask, on one core."""
    images = []
    for umask, core in (("022", "0-1"), ("077", "0")):
        words = ["bash", "-c", 'umask "$0"; exec taskset -c "$1" "${@:2}"', umask, core]
        options = ("--engine", "docker", "--format", "sif", "--layout", layout, "--no-cache")
        program = [sys.executable, "-m", "sifwright"]
        built = run([*words, *program, *docker_toy.command(*options, "--force")])
        assert built.returncode == 0, built.stdout + built.stderr
        images.append(docker_toy.sif.read_bytes())
    assert images[0] == images[1]


def test_an_edit_runs_what_comes_after_it(docker_toy: DockerToy) -> None:
    first = docker_toy.states()
    assert {first[name] for name in ("base-local", "first", "second")} == {"done"}
    assert docker_toy.states() == {}
    before = docker_toy.record
    assert before["image_id"] == docker_toy.id()
    assert before["engine"].startswith("Docker Engine ")
    last = docker_toy.history()[2]["Comment"]
    assert re.fullmatch("sifwright: layer second, step [0-9a-f]{64}", last)
    assert docker_toy.states("--force")["second"] == "cached"
    docker_toy.layer("second", f"{SECOND}printf 2 >/data/edit\n")
    again = docker_toy.states()
    assert (again["first"], again["second"]) == ("cached", "done")
    assert docker_toy.record["image_id"] == docker_toy.id() != before["image_id"]


@pytest.mark.all
def test_without_the_cache_nothing_is_kept(docker_toy: DockerToy) -> None:
    named = len(docker_toy.api.images("sifwright/step"))
    docker_toy.states("--no-cache")
    assert docker_toy.id()
    assert len(docker_toy.api.images("sifwright/step")) == named


@pytest.mark.all
def test_images_lost_from_the_engine_are_made_again(docker_toy: DockerToy) -> None:
    docker_toy.states()
    docker_toy.api.remove_image(docker_toy.name)
    assert docker_toy.states()["publish"] == "done"
    assert docker_toy.id()


@pytest.mark.all
def test_the_steps_have_the_machine_and_the_image_has_nothing_of_it(
    docker_toy: DockerToy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "wheels").mkdir()
    (tmp_path / "wheels" / SECRET).touch()
    bundle = tmp_path / "ca.crt"
    bundle.write_text(f"# {SECRET}\n")
    for name, value in {
        "PIP_INDEX_URL": f"http://user:{SECRET}@127.0.0.1:9/simple",
        "PIP_FIND_LINKS": str(tmp_path / "wheels"),
        "SSL_CERT_FILE": str(bundle),
        "https_proxy": f"http://user:{SECRET}@127.0.0.1:9",
        "no_proxy": "127.0.0.1",
    }.items():
        monkeypatch.setenv(name, value)
    docker_toy.layer(
        "second",
        f"""{SECOND}[[ $https_proxy == *{SECRET[:-1]}* ]]
[[ $PIP_INDEX_URL == http://127.0.0.1:9/simple ]] # its login is in the file for logins
grep -q {SECRET[:-1]} "$NETRC"
ls "${{PIP_FIND_LINKS#file://}}" | grep -q {SECRET[:-1]}
grep -q {SECRET[:-1]} "$SSL_CERT_FILE"
cp "$SIFWRIGHT_BUILD/machine/environment" "$SIFWRIGHT_BUILD/kept/secret"
""",
    )
    docker_toy.layer("third", f'grep -q {SECRET[:-1]} "$SIFWRIGHT_BUILD/kept/secret"\n')
    docker_toy.image("first", "second", "third")
    docker_toy.states()
    api, secret = docker_toy.api, SECRET.encode()
    assert secret not in b"".join(api.get_image(docker_toy.name))
    assert SECRET not in json.dumps([docker_toy.config(), docker_toy.history()])
    written = [path for path in docker_toy.output.rglob("*") if path.is_file()]
    assert len(written) >= 4
    assert [path for path in written if secret in path.read_bytes()] == []
    assert docker_toy.containers() == []


@pytest.mark.all
def test_the_images_of_a_matrix(docker_toy: DockerToy) -> None:
    """Make one image for each value, under a name that ends with the value."""
    option = {"type": "integer", "description": "a number", "default": 0}
    script = 'echo "$OPT_COUNT" >/opt/count\n'
    docker_toy.layer("number", script, header={"options": {"count": option}})
    docker_toy.image("number")
    done = docker_toy.docker("--matrix", "number.count=1,2")
    assert done.returncode == 0, done.stderr
    for value in "12":
        (image,) = docker_toy.api.images(f"{docker_toy.name}-{value}")
        record = docker_toy.output.with_name(f"toy@{value}") / "docker-image/record.json"
        assert json.loads(record.read_text())["image_id"] == image["Id"]
        assert docker_toy.printed("cat", "/opt/count", image=image["Id"]) == f"{value}\n"


def test_packages_are_listed_and_audited_and_no_secret_is_left(
    docker_toy: DockerToy, tmp_path: Path
) -> None:
    docker_toy.layer("plant", PLANT, header={"secrets": ["key"]})
    for name, data in planted.files("debian").items():
        path = docker_toy.folder / "defs/layers/plant/files" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    docker_toy.image("plant")
    (tmp_path / "key").write_text("canary-of-a-secret")
    given = ["--engine", "docker", "--secret", f"id=key,src={tmp_path}/key"]
    done = docker_toy.build(*given)
    assert done.returncode == 0, done.stderr
    folder = docker_toy.output / "docker-image"
    purls = {item.get("purl") for item in read(folder / "sbom.cdx.json")["components"]}
    assert {
        "pkg:deb/debian/libexpat1@2.5.0-1?arch=amd64&distro=debian",
        "pkg:pypi/planted-py@1.2%2Bcpu",
    } <= purls
    (subject,) = read(folder / "provenance.json")["subject"]
    image = f"sha256:{subject['digest']['sha256']}"
    assert image == docker_toy.record["image_id"]
    audit = sifwright(
        *("audit", f"docker-daemon:{docker_toy.name}", "--json"),
        *("--data", str(planted.data(tmp_path / "data"))),
    )
    rules = [item["rule"] for item in json.loads(audit.stdout)["findings"]]
    assert rules == ["security-update", "vulnerability", "yanked"], audit.stderr
    saved = b"".join(docker_toy.api.get_image(image))
    assert b"canary-of-a-secret" not in saved
    with tarfile.open(fileobj=io.BytesIO(saved)) as archive:
        assert any(name.endswith("layer.tar") or "/sha256/" in name for name in archive.getnames())
    assert not any(b"canary-of" in path.read_bytes() for path in folder.iterdir() if path.is_file())


def read(path: Path) -> dict[str, list[dict[str, dict[str, str]]]]:
    document: dict[str, list[dict[str, dict[str, str]]]] = json.loads(path.read_text())
    return document
