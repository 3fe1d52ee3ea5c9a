"""PyTorch's source from Debian's package, as a repository and a mirrors file that leads to it.

It has no submodules: third parties are Debian's packages, which PACKAGES are in an image. Debian's
patches make it build so. Their changes for files below /usr are taken back.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

from sifwright.host.network.apt_mirror import DEBIAN, mirror
from tests.checkouts import copy_project, write_image
from tests.conftest import run
from tests.network import write_mirrors
from tests.stacks import BUILD, write

# File -> patterns there, and what takes the place of each.
Changes = Mapping[str, Sequence[tuple[str, str]]]
Layer = Mapping[str, object]

SUITE, VERSION, VISION = "trixie", "2.6.0", "0.21.0"
GIT = "https://github.com/pytorch/pytorch.git"
ARCHIVE = f"https://github.com/pytorch/vision/archive/v{VISION}.tar.gz"
KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"
PACKAGES = (
    *("ccache", "flatbuffers-compiler-dev", "libcpp-httplib-dev", "libcpuinfo-dev"),
    *("libeigen3-dev", "libflatbuffers-dev", "libfmt-dev", "libfp16-dev", "libfxdiv-dev"),
    *("libonnx-dev", "libprotobuf-dev", "libpsimd-dev", "libpthreadpool-dev", "libsleef-dev"),
    *("libtensorpipe-dev", "nlohmann-json3-dev", "protobuf-compiler", "pybind11-dev"),
)
BASE = {"layer": "base-debian", "options": {"suite": SUITE, "packages": " ".join(PACKAGES)}}
# Minimum for the proof: no optimisation, and one copy of each kernel. TensorPipe stays: without it
# torch.distributed.rpc, and torch with it, cannot be imported.
_LEFT_OUT = (
    *("USE_MKLDNN", "USE_FBGEMM", "USE_KINETO", "USE_ITT", "USE_NNPACK", "USE_XNNPACK"),
    *("USE_PYTORCH_QNNPACK", "USE_GLOO"),
)
VARIABLES = {
    "USE_SYSTEM_LIBS": "1",
    "ONNX_NAMESPACE": "onnx",  # the namespace of Debian's library
    **dict.fromkeys(_LEFT_OUT, "0"),
    "CMAKE_BUILD_TYPE": "Debug",  # the only one without -O3 for kernels
    "CMAKE_CXX_FLAGS_DEBUG": "-DNDEBUG",
    "CMAKE_PROJECT_TOP_LEVEL_INCLUDES": "cmake/OneCopy.cmake",
}
_ONE_COPY = """# The checks for AVX are answered: there is none.
foreach(kind AVX_1 AVX_2 AVX_3 AVX2_1 AVX2_2 AVX2_3 AVX512_1 AVX512_2 AVX512_3)
  set(C_HAS_${kind} FALSE CACHE INTERNAL "")
  set(CXX_HAS_${kind} FALSE CACHE INTERNAL "")
endforeach()
"""
_PATCH = ("patch", "-p1", "--silent", "--no-backup-if-mismatch", "-i")
# The patch would give every version that of Debian.
_NOT_APPLIED = {"2000-version.patch"}
_CHANGES: Changes = {
    "cmake/Dependencies.cmake": (
        # torch's libraries find each other beside them.
        (r"(CMAKE_INSTALL_RPATH )\"\"", r'\1"${_rpath_portable_origin}"'),
        (r"(CMAKE_INSTALL_RPATH_USE_LINK_PATH) FALSE", r"\1 TRUE"),
    ),
    "CMakeLists.txt": (
        # A wheel has no links between files.
        (r"(option\(HAVE_SOVERSION .*) ON\)", r"\1 OFF)"),
        (r"set\(CMAKE_VERBOSE_MAKEFILE ON\)\n", ""),
    ),
    "tools/setup_helpers/cmake.py": ((r'("-j", max_jobs), .-v.\]', r"\1]"),),
    # It was written by another release of flatbuffers than Debian's, and is good for that one.
    "torch/csrc/jit/serialization/mobile_bytecode_generated.h": (
        (r"static_assert\(FLATBUFFERS_VERSION_MAJOR[^;]*;\n", ""),
    ),
}
_APT = """Dir::Etc::sourcelist "{folder}/sources.list";
Dir::Etc::sourceparts "-";
Dir::State::lists "{folder}/lists";
Dir::State::status "/dev/null";
Dir::Cache "{folder}/cache";
APT::Sandbox::User "root";
"""


@dataclass(frozen=True)
class Source:
    """The commit of PyTorch's repository, and the mirrors file that leads to it."""

    commit: str
    mirrors: Path

    def make_project(self, folder: Path, name: str, layers: Sequence[str | Layer]) -> Path:
        """Copy the real definitions; add an image of these layers, and the pin of this source."""
        write_image(copy_project(folder), name, layers)
        pins = folder / "defs/layers/pytorch-source/pins.yaml"
        entry = yaml.safe_load(pins.read_text())["pytorch"]
        entry["versions"] = {VERSION: {"commit": self.commit}}
        write(pins, {"pytorch": entry})
        return folder

    def environment(self) -> dict[str, str]:
        """Return the variables of a build: its mirrors, and where compiled files are kept."""
        cache = os.environ.get("CCACHE_DIR") or str(BUILD / "ccache")
        Path(cache).mkdir(parents=True, exist_ok=True)
        return os.environ | {"SIFWRIGHT_MIRRORS": str(self.mirrors), "CCACHE_DIR": cache}


