"""Lock files: what they hold, which are refused, and how two differ."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

import pytest

from sifwright.errors import BuildError, MachineError
from sifwright.images.contents.inventory import Inventory
from sifwright.images.contents.packages import Package
from sifwright.make_image import make_lock
from sifwright.make_image.lock import compare_locks, deb_repository, debian, locked_build
from sifwright.make_image.lock.installed import refuse_difference
from sifwright.make_image.lock_format import lock_file
from sifwright.make_image.lock_format.lock_file import Archive, Deb
from sifwright.make_image.resolve_request.base_image import BaseImage
from sifwright.make_image.resolve_request.inspect_base import KnownBase, inspect_base
from sifwright.make_image.resolve_request.recorded_inputs import Inputs
from sifwright.plan.base_request import inspected_facts
from sifwright.plan.resolve import resolve
from sifwright.render.definition import definition
from sifwright.system.progress import QuietProgress
from tests.conftest import run
from tests.unit.locks import LOCK, write_debs

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from sifwright.catalog.model import Catalog
    from sifwright.make_image.cache.store import CacheEntry
    from sifwright.plan.model import Plan


def test_a_lock_is_read_as_it_was_written() -> None:
    text = lock_file.text(LOCK)
    assert lock_file.parse(text, "here") == LOCK
    assert lock_file.text(lock_file.parse(text, "here")) == text


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ("format = 1", "format = 0", "it has format 0, and this release reads format 1"),
        ("[tool.sifwright]\nformat = 1", "[tool.other]\nformat = 1", "it has format none"),
        ('path = "pool/toy_1_all.deb"', 'path = "pool/.."', "the file '..' has the sha256"),
        ('path = "pool/toy_1_all.deb"', 'path = "a/$(id).deb"', "has the sha256"),
        (f'sha256 = "{"d" * 64}"', 'sha256 = "dd"', "has the sha256 'dd'"),
        ("size = 3", 'size = "3"', "size is no int"),
        ('digest = "' + "5" * 40, 'digest = "main', "source code has the digest"),
        ('lock-version = "1.0"', 'lock-version = "9.0"', "version 9.0 is not supported"),
        ("format = 1", "format = ", "is no lock"),
        ("epoch = 1700000000", 'epoch = "now"', "epoch is 'now'"),
        ('base-debian = "', "base-debian = 3 # ", "layers is {'base-debian': 3}"),
        ('suite = "bookworm"', 'suite = "../../x"', "'../../x' is no processor, suite"),
        ('components = "main', 'components = "main /x', "'/x' is no processor, suite"),
        ('date = "2026-01-01T', 'date = "2026-13-01T', "month must be in 1..12"),
        ('processor = "x86_64"', 'processor = "../x"', "'../x' is no processor, suite"),
        ('bootstrap = "debootstrap"', 'bootstrap = "docker"', "the base image has no digest"),
    ],
)
def test_a_file_that_is_no_such_lock_is_refused(old: str, new: str, why: str) -> None:
    text = lock_file.text(LOCK)
    assert old in text
    with pytest.raises(BuildError, match="is no lock that can be used") as refused:
        lock_file.parse(text.replace(old, new), "here.toml")
    assert why in str(refused.value)
    assert "sifwright lock" in str(refused.value)


def test_the_difference_of_two_locks_is_named() -> None:
    (deb, *debs), (wheel,) = LOCK.debs, LOCK.wheels
    new = replace(
        LOCK,
        debs=(replace(deb, version="2", sha256="e" * 64), *debs),
        rpms=(),
        wheels=(replace(wheel, sha256="9" * 64),),
        sources=(),
    )
    assert compare_locks.changes(LOCK, new) == [
        f"debian toy:all: 1 ({'d' * 12}) -> 2 ({'e' * 12})",
        "rpm zlib:x86_64: 1.2-3 -> none",
        f"python numpy: 2.0 ({'a' * 12}) -> 2.0 ({'9' * 12})",
        f"source tool code: v1 {'5' * 40} -> none",
    ]


def test_an_image_that_is_not_that_of_the_lock_is_refused() -> None:
    tool = Deb(name="tool", version="1", architecture="all", only_build=True)
    refuse_difference(replace(LOCK, debs=(*LOCK.debs, tool)), _image("2.0"), "image.sif")
    with pytest.raises(BuildError, match=r"rpm zlib 1\.2-3 x86_64: in the image, not in the lock"):
        refuse_difference(replace(LOCK, rpms=()), _image("2.0"), "image.sif")
    with pytest.raises(BuildError) as refused:
        refuse_difference(LOCK, _image("2.1"), "image.sif")
    assert "python numpy 2.0: in the lock, not in the image" in str(refused.value)
    assert "python numpy 2.1: in the image, not in the lock" in str(refused.value)


def _image(numpy: str) -> Inventory:
    """Return an image with the packages of the lock, and one that is Debian's own."""
    of_debian = "/usr/lib/python3/dist-packages/six.egg-info"
    debs = [
        Package(kind="debian", name=deb.name, version=deb.version, architecture=deb.architecture)
        for deb in LOCK.debs
    ]
    rpms = [
        Package(kind="rpm", name=rpm.name, version=rpm.version, architecture=rpm.architecture)
        for rpm in LOCK.rpms
    ]
    python = [
        Package(kind="python", name="NumPy", version=numpy, folder="/opt/site-packages/n"),
        Package(kind="python", name="own", version="1", folder="/opt/site-packages/o"),
        Package(kind="python", name="six", version="1", folder=of_debian),
    ]
    return Inventory(system={}, packages=(*debs, *rpms, *python), sources={}, plan={})


