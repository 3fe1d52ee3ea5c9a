"""An image has no open update, and takes packages from the mirrors of the mirrors file."""

from __future__ import annotations

import json
import os
import re
import urllib.error
import urllib.request
from datetime import datetime
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING

import pytest

from sifwright.host.network import apt_mirror
from sifwright.host.network.apt_mirror import DEBIAN, SECURITY
from tests.checkouts import copy_project
from tests.conftest import run, sifwright
from tests.servers import send, serve
from tests.system.apptainer.toys import make_toy, succeeded

if TYPE_CHECKING:
    from collections.abc import Iterator
    from http.server import BaseHTTPRequestHandler
    from pathlib import Path

pytestmark = pytest.mark.build

# The address in the image's own apt sources, which only a mirrors file leads to.
IMAGE_MIRROR = "http://packages.example/debian"
SUITES = ("bookworm", "bookworm-updates", "bookworm-security")
# The lists of the archives as they are now, in a folder of the test's own.
OPEN = """set -e
options="-o Dir::Etc::sourcelist=/check/sources.list -o Dir::Etc::sourceparts=-
  -o Dir::State::lists=/check/lists -o Dir::Cache=/check/cache -o APT::Sandbox::User=root"
mkdir -p /check/lists/partial /check/cache/archives/partial
apt-get $options -qq -o APT::Update::Error-Mode=any update
apt list $options --upgradable 2>/dev/null | grep -v ^Listing || true
"""


def _find_mirror(archive: str) -> str:
    return apt_mirror.mirror(archive) or f"{apt_mirror.mirror(DEBIAN)}-security"


@pytest.fixture(scope="module")
def asked() -> dict[str, bytes]:
    """Return the paths that the loopback mirror of the security archive was asked for."""
    return {}


@pytest.fixture(scope="module")
def base(
    engine: str, asked: dict[str, bytes], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Path]:
    """Return the folder of an image of layer base-debian, built without the cache."""
    assert engine
    folder = copy_project(tmp_path_factory.mktemp("updates"), base=("base-debian",))

    def answer(handler: BaseHTTPRequestHandler) -> None:
        try:
            with urllib.request.urlopen(f"{_find_mirror(SECURITY)}{handler.path}") as result:  # noqa: S310  # apt's own
                asked[handler.path] = result.read()
            send(handler, 200, asked[handler.path])
        except urllib.error.HTTPError as error:
            send(handler, error.code)

    with serve(answer) as url:
        rules = {"apt": {SECURITY: url}}
        (folder / "mirrors.yaml").write_text(json.dumps(rules))
        env = {**os.environ, "SIFWRIGHT_MIRRORS": str(folder / "mirrors.yaml")}
        command = ["--project", folder, "build", "local", "base", "--output", folder / "build"]
        setting = f"base-debian.image-mirror={IMAGE_MIRROR}"
        succeeded(sifwright(*command, "--no-cache", "--set", setting, env=env))
        yield folder / "build" / "local" / "base"


def test_no_update_is_open(base: Path, engine: str, tmp_path: Path) -> None:
    lines = [
        f"deb {_find_mirror(SECURITY if suite.endswith('-security') else DEBIAN)} {suite} main\n"
        for suite in SUITES
    ]
    (tmp_path / "sources.list").write_text("".join(lines))
    flags = ["--containall", "--no-home", "--bind", f"{tmp_path}:/check"]
    done = run([engine, "--quiet", "exec", *flags, base / "image.sif", "sh", "-c", OPEN])
    assert (done.returncode, done.stdout) == (0, ""), done.stderr


def test_packages_come_from_the_mirror_and_sources_stay(
    base: Path, engine: str, tmp_path: Path
) -> None:
    rules = {IMAGE_MIRROR: _find_mirror(DEBIAN), f"{IMAGE_MIRROR}-security": _find_mirror(SECURITY)}
    (tmp_path / "mirrors.yaml").write_text(json.dumps({"apt": rules}))
    toy = make_toy(tmp_path / "project", base / "image.sif")
    toy.layer("packages", "apt-install patch\n", test="patch --version\n")
    toy.image("packages")
    succeeded(toy.build(env={**os.environ, "SIFWRIGHT_MIRRORS": str(tmp_path / "mirrors.yaml")}))
    sources = toy.execute(engine, "cat", "/etc/apt/sources.list")
    assert sources.splitlines()[0] == f"deb {IMAGE_MIRROR} bookworm main"
    assert toy.execute(engine, "find", "/var/lib/apt/lists", "-type", "f") == ""


def test_the_record_says_of_when_the_archives_were(base: Path, asked: dict[str, bytes]) -> None:
    """Ask the mirror of the mirrors file."""
    assert [path for path in asked if path.endswith(".deb")]
    record = json.loads((base / "record.json").read_text())
    archives = record["archives"]
    assert {archive["layer"] for archive in archives} == {"base-debian"}
    assert sorted(archive["suite"] for archive in archives) == sorted(SUITES)
    dates = {archive["suite"]: datetime.fromisoformat(archive["date"]) for archive in archives}
    release = asked["/dists/bookworm-security/InRelease"].decode()
    match = re.search(r"^Date: (.+)$", release, re.MULTILINE)
    assert match
    assert dates["bookworm-security"] == parsedate_to_datetime(match[1])
    assert json.loads((base / "pins.json").read_text()) == {}
