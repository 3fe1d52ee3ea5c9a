"""Trees that look like images of PyTorch, as folders and as layers in tar files."""

from __future__ import annotations

import io
import shutil
import tarfile
from typing import TYPE_CHECKING

from sifwright.images.contents.image_facts import ImageFacts, Plugin, Python, Torch

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

TORCH = "lib/python{}/site-packages/torch/version.py"
LIBC = "\x7fELF\0GNU C Library (Debian GLIBC 2.36-9) stable release version 2.36.\n\0"
MPI = "\x7fELF\0MPI_Get\0Open MPI v%d.%d.%d\0Debian OpenMPI\0ident\0" + "\0" * 600 + "4.1.4\0"


def version(torch: str, cuda: str = "", hip: str = "") -> str:
    """Return the text that torch writes into its version.py."""
    lines = ["from typing import Optional", "__all__ = ['__version__']", f"__version__ = '{torch}'"]
    lines.append(f"cuda: Optional[str] = {cuda or None!r}")
    lines.append(f"hip: Optional[str] = {hip or None!r}")
    return "\n".join(lines) + "\n"


# `->` makes a link.
LOWER = {
    "bin": "-> usr/bin",
    "lib": "-> usr/lib",
    "etc/os-release": "-> ../usr/lib/os-release",
    "usr/lib/os-release": "ID=debian\nVERSION_ID=\"12\"\nNAME='De bian'\n",
    "usr/lib/x86_64-linux-gnu/libc.so.6": LIBC,
    "usr/lib/x86_64-linux-gnu/libmpi.so.40.30.4": MPI,
    "usr/bin/python3": "-> python3.11",
    "usr/bin/python3.11": "\x7fELF",
    f"usr/local/{TORCH.format('3.11').replace('site-', 'dist-')}": version("2.7.1"),
    "opt/conda/bin/python": "-> python3.12",
    "opt/conda/bin/python3.12": "\x7fELF",
    "opt/conda/conda-meta/history": "",
    f"opt/conda/{TORCH.format('3.12')}": version("1.0.0"),
    "opt/gone/bin/python": "\x7fELF",
    "opt/gone/pyvenv.cfg": "home = /usr/bin\nversion = 3.11.2\n",
    "usr/local/cuda": "-> /etc/alternatives/cuda",
    "etc/alternatives/cuda": "-> /usr/local/cuda-12.6",
    "usr/local/cuda-12.6/version.json": '{"cuda": {"name": "CUDA SDK", "version": "12.6.3"}}',
    "opt/hpcx/plugin/lib/libnccl-net.so.0": "\x7fELF",
    "opt/hpcx/plugin/lib/libnccl-net.so": "-> libnccl-net.so.0",
}
# A `-` in the upper layer removes the path of the lower one.
UPPER = {
    "opt/gone": "-",
    "opt/conda/lib": "-",
    f"opt/conda/{TORCH.format('3.12')}": version("2.8.0+cu126", cuda="12.6"),
}
ENVIRONMENT = {
    "PATH": "/opt/conda/bin:/usr/local/bin:/bin:/usr/bin",
    "NCCL_NET_PLUGIN": "/opt/hpcx/plugin/lib/libnccl-net.so",
}
FACTS = ImageFacts(
    source="",
    digest="",
    processor="x86_64",
    os="debian",
    os_version="12",
    libc="glibc 2.36",
    environment=ENVIRONMENT,
    user="1000",
    labels={"maintainer": "nobody, who = no one"},
    pythons=(
        Python(
            path="/opt/conda/bin/python",
            version="3.12",
            kind="conda",
            prefix="/opt/conda",
            torch=Torch(version="2.8.0+cu126", cuda="12.6", rocm=""),
        ),
        Python(
            path="/usr/bin/python3",
            version="3.11",
            kind="system",
            prefix="/usr",
            torch=Torch(version="2.7.1", cuda="", rocm=""),
        ),
    ),
    plugins=(
        Plugin(
            path="/opt/hpcx/plugin/lib/libnccl-net.so",
            set_by="NCCL_NET_PLUGIN=/opt/hpcx/plugin/lib/libnccl-net.so",
        ),
    ),
    cuda="12.6",
    rocm="",
    mpi=("Open MPI 4.1.4",),
    bytes=0,
)


def lay(folder: Path, files: Mapping[str, str]) -> None:
    """Change a tree as a step of a build would."""

    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if text == "-":
            shutil.rmtree(path)
        elif text.startswith("-> "):
            path.symlink_to(text[3:])
        else:
            path.write_text(text)
            path.chmod(0o755)


def tar(files: Mapping[str, str]) -> bytes:
    """Make a layer; names are taken as they are."""
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w") as archive:
        for name, text in files.items():
            entry = tarfile.TarInfo(name)
            if text.startswith("-> "):
                entry.type, entry.linkname = tarfile.SYMTYPE, text[3:]
            entry.size = 0 if entry.issym() else len(text.encode())
            archive.addfile(entry, io.BytesIO(text.encode()))
    return data.getvalue()
