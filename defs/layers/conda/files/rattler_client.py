"""Make a conda environment with rattler, by the words of `conda create` that this layer uses.

MIRROR is the address of the channel named sifwright.
"""
# ruff: noqa: INP001  # a program of its own

from __future__ import annotations

import asyncio
import os
from argparse import ArgumentParser, Namespace
from pathlib import Path
from urllib.parse import urldefrag

from rattler import (
    BuildString,
    Gateway,
    PackageRecord,
    RepoDataRecord,
    Subdir,
    VirtualPackage,
    install,
    solve,
)


def main() -> None:
    """Create the environment of the command line, and end the process.

    At a normal end, Python takes the interpreter from threads of rattler that still release an
    object. It then aborts now and then ("PyGILState_Release: thread state … must be current").
    """
    asyncio.run(create(words()))
    os._exit(0)


def words() -> Namespace:
    """Return the command line."""
    parser = ArgumentParser()
    add = parser.add_argument
    add("command", choices=["create"])
    for flag in ("--quiet", "--yes", "--override-channels"):
        add(flag, action="store_true")
    add("--prefix", required=True)
    add("--channel", default="")
    add("--file", type=Path)
    add("specs", nargs="*")
    return parser.parse_intermixed_args()


async def create(arguments: Namespace) -> None:
    """Solve, download, check and link the packages."""
    cache = Path(os.environ["CONDA_PKGS_DIRS"])
    records = explicit(arguments.file) if arguments.file else await solved(arguments, cache)
    await install(
        records,
        arguments.prefix,
        cache_dir=cache,
        execute_link_scripts=True,
        show_progress=False,
    )


async def solved(arguments: Namespace, cache: Path) -> list[RepoDataRecord]:
    """Return the newest packages that go together on this machine."""
    is_mirror = arguments.channel == "sifwright"
    channel = os.environ["MIRROR"] if is_mirror else arguments.channel
    return await solve(
        [channel],
        arguments.specs,
        gateway=Gateway(cache_dir=cache / "repodata"),
        platforms=[Subdir.current(), Subdir("noarch")],
        virtual_packages=VirtualPackage.detect(),
    )


def explicit(file: Path) -> list[RepoDataRecord]:
    """Return the packages of an explicit list: URL#MD5 lines."""
    return [
        record(line)
        for line in file.read_text(encoding="utf-8").splitlines()
        if line.startswith("http")
    ]


def record(line: str) -> RepoDataRecord:
    """Return the package of CHANNEL/SUBDIR/NAME-VERSION-BUILD.EXTENSION#MD5."""
    url, md5 = urldefrag(line)
    channel, subdir, file = url.rsplit("/", 2)
    stem = file.removesuffix(".conda").removesuffix(".tar.bz2")
    name, version, build = stem.rsplit("-", 2)
    number = int(build.rpartition("_")[2]) if build.rpartition("_")[2].isdigit() else 0
    package = PackageRecord(
        name, version, BuildString(build), number, subdir, md5=bytes.fromhex(md5)
    )
    return RepoDataRecord(package, file_name=file, url=url, channel=channel)


if __name__ == "__main__":
    main()