def test_the_lock_of_another_image_or_plan_is_refused(plan: Plan) -> None:
    with pytest.raises(BuildError, match=f"'pytorch' for site 'local', not of '{plan.image.name}'"):
        locked_build.refuse_other_plan(LOCK, plan)
    layers = {step.layer.name: step.id for step in plan.steps}
    last = plan.steps[-1].layer.name
    own = replace(LOCK, site=plan.site.name, image=plan.image.name, plan=plan.id, layers=layers)
    locked_build.refuse_other_plan(own, plan)
    moved = replace(own, plan="0" * 64, layers={**layers, last: "0" * 64})
    with pytest.raises(BuildError, match=f"layer '{last}' is the first to differ"):
        locked_build.refuse_other_plan(moved, plan)


def test_a_locked_image_does_not_say_where_its_files_were(real: Catalog, tmp_path: Path) -> None:
    plan = resolve(real, "local", "pytorch", [])
    base = BaseImage(step=plan.steps[0])
    inputs = Inputs(base=base, folder=tmp_path, record={}, digest="", lock=LOCK.digest)
    texts = {
        definition(plan, inputs.published({"debian-mirror": folder}))
        for folder in ("/home/ada/files", "/scratch/files")
    }
    (text,) = texts
    assert "\nMirrorURL: (the address of a Debian mirror)\n" in text


def test_archives_of_debian_have_no_address() -> None:
    text = (
        "deb http://mirror.example/debian bookworm main\n"
        "deb [trusted=yes] file:///mnt/0 bookworm-security main contrib\n"
        "deb http://archive.example/ubuntu noble main\n"
        "deb http://archive.example/ubuntu noble universe\n# deb http://no.example x main\n"
        "deb https://developer.download.nvidia.com/compute/cuda/repos/ubuntu2404/x86_64 /\n"
    )
    stanza = "Types: deb\nURIs: http://new.example/u\nSuites: a b\nComponents: main\n"
    mirrors = {"debian-mirror": "http://mirror.example/debian/"}
    named = [
        (item.address, item.suite, item.components)
        for item in debian.archives([text, stanza], mirrors)
    ]
    assert named == [
        ("debian", "bookworm", "main"),
        ("debian-security", "bookworm-security", "main contrib"),
        ("http://archive.example/ubuntu", "noble", "main universe"),
        ("http://new.example/u", "a", "main"),
        ("http://new.example/u", "b", "main"),
    ]


