"""The command `audit`: old packages are found in all kinds of images, without a network."""

import io
import json
import shutil
import sqlite3
import tarfile
import zipfile
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from sifwright.errors import MachineError, UsageError
from sifwright.host.network import package_index
from sifwright.images.contents.inventory import Inventory
from sifwright.images.contents.packages import Package
from sifwright.make_image.lock_format import lock_file
from sifwright.make_image.lock_format.lock_file import Deb
from sifwright.report.audit import osv, rpm_sources
from tests.registries import Registry, running
from tests.servers import sha256
from tests.unit import planted
from tests.unit.conftest import Cli
from tests.unit.locks import LOCK
from tests.unit.mirror_files import MirrorsFile
from tests.unit.sifs import squashfs_of, write_sif
from tests.unit.two_layers import give_record
from tests.unit.upstream import ARCHIVES, served

_UPDATES = {
    "debian": ("libexpat1", "2.5.0-1", "2.5.0-1+deb12u2"),
    "ubuntu": ("libexpat1", "2.5.0-1", "2.5.0-1ubuntu1"),
    "rocky": ("openssl-libs", "1:3.0.7-25.el9", "1:3.0.7-27.el9"),
}


def _zip(name: str, text: str, *, damaged: bool = False) -> bytes:
    """Return a packed zip file, also with other bytes in its member."""
    with io.BytesIO() as file:
        with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr(name, text)
        data = file.getvalue()
    start = 30 + len(name)
    return data[:start] + b"\xff" * 4 + data[start + 4 :] if damaged else data


def _rpm_without_packages() -> bytes:
    with closing(sqlite3.connect(":memory:")) as database:
        database.execute("CREATE TABLE Packages (hnum INTEGER PRIMARY KEY, blob BLOB NOT NULL)")
        return database.serialize()


@pytest.mark.parametrize("system", planted.SYSTEMS)
@pytest.mark.parametrize("make", [planted.sif, planted.docker_archive])
def test_old_packages_are_found(run_cli: Cli, tmp_path: Path, system: str, make: object) -> None:
    image = make(tmp_path / "x.sif", system)  # type: ignore[operator]
    folder = planted.data(tmp_path)
    done = run_cli("audit", image, "--data", str(folder), "--json", "--processor", "x86_64")
    answer = json.loads(done.out)
    assert done.code == 1
    assert [(item["rule"], item["package"]) for item in answer["findings"]] == [
        ("security-update", _UPDATES[system][0]),
        ("vulnerability", "Planted_Py"),
        ("yanked", "Planted_Py"),
    ]
    update, vulnerability, yanked = answer["findings"]
    assert (update["package"], update["version"], update["fixed"]) == _UPDATES[system]
    assert (vulnerability["identity"], vulnerability["fixed"]) == ("PYSEC-1", "1.3")
    assert "breaks the disk" in yanked["message"]
    assert answer["unchecked"] == []


def test_a_bundle_has_the_data_and_sarif_has_the_rules(run_cli: Cli, tmp_path: Path) -> None:
    image = planted.sif(tmp_path / "x.sif", "debian")
    with tarfile.open(tmp_path / "b.tar", "w") as bundle:
        bundle.add(planted.data(tmp_path / "data") / "audit", "audit")
    done = run_cli("audit", image, "--data", f"{tmp_path}/b.tar", "--sarif")
    answer = json.loads(done.out)
    assert answer["version"] == "2.1.0"
    (run,) = answer["runs"]
    rules = [item["ruleId"] for item in run["results"]]
    assert rules == ["security-update", "vulnerability", "yanked"]
    # Fields that code hosts ask for; the whole was compared with OASIS's schema by hand.
    for item in run["results"]:
        assert item["message"]["text"]
        (location,) = item["locations"]
        assert location["physicalLocation"]["artifactLocation"]["uri"] == image
    (invocation,) = run["invocations"]
    notes = [item["message"]["text"] for item in invocation["toolExecutionNotifications"]]
    assert "compared: 1 Python packages with pypi" in notes


