"""Logins and tokens of mirrors: refused where they would be rendered, shown and left nowhere."""

import json
import os
import re
import sys
from importlib import resources
from pathlib import Path

import pytest

from sifwright.catalog.model import Catalog
from sifwright.host.network import http
from tests.conftest import ROOT, run

FETCH_SOURCE = resources.files("sifwright") / "render" / "templates" / "bin" / "fetch-source"
CONDA = ROOT / "defs" / "layers" / "conda"
CHANNEL = "https://conda.anaconda.org/conda-forge"

SHOWN = {
    "https://mirror.example/x": "https://mirror.example/x",
    "https://user:p@ss@mirror.example/x": "https://mirror.example/x",
    "https://user:p%40ss@mirror.example/x@sha256": "https://mirror.example/x@sha256",
    "cannot have https://u:p@a.example/x, nor ssh://git@b.example/y: a@b": (
        "cannot have https://a.example/x, nor ssh://b.example/y: a@b"
    ),
    "https://a.example b@c": "https://a.example b@c",
}


@pytest.mark.parametrize("text", SHOWN)
def test_a_login_is_not_shown(text: str) -> None:
    """Hide it on the command line and in fetch-source, whose rule is a program's line."""
    assert http.redact_url(text) == SHOWN[text]
    (line,) = re.findall(r"^anonymous\(\).*$", FETCH_SOURCE.read_text(), re.MULTILINE)
    done = run(["bash", "-c", f"{line}\nanonymous"], input=text)
    assert done.stdout == SHOWN[text]


def test_a_token_of_a_channel_is_not_shown() -> None:
    shown = http.redact_url("https://u:p@conda.example/t/to-4711/lab/noarch/repodata.json")
    assert shown == "https://conda.example/t/…/lab/noarch/repodata.json"


GOOD_IMAGES = (
    "docker.io/rocm/dev-ubuntu-24.04:7.1.1-complete",
    "nvcr.io/nvidia/pytorch:25.06-py3",
    "127.0.0.1:5000/a/b",
    f"docker.io/nvidia/cuda@sha256:{'0' * 64}",
    f"docker.io/nvidia/cuda:12.6@sha256:{'0' * 64}",
)
BAD_IMAGES = (
    "user:pass@registry.example/a/b:1",
    "user@registry.example/a/b",
    f"user:pass@registry.example/a/b@sha256:{'0' * 64}",
    "docker.io/a/b@sha256:00",
)


@pytest.mark.parametrize(
    ("layer", "option"), [("base-image", "from"), ("base-cuda", "image"), ("base-rocm", "image")]
)
def test_the_name_of_an_image_has_no_login(real: Catalog, layer: str, option: str) -> None:
    pattern = real.layers[layer].options[option].pattern or ""
    assert [name for name in GOOD_IMAGES if not re.fullmatch(pattern, name)] == []
    assert [name for name in BAD_IMAGES if re.fullmatch(pattern, name)] == []


@pytest.mark.parametrize(
    ("layer", "option"),
    [
        ("conda", "channel"),
        *(("base-debian", name) for name in ("mirror", "security-mirror", "image-mirror")),
    ],
)
def test_an_address_in_the_image_has_no_login_and_no_token(
    real: Catalog, layer: str, option: str
) -> None:
    pattern = real.layers[layer].options[option].pattern or ""
    assert re.fullmatch(pattern, CHANNEL)
    for address in ("https://u:p@a.example/x", "https://a.example/x?token=4711"):
        assert not re.fullmatch(pattern, address)


@pytest.mark.parametrize("path", ["t/4711/x", "conda/t/4711/x"])
def test_a_channel_has_no_token(real: Catalog, path: str) -> None:
    pattern = real.layers["conda"].options["channel"].pattern or ""
    assert not re.fullmatch(pattern, f"https://a.example/{path}")
    assert re.fullmatch(pattern, f"https://a.example/not/{path.replace('t/4', 'tt/4')}")


MIRRORS = (
    "https://conda.site.example/lab",
    "https://user:a*b.[c@conda.site.example/lab",
    "https://user:p@ss#&word@conda.site.example:8443/lab",
    "https://user:p%40ss@conda.site.example/lab",
    "https://conda.site.example/t/to-4711/lab",
    "https://user:4711@conda.anaconda.org/conda-forge",
    "file:///mnt/3/lab",
)
NOTED = (
    "envs/pytorch/conda-meta/history",
    "envs/pytorch/conda-meta/zlib-1.3-0.json",
    "pkgs/zlib-1.3-0/info/repodata_record.json",
    "pkgs/urls.txt",
    "pkgs/cache/497deca9.json",
)


