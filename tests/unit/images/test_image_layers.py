"""Hostile layers, and the paths that are visible in layers on each other."""

from __future__ import annotations

import gzip
import io
import tarfile
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sifwright.images.contents import pythons, systems
from sifwright.images.contents.image_tree import BadImage, ImageTree, stacked
from sifwright.images.oci import layer as layers
from sifwright.images.oci.streams import CheckedStream, UnpackedStream, drain
from sifwright.images.sources.shell_environment import after
from tests.system.docker.toys import LOWER, version
from tests.system.docker.toys import tar as layer

RELEASE = {"usr/lib/os-release": "ID=one\n"}


class Zeros:
    """Many of them."""

    def __init__(self, count: int) -> None:
        self.left = count

    def read(self, size: int, /) -> bytes:
        count = min(size, self.left)
        self.left -= count
        return bytes(count)


def tree(*parts: bytes) -> ImageTree:
    return stacked(layers.read(io.BytesIO(part)) for part in parts)


def special(name: str, kind: bytes, target: str = "") -> bytes:
    """Make a layer of one entry that is no plain file."""
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w") as archive:
        entry = tarfile.TarInfo(name)
        entry.type, entry.linkname = kind, target
        archive.addfile(entry)
    return data.getvalue()


def test_links_are_followed_inside_the_image() -> None:
    image_tree = tree(layer(LOWER))
    assert image_tree.real("/etc/os-release") == "usr/lib/os-release"
    assert image_tree.real("bin/../../../lib/os-release") == "usr/lib/os-release"
    release = systems.release(image_tree)
    assert (release["ID"], release["VERSION_ID"]) == ("debian", "12")
    assert image_tree.real("/usr/local/cuda/version.json") == "usr/local/cuda-12.6/version.json"


@pytest.mark.parametrize(
    ("upper", "seen"),
    [
        ({"usr/lib/.wh.os-release": ""}, None),
        ({"usr/.wh.lib": ""}, None),
        ({"usr/lib/.wh..wh..opq": ""}, None),
        ({".wh..wh..opq": ""}, None),
        ({"usr": "a file"}, None),
        ({"usr/lib": "-> ../other"}, None),
        ({"usr/lib/os-release": "ID=two\n"}, "ID=two\n"),
        ({"usr/lib/.wh.os-release": "", "usr/lib/os-release": "ID=two\n"}, "ID=two\n"),
        ({"usr/lib/.wh..wh.plnk": "", "usr/lib/.wh.other": ""}, "ID=one\n"),
        ({"/usr/lib/os-release": "ID=two\n"}, "ID=two\n"),
        ({"./usr/lib/os-release": "ID=two\n"}, "ID=two\n"),
    ],
)
def test_paths_that_a_layer_hides(upper: dict[str, str], seen: str | None) -> None:
    assert tree(layer(RELEASE), layer(upper)).text("usr/lib/os-release") == seen


def test_a_folder_in_place_of_a_link_and_a_path_through_one() -> None:
    link = layer({"lib": "-> usr/lib", **RELEASE})
    assert tree(link).real("lib/os-release") == "usr/lib/os-release"
    folder = special("lib", tarfile.DIRTYPE)
    assert tree(link, folder).real("lib/os-release") == "lib/os-release"
    through = layer({"lib/libc.so.6": "GNU C Library (x) version 2.40"})
    assert tree(link, through).text("usr/lib/libc.so.6") == "GNU C Library (x) version 2.40"


def test_further_names_of_a_file() -> None:
    link = special("etc/os-release", tarfile.LNKTYPE, "usr/lib/os-release")
    assert tree(layer(RELEASE), link).text("etc/os-release") == "ID=one\n"


@pytest.mark.parametrize("target", ["b", "./b", "/etc/b", "../etc/b/../b"])
def test_links_in_a_circle(target: str) -> None:
    image_tree = tree(layer({"etc/os-release": "-> b", "etc/b": f"-> {target}"}))
    assert image_tree.real("etc/os-release") in {"", "etc/b"}
    assert image_tree.text("etc/os-release") is None
    assert systems.release(image_tree) == {}


def test_links_that_grow() -> None:
    doubled = "-> " + "/".join(["a/a"] * 500)
    assert tree(layer({"a": doubled})).real("a") == ""


@pytest.mark.parametrize("name", ["../etc/os-release", "a/../../b", ".."])
def test_a_path_that_leads_outside(name: str) -> None:
    with pytest.raises(BadImage, match="leads outside"):
        tree(layer({name: ""}))


@pytest.mark.parametrize("kind", [tarfile.CHRTYPE, tarfile.BLKTYPE, tarfile.FIFOTYPE])
def test_devices_are_no_files(kind: bytes) -> None:
    device = special("etc/os-release", kind)
    assert tree(layer({"etc/os-release": "ID=one"}), device).files == {}


