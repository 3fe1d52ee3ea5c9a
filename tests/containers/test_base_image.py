"""Images on somebody else's, from wherever that is kept: inspected, built, tested, held to it."""

from __future__ import annotations

import hashlib
import io
import json
import os
import shutil
import signal
import subprocess
import sys
import tarfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.cluster.slurm import absent, command_of, wait_for
from tests.conftest import ROOT, run, sifwright
from tests.containers import bases
from tests.containers.bases import Layout
from tests.containers.conftest import require
from tests.containers.daemons import docker_engine, podman_service, registry
from tests.engine.trees import unpack
from tests.registries import Registry, running

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.build

PROGRAMS = ("skopeo", "dockerd", "docker-registry")
KINDS = ("docker", "oci", "oci-archive", "docker-archive", "docker-daemon", "podman")
ENVIRONMENT = {"PATH": "/usr/bin:/bin", "NCCL_NET_PLUGIN": "other", "KEPT": "yes"}
ASK = (
    "import os, torch; print(torch.__version__, torch.__file__, os.environ.get('NCCL_NET_PLUGIN'), "
)
ASK += "os.environ['KEPT'])"
# Files of a Python; digits of a sha256; seconds until a build runs its first step.
MANY, DIGITS, SECONDS = 300, 64, 60
# Bytes that pack to nothing. Where there is no room for them, or for what is packed.
ZEROS = 600_000_000
FULL = {
    "TMPDIR": ("300m", "no space left on device"),
    "SIFWRIGHT_CACHE": ("8m", "mb are needed"),
}
NOWHERE = "http://127.0.0.1:9"
TORCH = "/usr/lib/python3/dist-packages/torch/__init__.py"


@pytest.fixture(scope="session")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A system with a Python and something like a torch."""
    if missing := absent(PROGRAMS):
        if os.environ.get("CI"):
            pytest.fail(f"not installed: {', '.join(missing)}")
        pytest.skip(f"not installed: {', '.join(missing)}")
    made = bases.make_tree(tmp_path_factory.mktemp("bases") / "tree")
    bases.add_torch(made)
    return made


@pytest.fixture(scope="session")
def layout(tree: Path) -> Layout:
    return Layout(folder=tree.parent / "oci", environment=ENVIRONMENT).write(tree)


@dataclass(frozen=True, kw_only=True)
class Site:
    """Builds image base-image of site local, into a folder and with a cache of its own."""

    folder: Path
    env: dict[str, str]

    def words(self, command: str, source: str, *more: str) -> list[str]:
        place = [command, "local", "base-image", "--output", str(self.folder / "build")]
        return [*place, "--set", f"base-image.from={source}", *more]

    def build(self, source: str, *more: str) -> subprocess.CompletedProcess[str]:
        return sifwright(*self.words("build", source, *more), env=self.env)

    def plan(self, source: str, *more: str) -> subprocess.CompletedProcess[str]:
        return sifwright(*self.words("plan", source, *more), env=self.env)

    @property
    def output(self) -> Path:
        return self.folder / "build" / "local" / "base-image"

    @property
    def sif(self) -> Path:
        return self.output / "image.sif"

    def ask(self, engine: str, *command: str) -> str:
        done = run([engine, "exec", "--containall", "--no-home", self.sif, *command])
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    def mirror(self, url: str) -> None:
        """The registry of the tests, instead of the one that names say."""
        Path(self.env["SIFWRIGHT_MIRRORS"]).write_text(
            json.dumps({"oci": {"registry.example": url}})
        )


@pytest.fixture
def site(tmp_path: Path) -> Site:
    places = {"SIFWRIGHT_CACHE": "steps", "APPTAINER_CACHEDIR": "layers"}
    env = {name: str(tmp_path / place) for name, place in places.items()}
    env["SIFWRIGHT_MIRRORS"] = str(tmp_path / "mirrors.yaml")
    made = Site(folder=tmp_path, env={**os.environ, **env})
    made.mirror(NOWHERE)
    return made


# ---- wherever it is kept --------------------------------------------------------------------


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory, layout: Layout) -> Iterator[str]:
    """Debian's registry with the image; its address."""
    with registry(tmp_path_factory.mktemp("registry")) as address:
        layout.copy(f"docker://{address}/group/base:1.0")
        yield f"http://{address}"


