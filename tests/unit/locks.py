"""A small lock, and packages of Debian made by dpkg-deb."""

from pathlib import Path

from sifwright.make_image.lock_format.lock_file import (
    Archive,
    Deb,
    Lock,
    LockedSource,
    Rpm,
    Unlocked,
    Wheel,
)
from sifwright.system import files
from tests.conftest import run

LOCK = Lock(
    site="local",
    image="pytorch",
    plan="1" * 64,
    epoch=1_700_000_000,
    processor="x86_64",
    python="3.11",
    base={"bootstrap": "debootstrap"},
    layers={"base-debian": "2" * 64},
    tools={"apptainer": "1.4.5"},
    wheels=(
        Wheel(name="numpy", version="2.0", file="numpy-2.0-py3-none-any.whl", sha256="a" * 64),
    ),
    rpms=(Rpm(name="zlib", version="1.2-3", architecture="x86_64"),),
    debs=(
        Deb(
            name="toy",
            version="1",
            architecture="all",
            archive="debian",
            suite="bookworm",
            path="pool/toy_1_all.deb",
            size=3,
            sha256="d" * 64,
        ),
        Deb(name="of-base", version="2", architecture="amd64"),
    ),
    archives=(
        Archive(address="debian", suite="bookworm", components="main", date="2026-01-01T00:00:00Z"),
    ),
    sources=(
        LockedSource(
            layer="tool",
            name="code",
            kind="git",
            address="https://git.example/code",
            ref="v1",
            digest="5" * 40,
        ),
    ),
    unlocked=(Unlocked(name="own", version="1"),),
)


def write_debs(repository: Path, *names: str) -> list[Deb]:
    """Make packages in the pool of a repository."""
    pool = repository / "pool"
    pool.mkdir(parents=True)
    debs = []
    for name in names:
        root = repository.parent / name
        (root / "DEBIAN").mkdir(parents=True)
        head = {"Package": name, "Version": "1", "Architecture": "all", "Maintainer": "none <a@b>"}
        text = "".join(f"{key}: {value}\n" for key, value in head.items())
        (root / "DEBIAN" / "control").write_text(f"{text}Description: a toy\n")
        path = pool / f"{name}_1_all.deb"
        packed = run(["dpkg-deb", "--build", "--root-owner-group", root, path])
        assert packed.returncode == 0, packed.stderr
        debs.append(
            Deb(
                name=name,
                version="1",
                architecture="all",
                path=f"pool/{path.name}",
                size=path.stat().st_size,
                sha256=files.sha256(path),
            )
        )
    return debs