def test_a_plan_is_made_with_the_facts_of_the_lock(real: Catalog, tmp_path: Path) -> None:
    """Use them, or the plan of a locked build would ask the registry."""
    name = "docker://127.0.0.1:9/base:1"
    names, settings = ("local", "base-image"), [f"base-image.from={name}"]
    row = {"python": "3.12", "torch": "2.8.0", "program": "/usr/bin/python3"}
    cells = dict.fromkeys(
        ("cuda", "rocm", "toolkit-cuda", "toolkit-rocm", "mpi", "apt", "plugins", "unset"), ""
    )
    facts = {"origin": "inspected x", "disk-mb": "100", **row, **cells}
    lock = lock_file.parse(lock_file.text(replace(LOCK, facts=facts)), "here")
    known = KnownBase(out=tmp_path, facts=lambda *_: lock.facts)
    catalog = inspect_base(real, names, settings, known, QuietProgress())
    plan = resolve(catalog, *names, settings)
    assert plan.facts["python"] == "3.12"
    assert inspected_facts(catalog, plan) == facts
    text = lock_file.text(replace(LOCK, facts={"python": "3.12"}))
    with pytest.raises(BuildError, match="the facts of the base image are"):
        lock_file.parse(text, "here")


def test_the_archives_of_a_base_image_keep_their_addresses(
    real: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Keep them: a build from the lock would look for Debian's own name at the machine's mirror
    only.
    """
    asked: list[tuple[str, str]] = []

    def listing(archives: Sequence[Archive], *_: object) -> debian.Listing:
        asked.extend((item.address, item.suite) for item in archives)
        return debian.Listing()

    monkeypatch.setattr(debian.Listing, "of", listing)
    address = "http://deb.example/debian"
    manifest = {"kept": {}, "mirrors": {"debian-mirror": address}}
    image = Inventory(
        system={}, packages=(), plan={}, sources={"etc/apt/a.list": f"deb {address} bookworm main"}
    )
    plan = resolve(real, "local", "pytorch", [])
    make_lock._debs(plan, cast("CacheEntry", SimpleNamespace(manifest=manifest)), image, None)  # noqa: SLF001
    assert asked == [(address, "bookworm")]


def test_an_archive_without_suites_is_refused() -> None:
    archive = Archive(address="https://a.example/r", suite="cran40/", components="", date="")
    with pytest.raises(MachineError, match="its suite is the folder 'cran40/', and no lock holds"):
        debian.Listing.of([archive], ["r-base"], "x86_64")


def test_apt_finds_the_locked_packages_and_no_others(tmp_path: Path) -> None:
    debs = write_debs(tmp_path / "repository", "toy", "tool")
    archives = [
        Archive(address="debian", suite="bookworm", components="main", date=""),
        Archive(
            address="debian-security",
            suite="bookworm-security",
            components="main contrib",
            date="2026-11-24T00:34:33Z",
        ),
    ]
    deb_repository.write(tmp_path / "repository", debs[:1], archives, "x86_64", 1_000_000)
    release = tmp_path / "repository/dists/bookworm-security/Release"
    assert "\nDate: Tue, 24 Nov 2026 00:34:33 UTC\n" in release.read_text()
    listed = apt(tmp_path, "dumpavail")
    assert "Package: toy" in listed
    assert f"SHA256: {debs[0].sha256}" in listed
    assert "tool" not in listed


def apt(folder: Path, command: str) -> str:
    """Ask apt-cache about the repository in a folder, with lists of its own."""
    for name in ("lists/partial", "cache/archives/partial"):
        (folder / name).mkdir(parents=True)
    (folder / "status").touch()
    path = f"deb file:{folder}/repository"
    sources = [f"{path} bookworm main\n", f"{path} bookworm-security main contrib\n"]
    (folder / "sources.list").write_text("".join(sources))
    settings = {
        "Dir::Etc::sourcelist": folder / "sources.list",
        "Dir::Etc::sourceparts": "-",
        "Dir::State": folder,
        "Dir::State::status": folder / "status",
        "Dir::Cache": folder / "cache",
        "APT::Sandbox::User": "root",
        "APT::Architecture": "amd64",
        "Acquire::AllowInsecureRepositories": "true",
        "APT::Update::Error-Mode": "any",
    }
    options = [f"-o{name}={value}" for name, value in settings.items()]
    updated = run(["apt-get", *options, "update"])
    assert updated.returncode == 0, updated.stderr
    return run(["apt-cache", *options, command]).stdout


def test_other_files_than_packages_are_refused(tmp_path: Path) -> None:
    for data in (b"", b"!<arch>\n", b"!<arch>\n" + b"x" * 60, b"no archive"):
        (tmp_path / "x.deb").write_bytes(data)
        with pytest.raises(BuildError, match="is no Debian package"):
            deb_repository.control(tmp_path / "x.deb")
