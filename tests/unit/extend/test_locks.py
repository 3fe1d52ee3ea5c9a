"""Lock files of other tools: what an image gets of them, and what is refused."""

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import tomli_w
import yaml

from sifwright.catalog.model import Catalog, ImageSlot
from sifwright.errors import UsageError
from sifwright.extend.extended_image import Extension, check, extended
from sifwright.extend.locks.read_lock import read_locked
from sifwright.extend.read_requirements import Requirements
from sifwright.extend.saved_extension import SavedExtension, with_known
from sifwright.host.network import sdist
from sifwright.plan.model import Plan
from sifwright.plan.resolve import resolve

INDEX = "https://index.example/simple"
FILES = "https://files.example"
ZEROS, ONES = "0" * 64, "1" * 64
PURE = "toy-1.0-py3-none-any.whl"
NATIVE = "toy-1.0-cp311-cp311-manylinux_2_17_x86_64.whl"
NEWER = "toy-1.0-cp311-cp311-manylinux_2_36_x86_64.whl"


@pytest.fixture(autouse=True)
def _default_index(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sdist, "default_index", lambda: f"{INDEX}/")


def wheel(name: str = PURE, sha256: str = ZEROS) -> dict[str, Any]:
    return {"url": f"{FILES}/{name}", "hashes": {"sha256": sha256}}


def package(name: str = "toy", **others: Any) -> dict[str, Any]:
    return {"name": name, "version": "1.0", "index": INDEX, **others}


def pylock(*packages: dict[str, Any], **others: object) -> str:
    head = {"lock-version": "1.0", "created-by": "test", **others}
    return tomli_w.dumps({**head, "packages": packages})


class Locks:
    """Files in a folder, read for the image pytorch of site local, which has Python 3.11."""

    def __init__(self, folder: Path, catalog: Catalog) -> None:
        self.folder = folder
        self.catalog = catalog
        self.notes: list[str] = []

    def read(self, text: str, name: str = "pylock.toml", *settings: str) -> Requirements:
        file = self.folder / name
        file.write_text(text)
        requirements, notes = read_locked(file, self.catalog, "local", "pytorch", settings)
        self.notes = [note.replace(f"{self.folder}/", "") for note in notes]
        return requirements

    def lines(self, text: str, name: str = "pylock.toml") -> list[str]:
        return self.read(text, name).text.splitlines()

    def refusal(self, text: str, name: str = "pylock.toml") -> list[str]:
        """Return the first line of each problem, without the file."""
        with pytest.raises(UsageError) as caught:
            self.read(text, name)
        problems = caught.value.problems
        assert all(problem.where.startswith(str(self.folder)) for problem in problems)
        assert all(problem.fix for problem in problems)
        return [problem.what for problem in problems]


@pytest.fixture
def locks(tmp_path: Path, real: Catalog) -> Locks:
    return Locks(tmp_path, real)


def test_each_wheel_that_fits_some_image(locks: Locks) -> None:
    others = ["toy-1.0-cp312-cp312-manylinux_2_17_x86_64.whl", "toy-1.0-cp311-cp311-win_amd64.whl"]
    files = [wheel(PURE), *map(wheel, others), wheel(NATIVE, ONES), wheel(NEWER, "2" * 64)]
    (line,) = locks.lines(pylock(package(wheels=files)))
    hashes = [word.removeprefix("--hash=sha256:")[0] for word in line.split()[1:]]
    assert (line.split()[0], hashes) == ("toy==1.0", ["1", "2", "0"])


def test_markers_and_groups_are_those_of_the_image(locks: Locks) -> None:
    named = {
        "a": "python_version < '3.12'",
        "b": "sys_platform == 'win32'",
        "c": "platform_machine == 'x86_64'",
        "d": "'dev' in dependency_groups",
        "e": "'x' in extras",
    }
    packages = [
        package(name, marker=marker, wheels=[wheel(f"{name}-1.0-py3-none-any.whl")])
        for name, marker in named.items()
    ]
    assert [line[0] for line in locks.lines(pylock(*packages))] == ["a", "c"]