@pytest.mark.parametrize("cut", [0, 1, 2, 300, 511, 512, 600, -1000, -1])
def test_a_layer_that_is_cut_off(cut: int) -> None:
    packed = gzip.compress(layer(LOWER), mtime=0)
    if not 0 <= cut < len(packed):
        cut += len(packed)
    with pytest.raises(BadImage):
        layers.read(io.BytesIO(packed[:cut]))


def test_a_bomb() -> None:
    packed = io.BytesIO(gzip.compress(bytes(64 << 20)))
    # Ten thousand times as much as one has: it is read again and again.
    stream = UnpackedStream(Repeated(packed.getvalue(), 10_000))
    with pytest.raises(BadImage, match="200 times its size"):
        drain(stream)


class Repeated:
    def __init__(self, data: bytes, times: int) -> None:
        self.data, self.times = data, times
        self.rest = b""

    def read(self, size: int, /) -> bytes:
        if not self.rest and self.times:
            self.rest, self.times = self.data, self.times - 1
        data, self.rest = self.rest[:size], self.rest[size:]
        return data


@pytest.mark.parametrize(
    "kind", [tarfile.GNUTYPE_LONGNAME, tarfile.XHDTYPE, tarfile.GNUTYPE_SPARSE]
)
def test_a_header_of_gigabytes(kind: bytes) -> None:
    entry = tarfile.TarInfo("x")
    entry.type, entry.size = kind, 8 << 30

    class Source:
        start = entry.tobuf(tarfile.GNU_FORMAT)
        rest = Zeros(8 << 30)

        def read(self, size: int, /) -> bytes:
            data, self.start = self.start[:size], self.start[size:]
            return data or self.rest.read(size)

    tracemalloc.start()
    try:
        with pytest.raises(BadImage):
            layers.read(Source())
        assert tracemalloc.get_traced_memory()[1] < 30 << 20
    finally:
        tracemalloc.stop()


def test_memory_stays_flat() -> None:
    """Keep a number, not a kilobyte, for each of ten thousand files without facts."""
    names = (f"usr/share/some/package/file-number-{number}" for number in range(10_000))
    data = layer(dict.fromkeys(names, ""))
    tracemalloc.start()
    try:
        layers.read(io.BytesIO(data))
        assert tracemalloc.get_traced_memory()[1] < 4 << 20
    finally:
        tracemalloc.stop()


def test_another_digest_and_another_length() -> None:
    for size in (-1, 3, 4):
        stream = CheckedStream(io.BytesIO(b"abc"), "sha256:" + "0" * 64, size)
        with pytest.raises(BadImage, match="has the digest sha256:ba7816"):
            stream.finish()
    with pytest.raises(BadImage, match="is longer than the 2 bytes"):
        CheckedStream(io.BytesIO(b"abc"), "sha256:" + "0" * 64, 2).finish()


@given(st.binary(max_size=3000))
def test_any_bytes(data: bytes) -> None:
    for start in (b"", b"\x1f\x8b\x08\0\0\0\0\0\0\x03", b"\x28\xb5\x2f\xfd"):
        try:
            layers.read(io.BytesIO(start + data))
        except BadImage:
            continue


PYTHONS = {
    "a virtual environment on the system's packages": (
        {
            "opt/v/pyvenv.cfg": "home = /usr/bin\ninclude-system-site-packages = true\n",
            "opt/v/bin/python": "-> /usr/bin/python3.12",
            "usr/bin/python3.12": "x",
            "usr/local/lib/python3.12/dist-packages/torch/version.py": version(
                "2.8", hip="6.4.4-1"
            ),
        },
        "/opt/v/bin",
        ("/opt/v/bin/python", "3.12", "venv", "/opt/v", "2.8", "6.4"),
    ),
    "one that uv made": (
        {
            "opt/v/pyvenv.cfg": "home = /root/uv/bin\nversion_info = 3.13.1\n",
            "opt/v/bin/python3": "x",
            "opt/v/lib/python3.13/site-packages/torch/version.py": "__version__ = '2.9'\n",
        },
        "/opt/v/bin",
        ("/opt/v/bin/python3", "3.13", "venv", "/opt/v", "2.9", ""),
    ),
    "python before python3, as a shell looks for them": (
        {"usr/bin/python3": "-> python3.9", "usr/bin/python3.9": "x", "opt/c/bin/python": "x"}
        | {"opt/c/conda-meta/history": "", "opt/c/conda-meta/python-3.10.14-h_0.json": ""},
        "/usr/bin:/opt/c/bin",
        ("/opt/c/bin/python", "3.10", "conda", "/opt/c", None, ""),
    ),
    "a link into another environment": (
        {"usr/local/bin/python": "-> /opt/c/bin/python3.11", "opt/c/bin/python3.11": "x"}
        | {"opt/c/conda-meta/history": ""},
        "",
        ("/usr/local/bin/python", "3.11", "conda", "/opt/c", None, ""),
    ),
    "a wrapper of layer base-image": (
        {"opt/w/bin/python": '#!/bin/sh\nexec /opt/c/bin/python "$@"\n', "opt/c/bin/python": "x"}
        | {"opt/c/lib/python3.12/os.py": "", "opt/c/lib64/python3.12/os.py": ""},
        "relative:/opt/w/bin",
        ("/opt/c/bin/python", "3.12", "system", "/opt/c", None, ""),
    ),
    "packages that PYTHONPATH names": (
        {"usr/bin/python3": "x", "srv/dist-packages/torch/version.py": "__version__ = '3'"},
        "/usr/bin",
        ("/usr/bin/python3", "", "system", "/usr", "3", ""),
    ),
}


