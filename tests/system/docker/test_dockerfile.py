"""The folder of a rendered Dockerfile, built by the classic builder, by podman and by buildah."""

from __future__ import annotations

import json
import os
import tempfile
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import docker
import pytest
from hypothesis import HealthCheck, Phase, assume, given, settings
from hypothesis import strategies as st

from sifwright.catalog.load_catalog import load_catalog
from sifwright.catalog.script_rules import refuse_text
from sifwright.make_image.publish_image import recipe_folder
from sifwright.plan import resolve
from sifwright.render import oci_config
from sifwright.render.recipe import dockerfile_files
from tests.conftest import run, sifwright
from tests.spread import spread
from tests.system.apptainer.steps import differences, make_root
from tests.system.apptainer.toys import Toy, make_toy
from tests.system.docker.builders import DESCRIBED, Builder, Docker, Podman, tree
from tests.system.docker.daemons import docker_engine, registry
from tests.system.docker.nasty import FILES, NASTY, PATTERNS, SPECIAL, nasty, with_files
from tests.unit import hostile

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from tests.system.apptainer.steps import Tree

pytestmark = pytest.mark.build

NAMES = ("docker", "podman", "buildah")
PLANTED = "planted-4711"
PROXY = f"http://user:{PLANTED}@127.0.0.1:9"
TEXT = """it's "$HOME" \\ `id` # $(id) ${x:-y} end\\"""
# The base image's own environment reaches the steps and stays, as with Apptainer.
BASE_ENV = {"BASE": "of the base", "PATH": "/odd:/usr/sbin:/usr/bin"}
CHANGES = [*(f'ENV {name}="{value}"' for name, value in BASE_ENV.items()), "USER 5:5"]
CHANGES += ['ENTRYPOINT ["/bin/false"]', "WORKDIR /usr"]
ONE = """
[[ $http_proxy == http://user:*@127.* ]]
mkdir -p /opt/one/bin
cp files/data /opt/one/data
printf '%s' "$OPT_TEXT" >/opt/one/text
printf '%s\n' "${BASE-unset}" "$PATH" "$HOME" "$PWD" "$(umask)" "$(id -u)" >/opt/one/seen
"""
TWO = """
printf '%s\n' "$TOY" "$MODE" "$PATH" >/opt/two
printf more >>/opt/one/data
mkdir -m 2750 /opt/folder
chown 33:34 /opt/folder
ln -s ../two /opt/folder/link
ln /opt/two /opt/folder/two
rm /usr/bin/seq
"""
# One a line: what engines pass on of a program's output is cut at 16 KiB without line ends.
SHOW = """
import json
for name in "OPT_", "SET_":
    with open("/opt/seen/" + name, encoding="utf-8", newline="") as file:
        for item in filter(None, file.read().split(chr(0))):
            print(json.dumps(item))
"""
SHOW_FILES = """
import json, os
os.chdir("/opt/files")
files = [os.path.join(top, name)[2:] for top, _, names in os.walk(".") for name in names]
print(json.dumps({name: open(name, encoding="utf-8").read() for name in files}))
"""
TEXTS = st.lists(st.sampled_from(SPECIAL), max_size=12).map("".join)
HEADER = {
    "options": {"text": {"type": "string", "description": "any text", "default": TEXT}},
    "env": {
        "TOY": {"set": "a $b 'c' \"d\" \\"},
        "MODE": {"default": "$soft}"},
        "PATH": {"prepend": "/opt/one/bin"},
    },
}


@dataclass(frozen=True, kw_only=True)
class Places:
    """The builders here, by name, in stores that have the image `base` or can pull it."""

    builders: Mapping[str, Builder]
    registry: str


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Places]:
    folder = tmp_path_factory.mktemp("containers")
    for name in ("engine", "registry", "storage"):
        (folder / name).mkdir()
    root = make_root(folder / "root")
    (root / "tmp").chmod(0o1777)
    (root / "home").mkdir()
    done = run(["tar", "-C", root, "-cf", folder / "root.tar", "."])
    assert done.returncode == 0, done.stderr
    with (
        docker_engine(folder / "engine") as url,
        registry(folder / "registry") as host,
        closing(docker.DockerClient(base_url=url)) as client,
        # Podman takes at most 50 characters.
        tempfile.TemporaryDirectory() as state,
    ):
        _push(client, folder / "root.tar", f"{host}/tiny")
        builders: dict[str, Builder] = {
            name: Podman(folder / "storage", Path(state), name) for name in ("podman", "buildah")
        }
        yield Places(builders={"docker": Docker(client), **builders}, registry=host)