def test_a_marker_of_one_patch_release_is_the_images_business(locks: Locks) -> None:
    marker = "python_full_version < '3.11.3'"
    text = pylock(package(marker=marker, wheels=[wheel()]))
    # Options of the layer that is not in the image yet may be set.
    requirements = locks.read(text, "pylock.toml", "python-packages.imports=false")
    expected = 'toy==1.0; python_full_version < "3.11.3"'
    assert requirements.text == f"{expected} --hash=sha256:{ZEROS}\n"


@pytest.mark.parametrize("source", ["wheels", "archive"])
def test_from_another_index_by_its_address(locks: Locks, source: str) -> None:
    entry: dict[str, Any] = {"name": "toy", "version": "1.0"}
    entry |= {"archive": wheel()} if source == "archive" else {"wheels": [wheel()], "index": FILES}
    assert locks.lines(pylock(entry)) == [f"toy @ {FILES}/{PURE}#sha256={ZEROS}"]


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ({"sdist": wheel("toy-1.0.tar.gz")}, "toy has no wheel, and what it needs to build one"),
        (
            {"wheels": [wheel("toy-1.0-cp311-cp311-win_amd64.whl")]},
            "toy has no wheel for Python 3.11 on Linux, x86_64",
        ),
        ({"wheels": [wheel(PURE) | {"hashes": {"md5": "0"}}]}, "toy has no hash that pip compares"),
        (
            {"vcs": {"type": "git", "url": "https://x.example/a", "commit-id": "0" * 40}},
            "toy comes from git, and pip cannot compare a commit with a hash",
        ),
        ({"directory": {"path": "../toy"}}, "toy is a folder of another machine (../toy)"),
        ({"archive": wheel("toy-1.0.zip")}, "toy has no wheel, and what it needs to build one"),
        (
            {"wheels": [wheel() | {"url": f"https://me:secret@x.example/{PURE}"}], "index": FILES},
            "the address of toy holds a login, which the image would show to all",
        ),
        (
            {"wheels": [wheel() | {"url": f"https://x.example/a b/{PURE}"}], "index": FILES},
            "toy has an address that is none",
        ),
    ],
)
def test_no_file_that_can_be_installed(locks: Locks, entry: dict[str, Any], message: str) -> None:
    base = {"name": "toy", "version": "1.0"} | ({"index": INDEX} if "wheels" in entry else {})
    other = package("other", sdist=wheel("other-1.0.tar.gz"))
    first, second = locks.refusal(pylock(base | entry, other))
    assert first.startswith(message)
    assert second.startswith("other has no wheel")
    assert "secret" not in first


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (pylock(**{"requires-python": ">=3.12"}), "it is for Python >=3.12"),
        (pylock(environments=["sys_platform == 'win32'"]), "Provided environment does not satisfy"),
        (pylock(), "it locks no Python package for this image"),
        (pylock(package(wheels=[{"url": f"{FILES}/{PURE}"}])), "not a lock file: "),
        (pylock(package(), **{"lock-version": "9.0"}), "not a lock file: "),
        ("a = [", "not a lock file: "),
    ],
)
def test_no_lock_of_this_image(locks: Locks, text: str, message: str) -> None:
    (refusal_text,) = locks.refusal(text)
    assert refusal_text.startswith(message)


def test_files_that_are_none(locks: Locks) -> None:
    with pytest.raises(UsageError, match=r"poetry export --format pylock\.toml -o pylock\.toml"):
        locks.read("", "poetry.lock")
    (locks.folder / "uv.lock").mkdir()
    with pytest.raises(UsageError, match="cannot be read: not a regular file"):
        read_locked(locks.folder / "uv.lock", locks.catalog, "local", "pytorch", [])


@pytest.mark.parametrize("version", ["2.13.0", "2.13.0+cpu"])
def test_the_images_torch_stays(locks: Locks, version: str) -> None:
    name = f"torch-{version}-cp311-cp311-manylinux_2_28_x86_64.whl"
    torch = {"name": "torch", "version": version, "wheels": [wheel(name)], "index": FILES}
    assert len(locks.lines(pylock(torch, package(wheels=[wheel()])))) == 1
    assert locks.notes == ["pylock.toml: the image keeps its own torch 2.13.0+cpu"]


