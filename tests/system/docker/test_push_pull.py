"""`sifwright push` and `pull` with Debian's registry; Apptainer reads what was pushed whole."""

from __future__ import annotations

import json
import random
import re
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from sifwright.catalog.model import LayerFile
from tests.conftest import run, sifwright
from tests.system.apptainer.toy_sif import toy_sif
from tests.unit.sifs import squashfs_of
from tests.unit.two_layers import two_layers

if TYPE_CHECKING:
    import subprocess
    from pathlib import Path

NOISE = random.Random(3)  # noqa: S311  # data for tests
# A definition file as long as that of a real image.
DEFINITION = b"".join(b"    line %d of the definition file\n" % number for number in range(6000))


def _push(sif: Path, name: str, *words: str) -> int:
    """Return how many bytes a push sent."""
    done = sifwright("push", sif, name, "--no-https", *words)
    assert done.returncode == 0, done.stderr
    (count,) = re.findall(r"\((\d+) bytes sent", done.stdout)
    return int(count)


def _pull(name: str, target: Path) -> subprocess.CompletedProcess[str]:
    return sifwright("pull", name, target, "--no-https")


def test_an_edit_of_the_last_layer_moves_that_layer(loopback_registry: str, tmp_path: Path) -> None:
    name = f"oras://{loopback_registry}/group/image"
    base, layer = NOISE.randbytes(5_000_000), NOISE.randbytes(2_000_000)
    first = two_layers(tmp_path / "first.sif", base, layer)
    first.with_name("first.sif.intoto.jsonl").write_text("{}\n")
    assert _push(first, f"{name}:1") > 7_000_000
    assert _push(first, f"{name}:1") == 0
    edited = NOISE.randbytes(2_100_000)
    second = two_layers(tmp_path / "second.sif", base, edited, DEFINITION)
    assert len(edited) < _push(second, f"{name}:2") <= 1.05 * len(edited)
    for tag, sif in {"1": first, "2": second}.items():
        done = _pull(f"{name}:{tag}", tmp_path / f"{tag}.sif")
        assert done.returncode == 0, done.stderr
        assert (tmp_path / f"{tag}.sif").read_bytes() == sif.read_bytes()
    assert (tmp_path / "1.sif.intoto.jsonl").read_text() == "{}\n"
    assert not (tmp_path / "2.sif.intoto.jsonl").exists()


def test_apptainer_and_we_read_each_others(loopback_registry: str, tmp_path: Path) -> None:
    squashfs = squashfs_of(LayerFile(path="/x", data=b"x"))
    name, sif = f"oras://{loopback_registry}/group/both", two_layers(tmp_path / "x.sif", squashfs)
    _push(sif, f"{name}:1", "--whole")
    pulled = run(["apptainer", "pull", "--no-https", tmp_path / "a.sif", f"{name}:1"])
    assert pulled.returncode == 0, pulled.stderr
    assert (tmp_path / "a.sif").read_bytes() == sif.read_bytes()
    pushed = run(["apptainer", "push", "--no-https", "--allow-unsigned", sif, f"{name}:2"])
    assert pushed.returncode == 0, pushed.stderr
    assert _pull(f"{name}:2", tmp_path / "b.sif").returncode == 0
    assert (tmp_path / "b.sif").read_bytes() == sif.read_bytes()
    _push(sif, f"{name}:1")
    without = run(["apptainer", "pull", "--no-https", tmp_path / "c.sif", f"{name}:1"])
    assert "no child with platform" in without.stderr


def test_nothing_is_written_if_something_is_wrong(loopback_registry: str, tmp_path: Path) -> None:
    name, target = f"oras://{loopback_registry}/group/wrong", tmp_path / "pulled.sif"
    sif = two_layers(tmp_path / "x.sif")
    whole = sif.read_bytes()
    sif.write_bytes(whole[:40_000])
    cut = sifwright("push", sif, f"{name}:1", "--no-https")
    assert (cut.returncode, "is cut off" in cut.stderr) == (2, True)
    absent = _pull(f"{name}:1", target)
    assert (absent.returncode, "there is no" in absent.stderr) == (2, True)
    assert not target.exists()
    target.write_text("mine")
    assert "is there already" in _pull(f"{name}:1", target).stderr
    assert target.read_text() == "mine"
    for bad in (
        f"docker://{loopback_registry}/x",
        "oras://",
        f"oras://{loopback_registry}/x@sha256:0",
    ):
        assert sifwright("push", sif, bad).returncode == 2


def test_podman_pulls_a_delivered_image(loopback_registry: str, tmp_path: Path) -> None:
    sif, name = toy_sif(tmp_path, ["gzip"]), f"{loopback_registry}/group/delivered:1"
    assert sifwright("deliver", "perlmutter", "--sif", sif).returncode == 0
    archive = tmp_path / "pytorch.oci.tar"
    (manifest,) = json.loads(run(["tar", "-xOf", archive, "index.json"]).stdout)["manifests"]
    pushed = ["skopeo", "copy", "--dest-tls-verify=false", f"oci-archive:{archive}"]
    assert run([*pushed, f"docker://{name}"]).returncode == 0
    # Podman takes 50 letters of this path.
    with TemporaryDirectory(prefix="run-", dir="/tmp") as short:
        podman = ["podman", "--root", tmp_path / "root", "--runroot", short, "--storage-driver=vfs"]
        pulled = run([*podman, "pull", "--tls-verify=false", name])
        assert pulled.returncode == 0, pulled.stderr
        shown = run([*podman, "image", "inspect", "--format={{.Digest}}", name])
    assert shown.stdout.strip() == manifest["digest"]