def _push(client: docker.DockerClient, archive: Path, name: str) -> None:
    client.api.import_image_from_data(
        archive.read_bytes(), repository=name, tag="1", changes=CHANGES
    )
    message = client.images.push(name, tag="1")
    assert "error" not in message, message


@pytest.fixture(scope="module")
def toy(places: Places, tmp_path_factory: pytest.TempPathFactory) -> Toy:
    """Make two layers on an image of a registry, which a mirrors file leads to."""
    folder = tmp_path_factory.mktemp("toy")
    project = make_toy(folder / "project", folder)
    base = {"Bootstrap": "docker", "From": "registry.example/tiny:1"}
    project.layer("base-local", "true\n", header={"bootstrap": base, "provides": ["base"]})
    project.layer("one", ONE, header=HEADER)
    (project.folder / "defs/layers/one/files").mkdir()
    (project.folder / "defs/layers/one/files/data").write_bytes(bytes(range(256)))
    project.layer("two", TWO, test="test -s /opt/two\n")
    project.image("one", "two")
    rules = {"oci": {"registry.example": f"http://{places.registry}"}}
    (folder / "mirrors.yaml").write_text(json.dumps(rules))
    return project


def _render(toy: Toy, *words: object) -> str:
    mirrors = str(toy.folder.parent / "mirrors.yaml")
    command = ("--project", toy.folder, "render", "local", "toy", *words)
    done = sifwright(*command, cwd=toy.folder, env={**os.environ, "SIFWRIGHT_MIRRORS": mirrors})
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return this machine's settings, with a proxy that must not appear later."""
    folder = tmp_path_factory.mktemp("machine") / "settings"
    done = sifwright("host-settings", folder, env={**os.environ, "http_proxy": PROXY})
    assert done.returncode == 0, done.stderr
    assert f"-v {folder}/mnt:/mnt:ro -v {folder}/machine:/mnt/machine:ro" in done.stdout
    return folder


@pytest.fixture(scope="module")
def build(places: Places, toy: Toy, machine: Path) -> Callable[[str], Builder]:
    """Build the toy with one of them, once; beside its files lies what must not travel."""
    context = toy.folder / "context"
    assert "@sha256:" not in _render(toy, "--format", "dockerfile", "--output", "-")
    _render(toy, "--format", "dockerfile", "--output", context)
    assert f"FROM {places.registry}/tiny@sha256:" in (context / "Dockerfile").read_text()
    (context / "secret").write_text(PLANTED)
    (context / "layers/one/secret").write_text(PLANTED)
    (context / "layers/one/outside").symlink_to("/etc/passwd")
    (context / "runner/outside").symlink_to("/")
    built: set[str] = set()

    def build_once(name: str) -> Builder:
        if name not in built:
            settings = ("", machine) if name != "docker" else (PROXY, None)
            places.builders[name].build(context, f"toy:{name}", *settings)
            built.add(name)
        return places.builders[name]

    return build_once


@pytest.fixture(scope="module")
def apptainer_tree(engine: str, toy: Toy, places: Places) -> Tree:
    """Return the tree that `apptainer build` makes of the same plan's definition file."""
    definition, sif = toy.folder / "toy.def", toy.folder / "toy.sif"
    definition.write_text(_render(toy, "--single-file"))
    assert f"From: {places.registry}/tiny:1" in definition.read_text()
    env = {**os.environ, "APPTAINER_NOHTTPS": "true", "http_proxy": PROXY}
    done = run([engine, "build", "--fakeroot", sif, definition], env=env)
    assert done.returncode == 0, done.stdout + done.stderr
    done = run([engine, "exec", "--fakeroot", "--containall", "--no-home", sif, *DESCRIBED])
    assert done.returncode == 0, done.stderr
    return tree(done.stdout)


@pytest.mark.parametrize("name", spread(NAMES, ["docker", "podman"]))
def test_tree_is_that_of_the_definition_file(
    build: Callable[[str], Builder], apptainer_tree: Tree, name: str
) -> None:
    output = tree(build(name).output(f"toy:{name}", DESCRIBED))
    assert differences(output, apptainer_tree) == {}
    assert {"opt/one/text", "opt/folder/link", "opt/sifwright/tests/two/test.sh"} <= output.keys()
    assert ".sifwright" not in output