def test_another_torch_is_refused(locks: Locks) -> None:
    torch = package("torch", version="2.12.0", wheels=[wheel("torch-2.12.0-py3-none-any.whl")])
    message = locks.refusal(pylock(torch))
    assert message == ["it has torch ==2.12.0, and the image has torch 2.13.0+cpu"]


def uv_package(name: str, source: dict[str, str], **others: Any) -> dict[str, Any]:
    return {"name": name, "version": "1.0", "source": source, **others}


def uv_lock(*packages: dict[str, Any]) -> str:
    return tomli_w.dumps({"version": 1, "requires-python": ">=3.8", "package": packages})


ROOT = uv_package("mine", {"editable": "."}, dependencies=[{"name": "toy"}])
TOY = {"url": f"{FILES}/{PURE}", "hash": f"sha256:{ZEROS}", "size": 1}


def test_uv_lock(locks: Locks) -> None:
    """Take the project's needs, without its groups, and without the project."""
    unused = uv_package(
        "unused",
        {"registry": INDEX},
        wheels=[TOY | {"url": f"{FILES}/unused-1.0-py3-none-any.whl"}],
    )
    text = uv_lock(ROOT, uv_package("toy", {"registry": INDEX}, wheels=[TOY]), unused)
    assert locks.lines(text, "uv.lock") == [f"toy==1.0 --hash=sha256:{ZEROS}"]
    assert locks.notes == ["uv.lock: mine is the project itself, and not installed"]


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ({"editable": "../toy"}, "toy is a folder of another machine"),
        ({"git": "https://x.example/toy.git?rev=main#" + "0" * 40}, "toy comes from git, and"),
        ({"git": "https://x.example/toy.git"}, "uv cannot read it: "),
        ({"registry": INDEX}, "uv cannot read it: "),
    ],
)
def test_uv_lock_of_what_no_index_has(locks: Locks, source: dict[str, str], message: str) -> None:
    extra = {"wheels": "none"} if "registry" in source else {}
    (refusal_text,) = locks.refusal(uv_lock(ROOT, uv_package("toy", source, **extra)), "uv.lock")
    assert refusal_text.startswith(message)
    assert str(locks.folder.parent) not in refusal_text


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (uv_lock(uv_package("toy", {"registry": INDEX})), "it has no project in its own folder"),
        ("package = 1", "not a lock file of uv: "),
        ("version =", "not a lock file of uv: "),
    ],
)
def test_no_uv_lock(locks: Locks, text: str, message: str) -> None:
    (refusal_text,) = locks.refusal(text, "uv.lock")
    assert refusal_text.startswith(message)


CHANNEL = "https://conda.example/forge/linux-64"


def conda(name: str, version: str = "1.0", *depends: str) -> dict[str, Any]:
    return {"conda": f"{CHANNEL}/{name}-{version}-h0_0.conda", "md5": "0" * 32, "depends": depends}


def pypi(**others: Any) -> dict[str, Any]:
    return {"pypi": f"{FILES}/{PURE}", "name": "toy", "version": "1.0", "sha256": ZEROS, **others}


def pixi(entries: Iterable[dict[str, Any]], platform: str = "linux-64", **others: Any) -> str:
    listed = [{**entry, "depends": [*entry.get("depends", ())]} for entry in entries]
    keys = [{kind: entry[kind] for kind in ("pypi", "conda") if kind in entry} for entry in listed]
    environments = {"default": {"packages": {platform: keys}}}
    data = {"version": 6, "environments": environments, "packages": listed}
    return yaml.dump(data | others)


EMPTY: dict[str, Any] = {"default": {"packages": {}}}
PYTHON = (conda("python", "3.11.9", "openssl >=3", "__glibc"), conda("openssl", "3.0"))


@pytest.mark.parametrize("version", [6, 7])
def test_pixi_lock(locks: Locks, version: int) -> None:
    """Use the image's own Python in place of conda's, and of its dependencies."""
    text = pixi([*PYTHON, pypi(), pypi(pypi="./", name="mine")], version=version)
    assert locks.lines(text, "pixi.lock") == [f"toy==1.0 --hash=sha256:{ZEROS}"]
    assert locks.notes[0] == "pixi.lock: the image's own Python 3.11 does for that of conda"