def options(mpi_patch: str, variables: dict[str, str], **more: str) -> dict[str, str]:
    """Return the options of pytorch-source for this source; these variables come on top."""
    pairs = (f"{name}={value}" for name, value in (VARIABLES | variables).items())
    given = {"version": VERSION, "mpi-patch": mpi_patch, "build-variables": " ".join(pairs)}
    return given | more


def get_source(folder: Path, more: Changes | None = None) -> Source:
    """Download the source and make its repository, with more changes; skip where it is missing."""
    programs = ("apt-get", "dpkg-source", "patch", "git")
    if missing := [name for name in programs if not shutil.which(name)]:
        pytest.skip(f"not installed: {missing}")
    if not _download(folder):
        pytest.skip("the mirror of Debian has no source of PyTorch")
    return _make_source(folder, more or {})


def _download(folder: Path) -> bool:
    """Download both source packages; return whether they are there."""
    for name in ("lists/partial", "cache/archives/partial"):
        (folder / name).mkdir(parents=True)
    address = mirror(DEBIAN)
    (folder / "sources.list").write_text(f"deb-src [signed-by={KEYRING}] {address} {SUITE} main\n")
    (folder / "apt.conf").write_text(_APT.format(folder=folder))
    words = ["env", f"APT_CONFIG={folder}/apt.conf", "apt-get", "-qq"]
    run([*words, "update"])
    for package in ("pytorch", "pytorch-vision"):
        run([*words, "source", "--download-only", package], cwd=folder)
    return bool(_description(folder)) and _archive(folder).exists()


def _description(folder: Path) -> list[Path]:
    return list(folder.glob(f"pytorch_{VERSION}+dfsg-*.dsc"))


def _archive(folder: Path) -> Path:
    return folder / f"pytorch-vision_{VISION}.orig.tar.gz"


def _make_source(folder: Path, more: Changes) -> Source:
    """Make the repository of what was downloaded to a folder, with more changes."""
    tree = folder / "tree"
    (description,) = _description(folder)
    _run("dpkg-source", "--no-check", "--skip-patches", "--extract", description, tree, at=folder)
    _patch(tree)
    for name, changes in (*_CHANGES.items(), *more.items()):
        _change(tree / name, changes)
    (tree / "cmake" / "OneCopy.cmake").write_text(_ONE_COPY)
    _archive(folder).rename(folder / ARCHIVE.rpartition("/")[2])
    archives = {f"{ARCHIVE.rpartition('/')[0]}/": f"{folder}/"}
    rules = write_mirrors(folder / "mirrors.yaml", git={GIT: str(tree)}, archives=archives)
    return Source(_commit(tree), rules)


def _patch(tree: Path) -> None:
    patches = tree / "debian" / "patches"
    for name in (patches / "series").read_text().split():
        if name not in _NOT_APPLIED:
            _run(*_PATCH, patches / name, at=tree)


def _change(file: Path, changes: Sequence[tuple[str, str]]) -> None:
    text = file.read_text()
    for pattern, replacement in changes:
        text, count = re.subn(pattern, replacement, text)
        assert count == 1, (file, pattern)
    file.write_text(text)


def _commit(tree: Path) -> str:
    """Commit a tree; the same tree gets the same commit every day."""
    who = ("-c", "user.name=Debian", "-c", "user.email=debian@site.example")
    when = "2025-04-11T00:00:00Z"
    _run("git", "init", "--quiet", at=tree)
    _run("git", "add", "--all", "--force", at=tree)
    dates = ("env", f"GIT_AUTHOR_DATE={when}", f"GIT_COMMITTER_DATE={when}")
    _run(*dates, "git", *who, "commit", "--quiet", "--message", f"PyTorch {VERSION}", at=tree)
    _run("git", "tag", f"v{VERSION}", at=tree)
    return _run("git", "rev-parse", "HEAD", at=tree).strip()


def _run(*words: object, at: Path) -> str:
    done = run(words, cwd=at)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
