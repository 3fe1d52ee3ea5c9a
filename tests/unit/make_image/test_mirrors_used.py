"""The mirrors file in the build and in the header of a definition file."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from sifwright.catalog.load_catalog import load_catalog
from sifwright.catalog.model import Bootstrap
from sifwright.host.network import apt_mirror, pip_settings
from sifwright.make_image.resolve_request import host_settings
from sifwright.make_image.resolve_request.base_image import base_image_of
from sifwright.plan.model import Plan
from sifwright.plan.resolve import resolve
from sifwright.render.definition import definition
from tests.unit.mirror_files import ALL, MirrorsFile, empty

if TYPE_CHECKING:
    from pathlib import Path


def test_folders_are_bound_and_rules_lead_there(
    mirrors_file: MirrorsFile, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pip_settings, "_pip_config", str)
    mirrors_file.write(ALL)
    settings = host_settings.prepare(empty(tmp_path))
    places = dict(word.split(":")[:2] for word in settings.binds)
    assert places.pop(str(tmp_path / "out" / "mnt")) == "/mnt"
    here = {path.removeprefix(f"{tmp_path}/"): folder for path, folder in places.items()}
    assert sorted(here) == ["git/libfabric.git", "ubuntu", "wheels"]
    assert all(word.endswith(":ro") for word in settings.binds[1:])
    prepared = tmp_path / "out" / "machine"
    rules = dict(line.split() for line in (prepared / "mirrors").read_text().splitlines())
    assert rules["https://download.pytorch.org/whl"] == f"file://{here['wheels']}"
    assert rules["http://archive.ubuntu.com/ubuntu"] == f"file://{here['ubuntu']}"
    # debootstrap, which runs on the machine itself, writes this address into the image's sources.
    assert rules[f"file://{tmp_path}/ubuntu"] == f"file://{here['ubuntu']}"
    assert "docker.io" not in rules
    environment = (prepared / "environment").read_text()
    assert "export PIP_INDEX_URL=https://pypi.site.example/simple\n" in environment
    assert f"export PIP_FIND_LINKS='file://{here['wheels']} /nowhere'\n" in environment
    assert "export PIP_NO_INDEX=False\n" in environment
    for name in ("mirrors", "gitconfig", "pins", "environment"):
        assert (prepared / name).stat().st_mode & 0o777 == 0o600


def test_steps_write_to_the_machines_compiler_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "compiled").mkdir()
    monkeypatch.setenv("CCACHE_DIR", str(tmp_path / "compiled"))
    settings = host_settings.prepare(empty(tmp_path))
    bind = settings.binds[-1]
    assert bind.startswith(f"{tmp_path}/compiled:/mnt/")
    assert bind.endswith(":rw")
    environment = (tmp_path / "out" / "machine" / "environment").read_text()
    assert f"export CCACHE_DIR={bind.split(':')[1]}\n" in environment


def test_a_compiler_cache_that_is_not_there_is_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CCACHE_DIR", str(tmp_path / "gone"))
    host_settings.prepare(empty(tmp_path))
    assert "CCACHE" not in (tmp_path / "out" / "machine" / "environment").read_text()


def _values(plan: Plan) -> dict[str, str]:
    return host_settings.values(base_image_of(plan))


def _with_header(plan: Plan, **lines: str) -> Plan:
    """Return the same plan with these lines in the header of its definition file."""
    bootstrap = tuple(Bootstrap(keyword=key, literal=value) for key, value in lines.items())
    base = replace(plan.steps[0], layer=replace(plan.steps[0].layer, bootstrap=bootstrap))
    return replace(plan, steps=(base, *plan.steps[1:]))


IMAGES = {
    "debian:bookworm": "registry.site.example/dockerhub/library/debian:bookworm",
    "docker://pytorch/pytorch": "registry.site.example/dockerhub/pytorch/pytorch:latest",
    "nvcr.io/nvidia/pytorch:25.06-py3": "127.0.0.1:5000/nvidia/pytorch:25.06-py3",
    "nvcr.io/other/x:1": "nvcr.io/other/x:1",
    "quay.io/a/b@sha256:" + "0" * 64: "quay.io/a/b@sha256:" + "0" * 64,
}


@pytest.mark.parametrize("image", IMAGES)
def test_the_base_image_comes_from_the_mirror(
    image: str, mirrors_file: MirrorsFile, plan: Plan
) -> None:
    mirrors_file.write(ALL)
    changed = _with_header(plan, Bootstrap="docker", From=image)
    text = definition(changed, _values(changed))
    assert f"\nFrom: {IMAGES[image]}\n" in text


def test_a_site_may_have_a_mirror_of_docker_hub(plan: Plan) -> None:
    """Use it unless the mirrors file has a rule."""
    site = replace(plan.site, registry_mirror="hub.site.example/x")
    for name, address in (
        ("rocm/a:1", "hub.site.example/x/rocm/a:1"),
        ("nvcr.io/a:1", "nvcr.io/a:1"),
    ):
        changed = _with_header(replace(plan, site=site), Bootstrap="docker", From=name)
        assert f"\nFrom: {address}\n" in definition(changed, _values(changed))


def test_debootstrap_uses_the_mirror(mirrors_file: MirrorsFile, plan: Plan) -> None:
    mirrors_file.write(ALL)
    assert _values(plan)["debian-mirror"] == "https://apt.site.example/debian"
    ubuntu = _with_header(plan, MirrorURL="http://archive.ubuntu.com/ubuntu/")
    assert _values(ubuntu)["MirrorURL"].startswith("file:///")


@pytest.mark.parametrize(
    ("rule", "by_apt", "expected"),
    [
        ("", "", "https://apt.site.example/debian-security"),
        ("", "http://security.example/x", "http://security.example/x"),
        ("https://y.example/security", "http://x.example", "https://y.example/security"),
    ],
)
def test_where_the_security_archive_is(  # noqa: PLR0913  # fixtures
    mirrors_file: MirrorsFile,
    plan: Plan,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    *,
    rule: str,
    by_apt: str,
    expected: str,
) -> None:
    """Take the mirrors file, else apt, else a path beside the other archive."""
    answers = {apt_mirror.SECURITY: by_apt}
    monkeypatch.setattr(apt_mirror, "mirror", lambda name: answers.get(name, ""))
    added = f"apt:\n  debian-security: {rule}\n" if rule else "apt:\n"
    mirrors_file.write(ALL.replace("apt:\n", added))
    assert _values(plan)["debian-security-mirror"] == expected
    host_settings.prepare(empty(tmp_path))
    lines = (tmp_path / "out" / "machine" / "mirrors").read_text().splitlines()
    # The step knows by itself what lies beside the archive that it was made from.
    assert (f"debian-security {expected}" in lines) == bool(rule or by_apt)


def test_a_mirror_given_as_an_option_has_the_security_archive_beside_it(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(apt_mirror, "mirror", lambda _: "")
    catalog = load_catalog(project / "defs", project)
    plan = resolve(catalog, "here", "", ["base.mirror=http://lab.example/debian/"])
    result = _values(plan)["debian-security-mirror"]
    assert result == "http://lab.example/debian-security"