def test_pixi_lock_of_format_5(locks: Locks) -> None:
    entries = [*PYTHON, pypi(), pypi(pypi="./", name="mine")]
    data = yaml.safe_load(pixi(entries, version=5))
    for item in data["packages"]:
        item["kind"] = next(kind for kind in ("pypi", "conda") if kind in item)
        address = item.pop(item["kind"])
        item["url" if "://" in address else "path"] = address
    assert locks.lines(yaml.dump(data), "pixi.lock") == [f"toy==1.0 --hash=sha256:{ZEROS}"]


def test_pixi_lock_with_a_platform_of_its_own_name(locks: Locks) -> None:
    platforms = [{"name": "cluster", "subdir": "linux-64"}]
    text = pixi([*PYTHON, pypi()], platform="cluster", version=7, platforms=platforms)
    assert len(locks.lines(text, "pixi.lock")) == 1


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (pixi([*PYTHON, pypi()], version=4), "format 4 of pixi.lock; formats 5 to 7 can be read"),
        (
            pixi([*PYTHON, pypi()], platform="osx-arm64"),
            "its environment 'default' locks nothing for linux-64, only for osx-arm64",
        ),
        (pixi([], environments=EMPTY), "its environment 'default' locks nothing for linux-64"),
        (pixi([conda("python", "3.12.1"), pypi()]), "it is for Python ==3.12.*"),
        (
            pixi([*PYTHON, conda("gdal"), pypi()]),
            "it locks packages of conda (gdal), and the image",
        ),
        (pixi([*PYTHON, pypi(sha256=None)]), "not a lock file of pixi: "),
        (pixi([*PYTHON, pypi(pypi="../toy")]), "toy is a folder of another machine (../toy)"),
        (pixi([*PYTHON, pypi(pypi="git+https://x.example/a#" + "0" * 40)]), "toy comes from git"),
        (pixi([*PYTHON, pypi(pypi=f"{FILES}/toy-1.0.tar.gz")]), "toy has no wheel, and what it"),
        (pixi([*PYTHON, pypi()], packages=[]), "not a lock file of pixi: "),
        ("version: 6", "not a lock file of pixi: "),
        ("- 1", "not a lock file: no mapping of names"),
        ("a: [", "not a lock file: "),
    ],
)
def test_no_pixi_lock_of_this_image(locks: Locks, text: str, message: str) -> None:
    (refusal_text,) = locks.refusal(text, "pixi.lock")
    assert refusal_text.startswith(message)


def environment(*pip: str, conda_names: tuple[str, ...] = ("python=3.11", "pip")) -> str:
    return yaml.dump({"name": "x", "dependencies": [*conda_names, {"pip": [*pip]}]})


LOCKED = f"toy==1.0 --hash=sha256:{ZEROS}"


def test_environment_file(locks: Locks) -> None:
    text = environment(LOCKED, LOCKED.replace("toy==1.0", "torch==2.13.0"))
    assert locks.lines(text, "environment.yml") == [LOCKED]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (environment("toy==1.0"), "toy==1.0 is not locked: it needs NAME==VERSION and a --hash"),
        (environment(LOCKED.replace("==", ">=")), "toy>=1.0 is not locked"),
        (environment(LOCKED.replace("1.0", "1.*")), "toy==1.* is not locked"),
        (environment(LOCKED, conda_names=("python=3.12",)), "it is for Python ==3.12.*"),
        (environment(LOCKED, conda_names=("numpy",)), "numpy is a package of conda, and the image"),
        ("name: x", "it has no list 'dependencies'"),
    ],
)
def test_environment_file_that_locks_nothing(locks: Locks, text: str, message: str) -> None:
    (refusal_text,) = locks.refusal(text, "environment.yml")
    assert refusal_text.startswith(message)


@pytest.fixture
def with_conda(locks: Locks) -> Locks:
    """Return the same image on conda's Python."""
    image = locks.catalog.images["pytorch"]
    others = [slot for slot in image.layers if not {"python-venv", "build-tools"} & {*slot.choices}]
    new = [ImageSlot(choices=(name,)) for name in ("build-tools", "conda")]
    slots = [*others[:2], *new, *others[2:]]
    catalog = locks.catalog
    locks.catalog = replace(
        catalog, images={**catalog.images, "pytorch": replace(image, layers=tuple(slots))}
    )
    return locks


