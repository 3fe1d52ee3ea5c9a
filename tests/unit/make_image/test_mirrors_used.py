"""The mirrors file in the build, in the header of a definition file, and in the checks."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from sifwright.catalog.load_catalog import load_catalog
from sifwright.catalog.model import Bootstrap, Download, Value
from sifwright.host.network import apt_mirror, pip_settings
from sifwright.make_image.check_machine import network_checks
from sifwright.make_image.check_machine.network_checks import WheelTarget
from sifwright.make_image.resolve_request import host_settings
from sifwright.make_image.resolve_request.base_image import base_image_of
from sifwright.plan.model import Plan, StepSource
from sifwright.plan.resolve import resolve
from sifwright.render.definition import definition
from tests.conftest import run
from tests.servers import send, serve
from tests.unit.conftest import program
from tests.unit.mirror_files import ALL, MirrorsFile, empty

if TYPE_CHECKING:
    from http.server import BaseHTTPRequestHandler
    from pathlib import Path


@pytest.fixture
def plan(project: Path) -> Plan:
    return resolve(load_catalog(project / "defs", project), "here", "", [])


# ---- what the build gets --------------------------------------------------------------------


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


def _docker(plan: Plan, image: str) -> Plan:
    """Return the same plan on an image of a registry."""
    lines = [("Bootstrap", "docker"), ("From", image)]
    bootstrap = tuple(Bootstrap(keyword=key, literal=value) for key, value in lines)
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
    changed = _docker(plan, image)
    text = definition(changed, _values(changed))
    assert f"\nFrom: {IMAGES[image]}\n" in text


def test_a_site_may_have_a_mirror_of_docker_hub(plan: Plan) -> None:
    """Use it unless the mirrors file has a rule."""
    site = replace(plan.site, registry_mirror="hub.site.example/x")
    for name, address in (
        ("rocm/a:1", "hub.site.example/x/rocm/a:1"),
        ("nvcr.io/a:1", "nvcr.io/a:1"),
    ):
        changed = replace(_docker(plan, name), site=site)
        assert f"\nFrom: {address}\n" in definition(changed, _values(changed))


def test_debootstrap_uses_the_mirror(mirrors_file: MirrorsFile, plan: Plan) -> None:
    mirrors_file.write(ALL)
    assert _values(plan)["debian-mirror"] == "https://apt.site.example/debian"
    lines = (Bootstrap(keyword="MirrorURL", literal="http://archive.ubuntu.com/ubuntu/"),)
    base = replace(plan.steps[0], layer=replace(plan.steps[0].layer, bootstrap=lines))
    result = _values(replace(plan, steps=(base, *plan.steps[1:])))
    assert result["MirrorURL"].startswith("file:///")


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


# ---- the check before the build -------------------------------------------------------------


def _with_sources(plan: Plan, *sources: StepSource) -> Plan:
    step = replace(
        plan.steps[-1], sources=sources, layer=replace(plan.steps[-1].layer, downloads=())
    )
    return replace(plan, steps=(step,))


def _source(kind: str, url: str) -> StepSource:
    known: dict[str, object] = {"name": kind, "ref": "v1", "version": "1", "digest": ""}
    return StepSource(kind=kind, url=url, **known)  # type: ignore[arg-type]


def test_a_mirror_without_the_pinned_commit(
    mirrors_file: MirrorsFile, plan: Plan, tmp_path: Path
) -> None:
    git = [program("git"), "-C", str(tmp_path)]
    run([*git, "init", "--quiet", "one"])
    git[-1] += "/one"
    user = ("-c", "user.name=test", "-c", "user.email=test@site.example")
    run([*git, *user, "commit", "--quiet", "--allow-empty", "--message=first"])
    commit = run([*git, "rev-parse", "HEAD"]).stdout.strip()
    mirrors_file.write(json.dumps({"git": {"https://g.example/one.git": f"{tmp_path}/one"}}))
    source = _source("git", "https://g.example/one.git")
    answers = []
    for digest in (commit, "0" * 40):
        changed = _with_sources(plan, replace(source, digest=digest))
        answers.append([*network_checks.problems(changed.steps, WheelTarget("3.11", ""), {})])
    (missing,) = answers[1]
    assert answers[0] == []
    assert missing.what.endswith(f"(asked: file://{tmp_path}/one): it lacks the commit {'0' * 40}")


def test_every_source_is_asked_for_through_the_mirrors(
    mirrors_file: MirrorsFile, plan: Plan
) -> None:
    asked = []

    def answer(handler: BaseHTTPRequestHandler) -> None:
        asked.append(handler.path)
        send(handler, 200 if "good" in handler.path else 404)

    with serve(answer) as url:
        rules = {"git": {"https://g.example/": f"{url}/g"}, "archives": {"https://f.example": url}}
        mirrors_file.write(json.dumps(rules))
        wanted = _with_sources(
            plan,
            _source("git", "https://g.example/good.git"),
            _source("git", "https://g.example/bad.git"),
            _source("archive", "https://f.example/good.tgz"),
            _source("archive", "https://f.example/bad.tgz"),
            _source("git", "http://127.0.0.1:9/silent.git"),
        )
        problems = sorted(
            problem.what
            for problem in network_checks.problems(
                wanted.steps, WheelTarget("3.11", os.uname().machine), {}
            )
        )
    assert "/g/good.git/info/refs?service=git-upload-pack" in asked
    words, missing = "cannot be fetched from", "HTTP 404 Not Found"
    assert problems == [
        f"the source archive {words} https://f.example/bad.tgz (asked: {url}/bad.tgz): {missing}",
        f"the source git {words} http://127.0.0.1:9/silent.git: Connection refused",
        f"the source git {words} https://g.example/bad.git (asked: {url}/g/bad.git): {missing}",
    ]


def test_a_server_that_knows_no_head_is_asked_for_the_file(plan: Plan) -> None:
    def answer(handler: BaseHTTPRequestHandler) -> None:
        send(handler, 405 if handler.command == "HEAD" else 200)

    with serve(answer) as url:
        wanted = _with_sources(plan, _source("archive", f"{url}/x.tgz"))
        assert (
            list(network_checks.problems(wanted.steps, WheelTarget("3.11", os.uname().machine), {}))
            == []
        )


def test_an_archive_out_of_reach_names_how_to_do_without(plan: Plan) -> None:
    def answer(handler: BaseHTTPRequestHandler) -> None:
        send(handler, 404 if "-security" in handler.path else 200)

    options = {
        **plan.steps[0].options,
        "mirror": Value(value="", origin="layer default"),
        "updates": Value(value=True, origin="layer default"),
    }
    download = Download(
        what="Debian's security updates",
        option="mirror",
        machine="debian-security-mirror",
        url="dists/x-security/Release",
        when="updates",
    )
    base = replace(plan.steps[0], options=options, sources=())
    base = replace(base, layer=replace(base.layer, name="base", downloads=(download,)))
    off = replace(base, options={**options, "updates": Value(value=False, origin="--set")})
    with serve(answer) as url:
        facts = {"debian-security-mirror": f"{url}/debian-security"}
        (problems,) = network_checks.problems(
            (base,), WheelTarget("3.11", os.uname().machine), facts
        )
        assert (
            list(network_checks.problems((off,), WheelTarget("3.11", os.uname().machine), facts))
            == []
        )
    address = f"{url}/debian-security/dists/x-security/Release"
    assert f"Debian's security updates cannot be reached at {address}: HTTP 404" in str(problems)
    assert "--set base.mirror=…, or --set base.updates=false." in str(problems)
