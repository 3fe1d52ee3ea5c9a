"""Images of engines: what is in them is written down and audited, and secrets stay out."""

from __future__ import annotations

import io
import json
import tarfile
from typing import TYPE_CHECKING

from tests.conftest import sifwright
from tests.unit import planted

if TYPE_CHECKING:
    from pathlib import Path

    from tests.system.docker.built_toys import DockerToy

_INSTALL = """
[[ $(<"$SIFWRIGHT_BUILD/secrets/key") == canary-of-a-secret ]]
cp -r files/. /
"""


def test_packages_are_listed_and_audited_and_no_secret_is_left(
    docker_toy: DockerToy, tmp_path: Path
) -> None:
    docker_toy.layer("plant", _INSTALL, header={"secrets": ["key"]})
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
    purls = {item.get("purl") for item in _read(folder / "sbom.cdx.json")["components"]}
    assert {
        "pkg:deb/debian/libexpat1@2.5.0-1?arch=amd64&distro=debian",
        "pkg:pypi/planted-py@1.2%2Bcpu",
    } <= purls
    (subject,) = _read(folder / "provenance.json")["subject"]
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


def _read(path: Path) -> dict[str, list[dict[str, dict[str, str]]]]:
    document: dict[str, list[dict[str, dict[str, str]]]] = json.loads(path.read_text())
    return document
