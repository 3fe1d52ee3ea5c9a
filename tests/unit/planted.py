"""Images with old packages, and the data that tells so."""

from __future__ import annotations

import gzip
import io
import json
import sqlite3
import struct
import tarfile
import zipfile
from pathlib import Path

from sifwright.catalog.model import LayerFile
from tests.debian_archives import make_suite
from tests.unit.sifs import squashfs_of, write_sif

SYSTEMS = {
    "debian": "ID=debian\nVERSION_CODENAME=bookworm\n",
    "ubuntu": "ID=ubuntu\nVERSION_CODENAME=jammy\n",
    "rocky": 'ID="rocky"\nVERSION_ID="9.4"\n',
}
_STATUS = (
    "Package: libexpat1\nStatus: install ok installed\nArchitecture: amd64\nVersion: 2.5.0-1\n\n"
    "Package: gone\nStatus: deinstall ok config-files\nArchitecture: amd64\nVersion: 1\n"
)
_SITE = "opt/venv/lib/python3.11/site-packages"
RECORD = b"planted.py,sha256=47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU,0\n"


def files(system: str, rpm: bytes | None = None) -> dict[str, bytes]:
    """Return the files of an image with one old package of the system and one of Python."""
    metadata = (
        b"Metadata-Version: 2.4\nName: Planted_Py\nVersion: 1.2+cpu\nLicense-Expression: MIT\n"
    )
    return {
        "etc/os-release": SYSTEMS[system].encode(),
        f"{_SITE}/planted_py-1.2.dist-info/METADATA": metadata,
        f"{_SITE}/planted_py-1.2.dist-info/RECORD": RECORD,
        f"{_SITE}/planted_py-1.2.dist-info/licenses/LICENSE": b"MIT",
        f"{_SITE}/other/_vendor/hidden-1.dist-info/METADATA": b"Name: hidden\nVersion: 1\n",
        **(
            {"var/lib/rpm/rpmdb.sqlite": rpm_database() if rpm is None else rpm}
            if system == "rocky"
            else {"var/lib/dpkg/status": _STATUS.encode()}
        ),
    }


def sif(path: Path, system: str, **database: bytes) -> str:
    """Write a SIF; `rpm` is its database, if it is another one."""
    contents = [
        LayerFile(path=f"/{name}", data=data, executable=False)
        for name, data in files(system, **database).items()
    ]
    write_sif(path, squashfs_of(*contents))
    return str(path)


def docker_archive(path: Path, system: str) -> str:
    """Write what `docker save` writes."""
    config = json.dumps({"architecture": "amd64", "os": "linux", "config": {}}).encode()
    manifest = json.dumps([{"Config": "c.json", "RepoTags": [], "Layers": ["l.tar"]}]).encode()
    parts = {"l.tar": tar(files(system)), "c.json": config, "manifest.json": manifest}
    path.write_bytes(tar(parts))
    return f"docker-archive:{path}"


def tar(members: dict[str, bytes]) -> bytes:
    with io.BytesIO() as file:
        with tarfile.open(fileobj=file, mode="w") as archive:
            for name, data in members.items():
                entry = tarfile.TarInfo(name)
                entry.size = len(data)
                archive.addfile(entry, io.BytesIO(data))
        return file.getvalue()


def rpm_database() -> bytes:
    header = {1000: "openssl-libs", 1001: "3.0.7", 1002: "25.el9", 1014: "ASL 2.0", 1022: "x86_64"}
    data, index = b"", b""
    for tag, text in header.items():
        index += struct.pack(">4I", tag, 6, len(data), 1)
        data += text.encode() + b"\0"
    index += struct.pack(">4I", 1003, 4, len(data), 1)
    data += struct.pack(">I", 1)
    blob = struct.pack(">2I", len(header) + 1, len(data)) + index + data
    connection = sqlite3.connect(":memory:")
    connection.execute("CREATE TABLE Packages (hnum INTEGER PRIMARY KEY, blob BLOB NOT NULL)")
    connection.execute("INSERT INTO Packages VALUES (1, ?)", (blob,))
    connection.commit()
    database = connection.serialize()
    connection.close()
    return database


def data(folder: Path) -> Path:
    """Write the data of an audit, which knows newer versions of all that is planted."""
    audit = folder / "audit"
    make_suite(audit / "debian-security", "bookworm-security", {"libexpat1": "2.5.0-1+deb12u2"})
    make_suite(audit / "ubuntu-security", "jammy-security", {"libexpat1": "2.5.0-1ubuntu1"})
    _repository(audit / "rpm/baseos/repodata")
    (audit / "osv").mkdir()
    dump(audit / "osv/PyPI.zip")
    (audit / "pypi").mkdir()
    file = {"filename": "planted_py-1.2-py3-none-any.whl", "yanked": "breaks the disk"}
    kept = {"filename": "planted_py-1.3-py3-none-any.whl", "yanked": False}
    (audit / "pypi/planted-py.json").write_text(json.dumps({"files": [file, kept]}))
    return folder


def dump(path: Path, **changes: object) -> None:
    """Write an OSV dump with one vulnerability."""
    events = [{"introduced": "0"}, {"fixed": "1.3"}]
    affected = {
        "package": {"ecosystem": "PyPI", "name": "planted-py"},
        "ranges": [{"type": "ECOSYSTEM", "events": events}],
    }
    document = {"id": "PYSEC-1", "aliases": ["CVE-2026-1"], "summary": "Reads too far"}
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(
            "PYSEC-1.json", json.dumps({**document, "affected": [affected], **changes})
        )


def _repository(folder: Path) -> None:
    folder.mkdir(parents=True)
    package = '<package name="openssl-libs" epoch="1" version="3.0.7" release="27.el9"/>'
    update = f'<update type="security"><id>RLSA-1</id><pkglist>{package}</pkglist></update>'
    (folder / "updateinfo.xml.gz").write_bytes(
        gzip.compress(f"<updates>{update}</updates>".encode())
    )
    (folder / "repomd.xml").write_text(
        '<repomd xmlns="http://linux.duke.edu/metadata/repo"><data type="updateinfo">'
        '<location href="repodata/updateinfo.xml.gz"/></data></repomd>'
    )
