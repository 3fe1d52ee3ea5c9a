"""Names of images, and files that are no images."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

import pytest

from sifwright.errors import SifwrightError
from sifwright.images.model import SourceError
from sifwright.images.sources.inspect_image import facts_of
from sifwright.images.sources.parse_name import parse
from sifwright.system.progress import QuietProgress
from tests.system.docker.toys import LOWER, tar
from tests.unit import planted

if TYPE_CHECKING:
    from pathlib import Path

DIGEST = "sha256:" + "0" * 64
# Kind, name and tag.
NAMES = {
    "debian": ("docker", "debian", ""),
    f"docker://a.example:5000/b/c:1@{DIGEST}": ("docker", f"a.example:5000/b/c:1@{DIGEST}", ""),
    "http://127.0.0.1:5000/a": ("docker", "http://127.0.0.1:5000/a", ""),
    "https://nvcr.io/nvidia/pytorch:25.06-py3": ("docker", "nvcr.io/nvidia/pytorch:25.06-py3", ""),
    "oci:/a/b": ("oci", "/a/b", ""),
    "oci:/a/b:tag": ("oci", "/a/b", "tag"),
    "oci-archive:x.tar": ("oci-archive", "x.tar", ""),
    "docker-archive:/a/x.tar:a.example/b:1": ("docker-archive", "/a/x.tar", "a.example/b:1"),
    "docker-daemon:a/b:1": ("docker-daemon", "a/b:1", ""),
    "x.sif": ("sif", "x.sif", ""),
    "./debian": ("sif", "debian", ""),
    "~nobody-has-this-name/x.sif": ("sif", "~nobody-has-this-name/x.sif", ""),
}


@pytest.mark.parametrize("name", NAMES)
def test_names(name: str) -> None:
    source = parse(name)
    assert (source.kind, source.name, source.tag) == NAMES[name]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("oras://a/b:1", "apptainer pull x.sif oras://a/b:1"),
        ("library://a/b", "apptainer pull"),
        ("containers-storage:a", "podman push"),
        ("dir:a", "skopeo copy"),
        ("shub://a/b", "the service is gone"),
        ("", "is no name of an image"),
        ("docker://", "is no name of an image"),
        ("docker-daemon:a b", "is no name of an image"),
        ("a b", "is no name of an image"),
        ("debian@sha256:123", "is no name of an image"),
        ("-x", "is no name of an image"),
        ("a/../b", "is no name of an image"),
        ("a\nb", "is no name of an image"),
    ],
)
def test_names_that_are_refused(name: str, message: str) -> None:
    with pytest.raises(SourceError) as caught:
        parse(name)
    assert message in str(caught.value)
    assert "\n    " in str(caught.value)


def test_a_colon_in_the_name_of_a_file(tmp_path: Path) -> None:
    (tmp_path / "a:b").touch()
    assert parse(f"oci-archive:{tmp_path}/a:b").name == f"{tmp_path}/a:b"


def _look(name: str) -> None:
    facts_of(name, processor="x86_64", progress=QuietProgress())


LAYERS = {"layer.tar": tar(LOWER), "c.json": b'{"architecture": "amd64", "os": "linux"}'}
ENTRY = {"Config": "c.json", "RepoTags": ["a:1"], "Layers": ["layer.tar"]}


def _entries(*entries: object) -> bytes:
    return json.dumps(entries).encode()


ARCHIVES = {
    "nothing": ({}, "has no 'manifest.json'"),
    "another kind": ({"index.json": b"{}"}, "has no 'manifest.json'"),
    "no list": ({**LAYERS, "manifest.json": b"{}"}, "a list of images"),
    "no layer": (
        {**LAYERS, "manifest.json": _entries({**ENTRY, "Layers": ["../x"]})},
        "has no layer '../x'",
    ),
    "no configuration": (
        {**LAYERS, "manifest.json": _entries({**ENTRY, "Config": "/etc/passwd"})},
        "has no '/etc/passwd'",
    ),
    "two images": (
        {**LAYERS, "manifest.json": _entries(ENTRY, {**ENTRY, "RepoTags": ["b:1"]})},
        "has 2 images",
    ),
    "another layer": (
        {
            **LAYERS,
            "c.json": json.dumps({"rootfs": {"diff_ids": [DIGEST]}}).encode(),
            "manifest.json": _entries(ENTRY),
        },
        "other layers than its configuration says",
    ),
}


@pytest.mark.parametrize("case", ARCHIVES)
def test_archives_that_are_none(tmp_path: Path, case: str) -> None:
    files, expected = ARCHIVES[case]
    path = tmp_path / "x.tar"
    path.write_bytes(planted.tar(files))
    with pytest.raises(SourceError) as caught:
        _look(f"docker-archive:{path}")
    assert expected in str(caught.value)


def test_an_archive_in_the_wrong_order_and_one_that_is_packed(tmp_path: Path) -> None:
    import gzip  # noqa: PLC0415

    path = tmp_path / "x.tar"
    path.write_bytes(planted.tar({"manifest.json": _entries(ENTRY), **LAYERS}))
    findings = facts_of(f"docker-archive:{path}", processor="x86_64", progress=QuietProgress())
    path.write_bytes(gzip.compress(path.read_bytes()))
    other = facts_of(f"docker-archive:{path}:a:1", processor="x86_64", progress=QuietProgress())
    assert findings.os == other.os == "debian"
    assert findings.pythons == other.pythons
    with pytest.raises(SourceError, match="has no image 'a:2'"):
        _look(f"docker-archive:{path}:a:2")


@pytest.mark.parametrize("kind", ["oci-archive", "docker-archive"])
def test_endless_files_are_no_images(tmp_path: Path, kind: str) -> None:
    """Leave a pipe unopened: nobody writes to it, so opening it would wait."""
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", "/dev/zero"):
        with pytest.raises(SourceError) as caught:
            _look(f"{kind}:{path}")
        assert str(caught.value).startswith(f"{path}: is no file\n")


@pytest.mark.parametrize("kind", ["oci-archive", "docker-archive", "oci"])
@pytest.mark.parametrize("text", ["missing", "folder", "text", "empty"])
def test_files_that_are_no_images(tmp_path: Path, kind: str, text: str) -> None:
    path = tmp_path / text
    if text == "folder":
        path.mkdir()
    elif text != "missing":
        path.write_text("some text" if text == "text" else "")
    with pytest.raises(SifwrightError) as caught:
        _look(f"{kind}:{path}")
    assert str(path) in str(caught.value)
    assert "\n    " in str(caught.value)


@pytest.mark.parametrize("text", ["", "#!/usr/bin/env run-singularity\n"])
def test_files_that_are_no_sif(tmp_path: Path, text: str) -> None:
    with pytest.raises(SourceError, match="there is no such file"):
        _look(f"{tmp_path}/x.sif")
    (tmp_path / "x.sif").write_text(text)
    with pytest.raises(SifwrightError):
        _look(f"{tmp_path}/x.sif")