def _plan(locks: Locks, requirements: Requirements) -> Plan:
    extension = Extension(name="mine", image="pytorch", requirements=requirements)
    held = check(locks.catalog, "local", extension, [])
    SavedExtension.of(extension, held).write(locks.folder / "local" / "mine")
    known = with_known(locks.catalog, locks.folder, "local", "mine")
    plan = resolve(extended(locks.catalog, extension, held), "local", "mine", [])
    assert resolve(known, "local", "mine", []).id == plan.id
    return plan


def _locked(plan: Plan) -> list[str]:
    (file,) = (file for file in plan.steps[-1].files if file.path == "files/locked.txt")
    return file.data.decode().splitlines()


def test_the_layer_knows_what_is_locked(locks: Locks) -> None:
    """Know it also in the image that is read back from its folder."""
    entries = [
        package(wheels=[wheel()]),
        {"name": "b", "version": "2", "archive": wheel("b-2-py3-none-any.whl")},
    ]
    plan = _plan(locks, locks.read(pylock(*entries)))
    assert _locked(plan) == ["b==2", "toy==1.0"]


def test_conda_makes_the_environment_of_pixi_lock(with_conda: Locks) -> None:
    plan = _plan(with_conda, with_conda.read(pixi([*PYTHON, conda("gdal"), pypi()]), "pixi.lock"))
    (step,) = (step for step in plan.steps if step.layer.name == "conda")
    addresses = [word.partition("#")[0] for word in step.options["explicit"].text.split()]
    assert addresses == [item["conda"] for item in (*PYTHON, conda("gdal"))]
    assert step.options["python"].text == "3.11"
    names = ["conda gdal-1.0-h0_0", "conda openssl-3.0-h0_0", "conda python-3.11.9-h0_0"]
    assert _locked(plan) == [*names, "toy==1.0"]


def test_the_project_itself_is_no_package_of_conda(with_conda: Locks) -> None:
    own = {"conda": ".", "name": "mine", "version": "1.0"}
    wanted = with_conda.read(pixi([*PYTHON, pypi(), own]), "pixi.lock")
    assert len(wanted.conda["explicit"].split()) == len(PYTHON)
    assert with_conda.notes == ["pixi.lock: mine is the project itself, and not installed"]


def test_a_lock_of_packages_of_conda_only(with_conda: Locks) -> None:
    plan = _plan(with_conda, with_conda.read(pixi([*PYTHON, conda("gdal")]), "pixi.lock"))
    assert _locked(plan) == [
        f"conda {name}-h0_0" for name in ("gdal-1.0", "openssl-3.0", "python-3.11.9")
    ]
    texts = {file.path: file.data for file in plan.steps[-1].layer.files}
    assert texts["files/requirements.txt"] == b""
    assert plan.image.description.endswith("with packages of conda")


def test_conda_makes_the_environment_of_exact_entries(with_conda: Locks) -> None:
    exact = ("conda-forge::gdal=3.9=h0_0", "python=3.11.9=h0_0", "pip=24=h0_0")
    text = environment(LOCKED, conda_names=exact)
    plan = _plan(with_conda, with_conda.read(text, "environment.yml"))
    (step,) = (step for step in plan.steps if step.layer.name == "conda")
    assert step.options["packages"].text == "gdal=3.9=h0_0 python=3.11.9=h0_0 pip=24=h0_0"
    assert _locked(plan)[0] == "conda gdal-3.9-h0_0"


@pytest.mark.parametrize(
    ("text", "name", "message"),
    [
        (pixi([*PYTHON, conda("pytorch"), pypi()]), "pixi.lock", "it locks conda's pytorch"),
        (pixi([*PYTHON, conda("a") | {"md5": ""}]), "pixi.lock", "it has no hash of conda's a"),
        (pixi([conda("a"), pypi()]), "pixi.lock", "it locks no Python of conda"),
        (environment(LOCKED, conda_names=("a=1",)), "environment.yml", "a=1 is not exact"),
    ],
)
def test_conda_cannot_make_it(with_conda: Locks, text: str, name: str, message: str) -> None:
    (refusal_text,) = with_conda.refusal(text, name)
    assert refusal_text.startswith(message)