@pytest.fixture(scope="session")
def daemon(tmp_path_factory: pytest.TempPathFactory, layout: Layout) -> Iterator[str]:
    """Docker Engine with the image; the address of its socket."""
    with docker_engine(tmp_path_factory.mktemp("engine")) as address:
        layout.copy("docker-daemon:group/base:1.0", "--dest-daemon-host", address)
        yield address


@pytest.fixture(scope="session")
def podman(tmp_path_factory: pytest.TempPathFactory, layout: Layout) -> Iterator[str]:
    """The same with podman."""
    require("podman")
    with podman_service(tmp_path_factory.mktemp("podman")) as address:
        layout.copy("docker-daemon:group/base:1.0", "--dest-daemon-host", address)
        yield address


@pytest.fixture
def source(request: pytest.FixtureRequest, site: Site, layout: Layout, tmp_path: Path) -> str:
    """The same image, kept in the way that the test names."""
    kind = str(request.param)
    if kind == "oci":
        shutil.copytree(layout.folder, tmp_path / "oci")
        return f"oci:{tmp_path}/oci"
    if kind == "docker":
        site.mirror(request.getfixturevalue("server"))
        return "docker://registry.example/group/base:1.0"
    if engine := {"docker-daemon": "daemon", "podman": "podman"}.get(kind):
        site.env["DOCKER_HOST"] = request.getfixturevalue(engine)
        return "docker-daemon:group/base:1.0"
    return layout.copy(f"{kind}:{tmp_path}/base.tar")


@pytest.mark.parametrize("source", KINDS, indirect=True)
def test_its_torch_is_used_wherever_it_is(site: Site, source: str, engine: str) -> None:
    built = site.build(source)
    assert built.returncode == 0, built.stdout + built.stderr
    said = site.ask(engine, "conda-python-simple", "-c", ASK)
    assert said == f"2.8.0+cpu {TORCH} None yes"
    record = json.loads((site.output / "record.json").read_text())
    base, *others = record["plan"]["steps"]
    assert [step["layer"] for step in others] == ["run-scripts"]
    assert base["options"]["torch"]["origin"].startswith(f"inspected {source}@sha256:")
    pinned = record["sources"][0]["digest"] if "docker://" in source else record["base_sha256"]
    assert len(pinned.removeprefix("sha256:")) == DIGITS
    assert f"up to date: {site.sif}" in site.build(source).stdout


def test_the_files_of_the_image_are_kept(
    site: Site, layout: Layout, tree: Path, engine: str, tmp_path: Path
) -> None:
    """All but what the layer says it takes out."""
    assert site.build(layout.name, "--layout", "flat", "--quiet").returncode == 0
    made = unpack(engine, site.sif, tmp_path)
    files = [path.relative_to(tree) for path in tree.rglob("*") if path.is_file()]
    assert len(files) > MANY
    changed = [name for name in files if (made / name).read_bytes() != (tree / name).read_bytes()]
    assert changed == []


# ---- which one it is ------------------------------------------------------------------------


def test_another_archive_of_that_name_is_another_image(
    site: Site, layout: Layout, tree: Path, engine: str, tmp_path: Path
) -> None:
    source = layout.copy(f"oci-archive:{tmp_path}/base.tar")
    assert site.build(source, "--quiet").returncode == 0
    (tmp_path / "base.tar").unlink()
    more = tmp_path / "more"
    (more / "opt").mkdir(parents=True)
    (more / "opt" / "word").write_text("second")
    Layout(folder=tmp_path / "second", environment=ENVIRONMENT).write(tree, more).copy(source)
    again = site.build(source)
    assert again.stdout.splitlines()[-2].startswith("built: "), again.stdout + again.stderr
    assert site.ask(engine, "cat", "/opt/word") == "second"


@pytest.fixture
def toy(site: Site, tree: Path) -> Iterator[Registry]:
    """A registry that a test can spoil, with the image."""
    with running(Registry()) as served:
        site.mirror(served.url)
        served.push("group/base", "1.0", _layer(tree))
        yield served


def _planned_torch(planned: subprocess.CompletedProcess[str]) -> str:
    (line,) = (line for line in planned.stdout.splitlines() if line.strip().startswith("torch = "))
    return line.split()[2]