@pytest.mark.parametrize("name", spread(NAMES, ["docker"]))
def test_configuration_is_the_one_of_the_plan(
    build: Callable[[str], Builder], toy: Toy, name: str
) -> None:
    config = build(name).config(f"toy:{name}")
    known = load_catalog(toy.folder / "defs", toy.folder)
    wanted = oci_config.image_config(resolve.resolve(known, "local", "toy", []), BASE_ENV)
    assert dict(line.split("=", 1) for line in config["Env"]) == wanted.env
    labels = {key: value for key, value in config["Labels"].items() if "buildah" not in key}
    assert labels == wanted.labels
    assert (config["User"], config["WorkingDir"]) == (wanted.user, wanted.working_dir)
    assert (config.get("Entrypoint") or [], config["Cmd"]) == ([], list(wanted.cmd))


@pytest.mark.parametrize("name", spread(NAMES, ["docker"]))
def test_nothing_of_the_machine_is_in_layers_or_history(
    build: Callable[[str], Builder], tmp_path: Path, name: str
) -> None:
    """Leave out files beside the context's own, and links that lead out of it."""
    builder = build(name)
    history = builder.history(f"toy:{name}")
    assert "/.sifwright/run" in history
    saved = builder.saved(f"toy:{name}", tmp_path / "saved")
    assert b"opt/one/text" in saved
    for word in (PLANTED, "layers/one/outside", "runner/outside"):
        assert word not in history
        assert word.encode() not in saved


def test_a_stranger_can_run_it(build: Callable[[str], Builder]) -> None:
    """Give the default user, who has no account there, a writable home."""
    client = build("docker").client  # type: ignore[attr-defined]
    message = client.containers.run(
        "toy:docker", ["sh", "-c", "id -u; touch ~/x && echo $HOME $PWD"], network_mode="host"
    )
    assert message.decode().split() == ["1000", "/tmp", "/tmp"]


@pytest.mark.all
@pytest.mark.parametrize("name", spread(NAMES, ["docker"]))
def test_values_are_data(places: Places, tmp_path: Path, name: str) -> None:
    values = [*NASTY, *(text for text in hostile.texts(hostile.SEED, 60) if not refuse_text(text))]
    _arrives(places, name, values, tmp_path)


@pytest.mark.parametrize("name", spread(NAMES, ["docker"]))
def test_files_have_any_name(places: Places, tmp_path: Path, name: str) -> None:
    """Keep names with blanks at the end, which engines trim from lines of .dockerignore."""
    base, builder = f"{places.registry}/tiny:1", places.builders[name]
    names = FILES if name == "docker" else (*FILES, *PATTERNS)
    recipe_folder.replace(tmp_path / "context", dockerfile_files(with_files(names, base), base))
    (tmp_path / "context/layers/one/files/trail").write_text(PLANTED)
    builder.build(tmp_path / "context", f"names:{name}", "", None)
    output = builder.output(f"names:{name}", ["python3", "-c", SHOW_FILES])
    assert json.loads(output) == {file_name: file_name for file_name in names}


@pytest.mark.all
@pytest.mark.parametrize("name", ["docker", "buildah"])
@settings(
    max_examples=2,
    deadline=None,
    phases=[Phase.generate],
    suppress_health_check=[HealthCheck.too_slow],
)
@given(values=st.lists(TEXTS, min_size=40, max_size=60, unique=True))
def test_any_value_is_data(places: Places, name: str, values: list[str]) -> None:
    assume(not any(map(refuse_text, values)))
    with tempfile.TemporaryDirectory() as folder:
        _arrives(places, name, values, Path(folder))


def _arrives(places: Places, name: str, values: list[str], folder: Path) -> None:
    """Compare the plan's value in the script, in later layers' scripts and in the image."""
    base, builder = f"{places.registry}/tiny:1", places.builders[name]
    result = nasty(values, base)
    recipe_folder.replace(folder / "context", dockerfile_files(result.plan, base))
    builder.build(folder / "context", f"nasty:{name}", "", None)
    config = builder.config(f"nasty:{name}")
    wanted = oci_config.image_config(result.plan, BASE_ENV)
    assert dict(line.split("=", 1) for line in config["Env"]) == wanted.env
    assert wanted.labels.items() <= config["Labels"].items()
    output = builder.output(f"nasty:{name}", ["python3", "-c", SHOW])
    seen = dict(json.loads(line).split("=", 1) for line in output.splitlines())
    declared = oci_config.image_config(result.plan, {}).env
    assert seen == {**result.given, **{key: declared[key] for key in result.declared}}