def _forget(folder: Path, mirror: str) -> tuple[int, str]:
    env = {**os.environ, "MIRROR": mirror, "OPT_CHANNEL": CHANNEL}
    done = run([sys.executable, CONDA / "files" / "forget_mirror.py", folder], env=env)
    return done.returncode, done.stderr


def _note(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def _plain(mirror: str) -> str:
    return mirror.replace(mirror.partition("://")[2].rpartition("@")[0] + "@", "", 1)


@pytest.mark.parametrize("mirror", MIRRORS)
def test_the_public_address_stands_in_all_of_condas_notes(mirror: str, tmp_path: Path) -> None:
    written = [mirror, _plain(mirror) if "@" in mirror else mirror]
    written += [mirror.replace("/t/to-4711", ""), mirror.replace("to-4711", "<TOKEN>")]
    paths = [_note(tmp_path, name, "\n".join(f"{w}/noarch::x" for w in written)) for name in NOTED]
    other = _note(tmp_path, "envs/pytorch/lib/binary", "\x00other://x\n")
    assert _forget(tmp_path, mirror) == (0, "")
    for path in paths:
        assert path.read_text() == "\n".join([f"{CHANNEL}/noarch::x"] * len(written))
    assert other.read_text() == "\x00other://x\n"


@pytest.mark.parametrize("mirror", MIRRORS)
def test_a_login_left_elsewhere_fails_without_showing_it(mirror: str, tmp_path: Path) -> None:
    path = _note(tmp_path, "envs/pytorch/lib/site.py", f"x = '{mirror}/noarch'\n")
    code, message = _forget(tmp_path, mirror)
    assert code == 1
    assert f"the address of the mirror is left in {path}" in message
    for secret in ("4711", "p@ss", "p%40ss", "a*b"):
        assert secret not in message


def test_without_a_mirror_nothing_is_touched(tmp_path: Path) -> None:
    path = _note(tmp_path, NOTED[0], CHANNEL)
    assert _forget(tmp_path, CHANNEL) == (0, "")
    assert path.read_text() == CHANNEL


FAKE_CONDA = """#!/bin/bash
# Notes what conda would: its command line, and the channel that its configuration gives.
[[ $1 == create ]] || exit 0
channel=$(python3 -c 'import json, sys
(found,) = json.load(open(sys.argv[1]))["custom_multichannels"]["sifwright"]
print(found)' "$CONDARC")
mkdir -p "$ROOT/envs/pytorch/conda-meta" "$ROOT/pkgs/x/info"
printf '# cmd: %s\\n+%s/noarch::x\\n' "$*" "$channel" >"$ROOT/envs/pytorch/conda-meta/history"
printf '{"url": "%s/noarch/x.conda"}' "$channel" >"$ROOT/pkgs/x/info/repodata_record.json"
"""


def test_the_layers_script_hides_the_mirror(tmp_path: Path) -> None:
    """Use a conda that only takes notes: its command line is one of them."""
    prefix, mirror = tmp_path / "conda", "https://user:a*b#'\"@conda.site.example/lab"
    programs = {
        "bin/fetch-source": 'mkdir "$2"; echo true >"$2/installer.sh"',
        "bin/mirrored": f"cat {tmp_path}/mirror",
        "conda/bin/python": f'exec {sys.executable} "$@"',
        "conda/envs/pytorch/bin/python": f'exec {sys.executable} "$@"',
        "conda/bin/conda": FAKE_CONDA,
    }
    for name, text in programs.items():
        _note(tmp_path, name, f"#!/bin/bash\n{text}\n").chmod(0o755)
    _note(tmp_path, "mirror", f"{mirror}\n")
    script = (CONDA / "install.sh").read_text()
    workdir = tmp_path / "work"
    workdir.mkdir()
    (workdir / "files").symlink_to(CONDA / "files")
    env = {
        "PATH": f"{tmp_path}/bin:/usr/bin:/bin",
        "ROOT": str(prefix),
        "INSTALL_PREFIX": str(tmp_path),
        "IMAGE_ROOT": "",
        "OPT_EXPLICIT": "",
        "OPT_CHANNEL": CHANNEL,
        "OPT_PYTHON": "3.12",
        "OPT_PACKAGES": "zlib",
    }
    done = run(["bash", "-c", script], cwd=workdir, env=env)
    assert (done.returncode, done.stderr) == (0, ""), done.stdout
    history = (prefix / "envs/pytorch/conda-meta/history").read_text()
    assert history.endswith(f"--channel sifwright python=3.12 pip zlib\n+{CHANNEL}/noarch::x\n")
    record = json.loads((prefix / "pkgs/x/info/repodata_record.json").read_text())
    assert record == {"url": f"{CHANNEL}/noarch/x.conda"}