def test_a_tag_is_held_to_its_digest(site: Site, toy: Registry, tree: Path, tmp_path: Path) -> None:
    """Where it has moved, what was built is what is planned, and nothing is built."""
    source = "docker://registry.example/group/base:1.0"
    assert site.build(source, "--quiet").returncode == 0
    before = site.sif.read_bytes()
    other = tmp_path / "other"
    bases.add_torch(other, "2.7.1+cpu")
    toy.push("group/base", "1.0", _layer(tree, other))
    assert _planned_torch(site.plan(source, "--explain")) == "2.8.0"
    elsewhere = ("--output", str(tmp_path / "elsewhere"))
    assert _planned_torch(site.plan(source, "--explain", *elsewhere)) == "2.7.1"
    refused = site.build(source, "--force")
    assert refused.returncode == 6
    assert "registry.example/group/base:1.0 is not what it was" in refused.stderr
    assert site.sif.read_bytes() == before


@pytest.mark.usefixtures("toy")
def test_without_its_registry_it_is_planned_as_it_was(site: Site) -> None:
    source = "docker://registry.example/group/base:1.0"
    assert site.build(source, "--quiet").returncode == 0
    site.mirror(NOWHERE)
    planned = site.plan(source)
    assert (planned.returncode, planned.stderr) == (0, "")
    assert "every step is cached" in planned.stdout


def test_a_registry_that_serves_another_image_is_not_believed(site: Site, toy: Registry) -> None:
    manifests = toy.manifests["group/base"]
    asked = f"sha256:{'0' * 64}"
    manifests[asked] = manifests["1.0"]
    refused = site.plan(f"docker://registry.example/group/base@{asked}")
    given = hashlib.sha256(manifests["1.0"][1]).hexdigest()
    assert refused.returncode in {2, 4, 5}
    assert asked in refused.stderr
    assert given in refused.stderr
    assert "Traceback" not in refused.stderr


def test_a_login_that_is_missing_is_said(site: Site, toy: Registry) -> None:
    toy.login = "me:secret"
    refused = site.plan("docker://registry.example/group/base:1.0")
    assert refused.returncode != 0
    assert "APPTAINER_DOCKER_USERNAME" in refused.stderr
    assert "secret" not in refused.stderr
    site.env["APPTAINER_DOCKER_USERNAME"], site.env["APPTAINER_DOCKER_PASSWORD"] = "me", "secret"
    assert site.build("docker://registry.example/group/base:1.0", "--quiet").returncode == 0


# ---- refused before anything is built -------------------------------------------------------


def _write(top: Path, *names: str) -> Path:
    for name in names:
        (top / name).parent.mkdir(parents=True, exist_ok=True)
        (top / name).write_text("")
    return top