@pytest.mark.parametrize("case", PYTHONS)
def test_pythons(case: str) -> None:
    files, path, expected = PYTHONS[case]
    variables = {"PATH": path, "PYTHONPATH": "/srv/dist-packages"}
    first = pythons.pythons(tree(layer(files)), variables)[0]
    torch = first.torch
    result = (first.path, first.version, first.kind, first.prefix)
    assert (*result, torch and torch.version, torch.rocm if torch else "") == expected


SYSTEMS = {
    "musl": ({"lib/ld-musl-x86_64.so.1": "", "lib/apk/db/installed": "P:musl\nV:1.2.5-r0\n"}, {}),
    "glibc": ({"lib64/libc-2.28.so": "GNU C Library (GNU libc) stable release version 2.28."}, {}),
    "rocm": ({"opt/rocm": "-> rocm-6.4.1", "opt/rocm-6.4.1/.info/version": "6.4.1-83\n"}, {}),
    "cuda": ({"usr/local/cuda/version.txt": "CUDA Version 10.2.89\n"}, {"CUDA_VERSION": "1.1"}),
    "conda": ({"opt/c/conda-meta/cuda-cudart-12.4.127-0.json": ""}, {"CUDA_VERSION": "1.1"}),
    "runtime": ({"opt/lib/libcudart.so.12.8.57": "", "x/libcudart.so.11.0": ""}, {}),
    "variables": ({}, {"CUDA_VERSION": "12.8.1", "ROCM_VERSION": "6.3.2"}),
    "mpich": ({"opt/lib/libmpi.so.12": "MPICH Version:\t%s" + "\0" * 600 + "4.0.2\0"}, {}),
    "pc": ({"usr/lib/pkgconfig/ompi.pc": "Name: x\nVersion: 5.0.8\n"}, {}),
}
FOUND = {
    "musl": ("musl 1.2.5", "", "", ()),
    "glibc": ("glibc 2.28", "", "", ()),
    "rocm": ("", "", "6.4", ()),
    "cuda": ("", "10.2", "", ()),
    "conda": ("", "12.4", "", ()),
    "runtime": ("", "12.8", "", ()),
    "variables": ("", "12.8", "6.3", ()),
    "mpich": ("", "", "", ("MPICH 4.0.2",)),
    "pc": ("", "", "", ("Open MPI 5.0.8",)),
}


@pytest.mark.parametrize("case", SYSTEMS)
def test_systems(case: str) -> None:
    files, variables = SYSTEMS[case]
    image_tree = tree(layer(files))
    message = (
        systems.libc(image_tree),
        systems.cuda(image_tree, variables),
        systems.rocm(image_tree, variables),
    )
    assert (*message, systems.mpi(image_tree)) == FOUND[case]


SCRIPT = """#!/bin/sh
export PATH="/opt/conda/bin:/bin"
export LANG="${LANG:-"C.UTF-8"}"
    export PATH=/opt/venv/bin"${PATH:+:$PATH}"
export WITH='two words'; rm -rf /
export NAME=$(id -u)
export QUOTES="${QUOTES:-"x\\$y\\`z\\"q\\\\w"}"
export LATER=$(id -u)
LATER=known
PLAIN=${MISSING-x}$PATH
export LITERAL='$PATH'
"""


def test_a_script_is_read_and_not_run() -> None:
    values, unread = after([SCRIPT], {"LANG": "C"})
    assert unread == ("WITH", "NAME", "QUOTES")
    assert values == {
        "PATH": "/opt/venv/bin:/opt/conda/bin:/bin",
        "LANG": "C",
        "PLAIN": "x/opt/venv/bin:/opt/conda/bin:/bin",
        "LITERAL": "$PATH",
        "LATER": "known",
    }