def test_answers_are_saved_for_a_machine_without_a_network(
    run_cli: Cli, tmp_path: Path, mirrors_file: MirrorsFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    image, audit = planted.sif(tmp_path / "x.sif", "debian"), planted.data(tmp_path) / "audit"
    mirrors_file.write(json.dumps({"apt": {"debian-security": f"{audit}/debian-security"}}))
    monkeypatch.setattr(package_index, "address", lambda: f"file://{audit}/pypi")
    words = ("audit", image, "--osv", f"{audit}/osv/PyPI.zip", "--json")
    first = run_cli(*words, "--save", str(tmp_path / "saved"))
    assert first.code == 1, first.err
    for folder in ("osv", "pypi", "debian-security/dists"):
        shutil.rmtree(audit / folder)
    second = run_cli("audit", image, "--data", str(tmp_path / "saved"), "--json")
    answers = [json.loads(done.out) for done in (first, second)]
    assert answers[0]["findings"] == answers[1]["findings"]
    assert len(answers[1]["findings"]) == 3
    for taken in (["--data", str(tmp_path / "saved")], ["--save", str(tmp_path / "saved")]):
        refused = run_cli("audit", image, *taken, "--save", str(tmp_path / "saved"))
        assert refused.code == UsageError.exit_code, refused


def test_the_packages_of_a_lock_are_compared_before_a_build(run_cli: Cli, tmp_path: Path) -> None:
    old = Deb(name="libexpat1", version="2.5.0-1", architecture="amd64")
    base = {"bootstrap": "docker", "reference": "a.example/b:1", "digest": f"sha256:{'1' * 64}"}
    file = "planted_py-1.2-py3-none-any.whl"
    wheel = replace(LOCK.wheels[0], name="planted-py", version="1.2", file=file)
    lock = replace(LOCK, debs=(old,), wheels=(wheel,), sources=(), base=base)
    (tmp_path / "x.toml").write_text(lock_file.text(lock))
    audit = planted.data(tmp_path / "data") / "audit"
    with tarfile.open(tmp_path / "b.tar", "w") as bundle:
        bundle.add(tmp_path / "x.toml", "pylock.toml")
        bundle.add(audit, "audit")
    for words in ([f"{tmp_path}/x.toml", "--data", f"{audit.parent}"], [f"{tmp_path}/b.tar"]):
        done = run_cli("audit", *words, "--json")
        answer = json.loads(done.out)
        rules = [item["rule"] for item in answer["findings"]]
        assert (done.code, rules) == (1, ["security-update", "vulnerability", "yanked"])
        assert "base image a.example/b:1: --data asks no registry" in answer["unchecked"]
    planted.docker_archive(tmp_path / "image.tar", "debian")
    refused = run_cli("audit", f"{tmp_path}/image.tar")
    assert refused.code == UsageError.exit_code
    assert f"docker-archive:{tmp_path}/image.tar" in refused.err


@pytest.mark.parametrize(
    ("data", "code", "text"),
    [
        (_rpm_without_packages(), 1, "packages of rocky: no database of dpkg or rpm can be read"),
        (b"no database", 2, "its rpm database cannot be read"),
    ],
)
def test_a_database_that_tells_nothing_is_said(
    run_cli: Cli, tmp_path: Path, data: bytes, code: int, text: str
) -> None:
    image = planted.sif(tmp_path / "x.sif", "rocky", rpm=data)
    done = run_cli("audit", image, "--data", str(planted.data(tmp_path)))
    assert done.code == code
    assert text in done.out + done.err


def test_up_to_date_packages_are_no_finding(run_cli: Cli, tmp_path: Path) -> None:
    image, folder = planted.sif(tmp_path / "x.sif", "debian"), planted.data(tmp_path)
    for name in ("bookworm-security/InRelease", "bookworm-security/main/binary-amd64/Packages.xz"):
        (folder / "audit/debian-security/dists" / name).unlink()
    (
        folder / "audit/debian-security/dists/bookworm-security/main/binary-amd64/Packages"
    ).write_text("Package: libexpat1\nVersion: 2.5.0-1\n")
    planted.dump(folder / "audit/osv/PyPI.zip", withdrawn="2026-01-01")
    (folder / "audit/pypi/planted-py.json").unlink()
    done = run_cli("audit", image, "--data", str(folder))
    assert done.code == 0
    assert done.out.startswith("0 findings in")


def test_incomparable_packages_are_named(run_cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "audit").mkdir()
    image = planted.sif(tmp_path / "x.sif", "debian")
    done = run_cli("audit", image, "--data", str(tmp_path))
    assert done.code == 0
    assert done.out.count("not compared: ") == 3


@pytest.mark.parametrize(
    ("name", "text", "reason"),
    [
        ("all.zip", b"no zip", "is no whole zip file"),
        ("damaged.zip", _zip("x.json", '{"id": "X"}', damaged=True), "is no whole zip file"),
        ("other.zip", _zip("file.txt", "text"), "has no vulnerability of Python packages"),
        ("debian.zip", _zip("x.json", '{"id": "X"}'), "has no vulnerability of Python packages"),
        ("missing.zip", None, "there is no such file"),
        ("", None, "has no zip file"),
    ],
)
def test_a_dump_that_is_none_is_refused(
    run_cli: Cli, tmp_path: Path, name: str, text: bytes | None, reason: str
) -> None:
    if text is not None:
        (tmp_path / name).write_bytes(text)
    image, folder = planted.sif(tmp_path / "x.sif", "debian"), planted.data(tmp_path)
    done = run_cli("audit", image, "--data", str(folder), "--osv", str(tmp_path / name))
    assert done.code == UsageError.exit_code
    assert reason in done.err
    assert name in done.err


@pytest.mark.parametrize("changes", [{"affected": [{"package": 3}]}, {"affected": 3}])
def test_a_document_that_is_none_is_refused(
    run_cli: Cli, tmp_path: Path, changes: dict[str, object]
) -> None:
    image, folder = planted.sif(tmp_path / "x.sif", "debian"), planted.data(tmp_path)
    planted.dump(folder / "audit/osv/PyPI.zip", **changes)
    done = run_cli("audit", image, "--data", str(folder))
    assert done.code == UsageError.exit_code
    assert "is no OSV document" in done.err


@pytest.mark.parametrize("name", ["audit/../../x", "audit/link"])
def test_a_bundle_that_leads_elsewhere_is_refused(run_cli: Cli, tmp_path: Path, name: str) -> None:
    with tarfile.open(tmp_path / "b.tar", "w") as bundle:
        entry = tarfile.TarInfo(name)
        if name.endswith("link"):
            entry.type, entry.linkname = tarfile.SYMTYPE, "/etc"
        bundle.addfile(entry)
    image = planted.sif(tmp_path / "x.sif", "debian")
    done = run_cli("audit", image, "--data", str(tmp_path / "b.tar"))
    assert done.code == UsageError.exit_code
    assert name in done.err


@pytest.mark.parametrize(
    ("version", "events", "expected"),
    [
        ("1.2", [{"introduced": "0"}, {"fixed": "1.2"}], False),
        ("1.2", [{"introduced": "1.2"}, {"last_affected": "1.2"}], True),
        ("1.3", [{"introduced": "1.2"}, {"last_affected": "1.2"}], False),
        ("3.0", [{"fixed": "2.0"}, {"introduced": "0"}, {"introduced": "3.0"}], True),
        ("2.5", [{"introduced": "3.0"}, {"fixed": "2.0"}, {"introduced": "0"}], False),
    ],
)
def test_the_last_event_at_or_below_a_version_decides(
    version: str, events: list[dict[str, str]], *, expected: bool
) -> None:
    affected = {"ranges": [{"type": "ECOSYSTEM", "events": events}]}
    assert osv._is_affected(version, affected) is expected  # noqa: SLF001


def test_a_base_that_moved_and_a_pin_that_changed_are_found(
    run_cli: Cli, project: Path, mirrors_file: MirrorsFile
) -> None:
    """Compare with the record of a site's image."""
    image = project / "build/here/small/image.sif"
    image.parent.mkdir(parents=True)
    write_sif(image, squashfs_of())
    give_record(image)
    record = json.loads(image.with_name("record.json").read_text())
    with served(project, mirrors_file.folder, run_cli) as upstream, running(Registry()) as registry:
        rules = json.loads((mirrors_file.folder / "mirrors.yaml").read_text())
        mirrors_file.write(json.dumps({**rules, "oci": {"a.example": registry.url}}))
        before, now = (registry.push("base", "1", word) for word in (b"old", b"new"))
        pins = [("the-git", "0" * 40), ("the-archive", sha256(ARCHIVES["/toy-1.0.0.tar.gz"]))]
        sources = [
            {"name": name, "version": "1.0.0", "url": "", "ref": "", "digest": digest}
            for name, digest in pins
        ]
        step = {"layer": "tool", "id": "1", "options": {}, "sources": sources}
        plan = {"site": "here", "image": "small", "id": "1", "steps": [step]}
        base = {"source": "From", "ref": "a.example/base:1", "digest": before}
        document = {**record, "plan": plan, "sources": [base]}
        image.with_name("record.json").write_text(json.dumps(document))
        output = ["--output", str(project / "build")]
        done = run_cli("--project", project, "audit", "here", *output, "--json")
    assert done.code == 1, done.err
    findings = [
        {key: item[key] for key in ("rule", "package", "version", "fixed")}
        for item in json.loads(done.out)["findings"]
    ]
    git = {"rule": "stale-pin", "package": "tool the-git", "version": "1.0.0"}
    assert findings == [
        {"rule": "stale-base", "package": "a.example/base:1", "version": before, "fixed": now},
        {**git, "fixed": upstream.commit},
    ]


def test_without_a_network_the_way_out_is_named(
    run_cli: Cli, tmp_path: Path, mirrors_file: MirrorsFile
) -> None:
    mirrors_file.write(json.dumps({"apt": {"debian-security": "http://127.0.0.1:9/debian"}}))
    done = run_cli("audit", planted.sif(tmp_path / "x.sif", "debian"))
    assert done.code == MachineError.exit_code
    assert "take the data that another machine has saved: --data DIR" in done.err


REPOSITORIES = """\
[baseos]
mirrorlist=https://mirrors.example/?repo=$releasever
#baseurl=http://dl.example/$contentdir/$releasever/BaseOS/${basearch}/
[off]
baseurl=http://off.example
enabled=0
[lists]
metalink=https://lists.example
[odd]
baseurl=http://odd.example/$unknown
"""


@pytest.mark.parametrize(("system", "version"), [("rocky", "9"), ("opensuse-leap", "15.6")])
def test_repositories_are_those_of_the_image(system: str, version: str) -> None:
    package = Package(kind="rpm", name="zlib", version="1-1", architecture="x86_64")
    contents = Inventory(
        system={"ID": system, "VERSION_ID": {"rocky": "9.4"}.get(system, version)},
        packages=(package,),
        sources={"etc/yum.repos.d/a.repo": REPOSITORIES, "etc/dnf/vars/contentdir": "pub/x\n"},
        plan={},
    )
    assert list(rpm_sources.repositories(contents)) == [
        ("baseos", f"http://dl.example/pub/x/{version}/BaseOS/x86_64"),
        ("lists", ""),
        ("odd", ""),
    ]


def test_a_repository_without_updates_is_said(run_cli: Cli, tmp_path: Path) -> None:
    image, folder = planted.sif(tmp_path / "x.sif", "rocky"), planted.data(tmp_path)
    (folder / "audit/rpm/baseos/repodata/repomd.xml").write_text("<repomd/>")
    done = run_cli("audit", image, "--data", str(folder))
    assert "not compared: RPM packages of rpm/baseos: it lists no updates" in done.out