PYTHON = ("usr/bin/python3.11", "usr/bin/python3", "usr/lib/python3.11/os.py")
REFUSED = {
    "musl": ((*PYTHON, "lib/ld-musl-x86_64.so.1"), "amd64", "local", "its C library is musl"),
    "another processor": (PYTHON, "arm64", "local", "linux/arm64"),
    "no Python": (("usr/bin/perl",), "amd64", "local", "it has no Python"),
    "CPU": (PYTHON, "amd64", "frontier", "torch 2.8.0+cpu is for no GPU"),
    "CUDA": (PYTHON, "amd64", "frontier", "torch 2.8.0+cu126 is for CUDA"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused_with_the_reason(site: Site, tmp_path: Path, name: str) -> None:
    files, processor, where, reason = REFUSED[name]
    top = _write(tmp_path / "tree", *files)
    if where == "frontier":
        cuda = {"cuda": "12.6"} if name == "CUDA" else {}
        bases.add_torch(top, "2.8.0+cu126" if cuda else "2.8.0+cpu", **cuda)
    source = Layout(folder=tmp_path / "oci", processor=processor).write(top).name
    words = ["build", where, "base-image", "--output", str(site.folder / "build")]
    refused = sifwright(*words, "--set", f"base-image.from={source}", env=site.env)
    assert refused.returncode == 4, refused.stderr
    assert f"base-image.from={source} (--set): " in refused.stderr
    assert reason in refused.stderr
    assert not (site.folder / "build").exists()


def test_a_refused_base_is_a_finding_of_lint(site: Site, tmp_path: Path) -> None:
    """Beside what else is to be said of the site; `inspect` calls it refused as well."""
    top = _write(tmp_path / "tree", "usr/bin/perl")
    source = Layout(folder=tmp_path / "oci").write(top).name
    words = ["lint", "slurm-generic", "base-image", "--set", f"base-image.from={source}"]
    found = sifwright(*words, env=site.env)
    assert found.returncode == 4, found.stderr
    assert f"base-image.from={source} (--set): error: it has no Python [plan]" in found.stdout
    assert "note: Everything that differs between clusters" in found.stdout
    last = sifwright("inspect", source, env=site.env).stdout.splitlines()[-1]
    assert last == "as a base    refused: it has no Python"


def test_what_is_not_there_is_said(site: Site) -> None:
    for source in ("oci-archive:none.tar", "docker-archive:none.tar", "oci:none"):
        refused = site.plan(source)
        assert refused.returncode == 4
        assert "none" in refused.stderr
        assert "Traceback" not in refused.stderr
    refused = site.plan("oci-archive:many.tar:one")
    assert refused.returncode == 2
    assert "each of one image" in refused.stderr


# ---- stopped half-way -----------------------------------------------------------------------


# Python runs this before anything else: it goes on as a process that a test can tell from others.
HOLD = """import os, sys
os.execv(sys.executable, ["{name}", "-S", "-c", "import time; time.sleep(600)"])
"""


def _running(name: str) -> bool:
    """Whether a program of that name runs, in a container or not."""
    commands = (command_of(int(path.name)) for path in Path("/proc").glob("[0-9]*"))
    return any(command.startswith(name) for command in commands)


def test_a_build_that_is_killed_leaves_the_image_from_before(
    site: Site, layout: Layout, tree: Path, tmp_path: Path
) -> None:
    assert site.build(layout.name, "--quiet").returncode == 0
    before = site.sif.read_bytes()
    more, name = tmp_path / "more", f"held-{os.getpid()}"
    place = more / "usr" / "lib" / "python3.11" / "sitecustomize.py"
    place.parent.mkdir(parents=True)
    place.write_text(HOLD.format(name=name))
    source = Layout(folder=tmp_path / "second", environment=ENVIRONMENT).write(tree, more).name
    words = [sys.executable, "-m", "sifwright", *site.words("build", source)]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    with subprocess.Popen(words, cwd=ROOT, env=site.env, **quiet) as process:  # type: ignore[call-overload]
        assert wait_for(lambda: _running(name), SECONDS)
        process.send_signal(signal.SIGKILL)
    assert wait_for(lambda: not _running(name), SECONDS)
    assert site.sif.read_bytes() == before
    assert f"up to date: {site.sif}" in site.build(layout.name).stdout


@pytest.mark.skipif(os.geteuid() != 0, reason="mounting a small file system needs root")
@pytest.mark.parametrize("full", FULL)
def test_a_disk_that_gets_full(
    site: Site, layout: Layout, tree: Path, tmp_path: Path, full: str
) -> None:
    """While it is built, by an image that unpacks to far more than its size foretells."""
    size, reason = FULL[full]
    assert site.build(layout.name, "--quiet").returncode == 0
    before = site.sif.read_bytes()
    more, small = tmp_path / "more", tmp_path / "small"
    for folder in (more, small):
        folder.mkdir()
    with (more / "zeros").open("wb") as file:
        file.truncate(ZEROS)
    written = Layout(folder=tmp_path / "second", environment=ENVIRONMENT).write(tree, more)
    source = written.copy(f"oci-archive:{tmp_path}/second.tar")
    assert run(["mount", "-t", "tmpfs", "-o", f"size={size}", "none", small]).returncode == 0
    try:
        done = sifwright(*site.words("build", source), env={**site.env, full: str(small)})
    finally:
        run(["umount", "--lazy", small])
    assert done.returncode in {5, 6, 7}, done.stdout + done.stderr
    assert reason in done.stderr.lower(), done.stderr
    assert site.sif.read_bytes() == before
    assert [path.name for path in site.output.iterdir() if path.name.startswith(".")] == []
    assert f"up to date: {site.sif}" in site.build(layout.name).stdout


def _layer(*trees: Path) -> bytes:
    """What is in the last of them hides what is in the others."""
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w") as tar:
        for tree in trees:
            tar.add(tree, arcname=".")
    return data.getvalue()
