"""Archives of Debian: their suites, and what they list."""

from pathlib import Path

import pytest

from sifwright.errors import MachineError
from sifwright.host.network import debian_archive
from tests.debian_archives import make_suite


def test_a_suite_lists_its_packages_and_its_date(tmp_path: Path) -> None:
    address = make_suite(tmp_path, "bookworm-security", {"apt": "2.6.2", "xz-utils": "5.4.1-1"})
    release = debian_archive.release(address, "bookworm-security")
    packages = debian_archive.packages(release, "amd64")
    assert release.date == "Mon, 23 Nov 2026 11:22:37 UTC"
    assert {stanza["Package"]: stanza["Version"] for stanza in packages} == {
        "apt": "2.6.2",
        "xz-utils": "5.4.1-1",
    }
    assert packages[0]["Description"] == "Some words,\n on two lines"


def test_a_folder_of_indexes_needs_no_inrelease(tmp_path: Path) -> None:
    address = make_suite(tmp_path, "trixie", {"apt": "3.0"}, signed=False)
    release = debian_archive.release(address, "trixie")
    assert [stanza["Package"] for stanza in debian_archive.packages(release, "amd64")] == ["apt"]


def test_an_index_that_inrelease_does_not_know_is_refused(tmp_path: Path) -> None:
    address = make_suite(tmp_path, "trixie", {"apt": "3.0"})
    index = tmp_path / "dists/trixie/main/binary-amd64/Packages.xz"
    index.write_bytes(index.read_bytes() + b"\0\0\0\0")
    release = debian_archive.release(address, "trixie")
    with pytest.raises(MachineError, match="is not what InRelease says"):
        debian_archive.packages(release, "amd64")


@pytest.mark.parametrize(
    ("data", "reason"), [(b"no xz", "is damaged"), (None, "has no main/binary-amd64/Packages")]
)
def test_an_index_that_cannot_be_read_is_named(
    tmp_path: Path, data: bytes | None, reason: str
) -> None:
    address = make_suite(tmp_path, "trixie", {"apt": "3.0"}, signed=False)
    index = tmp_path / "dists/trixie/main/binary-amd64/Packages.xz"
    index.unlink() if data is None else index.write_bytes(data)
    with pytest.raises(MachineError, match=reason):
        debian_archive.packages(debian_archive.release(address, "trixie"), "amd64")
