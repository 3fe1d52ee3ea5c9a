"""`sifwright extend`: the image it comes to, how others find it, and what is refused first."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from sifwright.catalog.model import Catalog, ImageStart
from sifwright.extend.extended_image import Extension, check, extended
from sifwright.extend.read_requirements import parse_requirements
from sifwright.extend.saved_extension import FILE
from sifwright.plan.model import Plan
from sifwright.plan.resolve import resolve
from sifwright.render.definition import definition
from tests.unit.conftest import CHECKOUT, MACHINE, Cli


def _plan(real: Catalog, text: str, site: str = "local", constraints: str = "") -> Plan:
    extension = Extension(
        name="mine", image="pytorch", requirements=parse_requirements(text, constraints)
    )
    held = check(real, site, extension, [])
    return resolve(extended(real, extension, held), site, "mine", [])


def test_one_more_layer_on_the_same_others(real: Catalog) -> None:
    base, plan = resolve(real, "local", "pytorch", []), _plan(real, "einops==0.8.1\n")
    assert [step.id for step in plan.steps[:-1]] == [step.id for step in base.steps]
    assert plan.steps[-1].layer.name == "python-packages"
    assert plan.image.description == "pytorch with einops"


def test_it_starts_what_the_image_below_starts(real: Catalog) -> None:
    start = ImageStart(cmd=("train",))
    images = {**real.images, "pytorch": replace(real.images["pytorch"], start=start)}
    plan = _plan(replace(real, images=images), "einops==0.8.1\n")
    assert plan.image.start == start
    assert 'exec /opt/sifwright/runscript "$@"' in definition(plan, MACHINE)


def test_a_line_changes_the_last_step_only(real: Catalog) -> None:
    first, same, other = (
        _plan(real, text) for text in ("a==1\nb\n", "# why\na == 1\n\nb\n", "a==2\nb\n")
    )
    assert first.id == same.id
    assert first.id != other.id
    assert first.steps[-2].id == other.steps[-2].id


def test_the_definition_file_carries_it(real: Catalog) -> None:
    text = definition(_plan(real, "einops==0.8.1\n", constraints="numpy<3\n"), MACHINE)
    assert "\neinops==0.8.1\n" in text
    assert "\nnumpy<3\n" in text


def test_packages_looked_for_and_fetched_ahead(real: Catalog) -> None:
    sha256 = "0" * 64
    text = f"--no-binary=C_c\na==1\ntorch\nb[x]>2; python_version > '3'\nc-c\nd @ https://x.example/d.whl#sha256={sha256}\n"
    layer = _plan(real, text).steps[-1].layer
    assert [download.pip for download in layer.downloads] == [
        "a==1",
        'b[x]>2; python_version > "3"',
    ]


@pytest.mark.parametrize("text", ["torch", "torch==2.13.0", "torch>=2", "torch==2.13.0+cpu"])
def test_the_torch_that_is_there(real: Catalog, text: str) -> None:
    assert _plan(real, f"{text}\n").steps[-1].layer.downloads == ()


@pytest.mark.parametrize(
    ("site", "text", "version"),
    [
        ("local", "torch==2.12.0", "torch 2.13.0+cpu"),
        ("local", "torch==2.13.0+cu128", "torch 2.13.0+cpu"),
        ("lumi", "torchvision<0.20", "torchvision 0.25.0+rocm7.0"),
    ],
)
def test_another_torch_is_refused(
    run_cli: Cli, tmp_path: Path, site: str, text: str, version: str
) -> None:
    file = tmp_path / "r.txt"
    file.write_text(f"a\n{text}\n")
    output = tmp_path / "build"
    message = run_cli("extend", site, "--requirements", file, "--output", output)
    assert message.code == 4
    assert message.err.startswith(
        f"sifwright: {file}:2: {text} would replace the image's {version},"
    )
    assert not output.exists()


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (("local", "nosuch"), 2, "there is no image 'nosuch'"),
        (("nosuch",), 2, "there is no site 'nosuch'"),
        (("local", "--name", "pytorch"), 2, "--name: 'pytorch' is an image under defs/"),
        (("local", "--name", "../x"), 2, "--name: '../x' is not a name"),
        (("local", "--set", "python-packages.imports=perhaps"), 2, "is not true or false"),
    ],
)
def test_refused(
    run_cli: Cli, tmp_path: Path, words: tuple[str, ...], code: int, message: str
) -> None:
    file, output = tmp_path / "r.txt", tmp_path / "build"
    file.write_text("einops\n")
    result = run_cli("extend", *words, "--requirements", file, "--output", output)
    assert (result.code, result.out) == (code, "")
    assert message in result.err
    assert not output.exists()


def _known(output: Path, **changed: object) -> Path:
    folder = output / "local" / "mine"
    folder.mkdir(parents=True, exist_ok=True)
    data = {"image": "pytorch", "requirements": "einops==0.8.1\n", "constraints": "", "held": []}
    (folder / FILE).write_text(json.dumps(data | changed))
    return folder


def test_other_commands_know_it(
    run_cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    _known(tmp_path / "build")
    project = ("--project", CHECKOUT)
    for words in (
        ("plan", "local", "mine"),
        ("render", "local", "mine"),
        ("lint", "local", "mine"),
        ("jobscript", "--site", "local", "--nodes", "1", "--image", "mine", "--", "x.py"),
    ):
        result = run_cli(*project, *words)
        assert result.code == 0, words
        assert result.err.startswith("note: no image is at") or not result.err, words
    assert run_cli(*project, "diff", "local", "local/mine").code == 1
    assert run_cli(*project, "plan", "lumi", "mine").code == 2
    assert run_cli(*project, "plan", "local", "mine", "--output", "elsewhere").code == 0


def test_it_is_no_image_of_another_folder_or_site(run_cli: Cli, tmp_path: Path) -> None:
    _known(tmp_path / "out")
    assert run_cli("plan", "local", "mine", "--output", tmp_path / "out").code == 0
    result = run_cli("plan", "local", "mine", "--output", tmp_path)
    assert (result.code, "there is no image 'mine'" in result.err) == (2, True)


@pytest.mark.parametrize("changed", [{"image": 1}, {"held": 1}, {"requirements": None}])
def test_a_file_of_it_that_is_spoilt(
    run_cli: Cli, tmp_path: Path, changed: dict[str, object]
) -> None:
    folder = _known(tmp_path, **changed)
    result = run_cli("plan", "local", "mine", "--output", tmp_path)
    assert result.code == 2
    assert result.err.startswith(f"sifwright: {folder}/{FILE}: not a file of 'sifwright extend'")


def test_extended_twice(run_cli: Cli, tmp_path: Path) -> None:
    _known(tmp_path)
    (tmp_path / "r.txt").write_text("rich\n")
    words = ("--requirements", tmp_path / "r.txt", "--output", tmp_path)
    result = run_cli("extend", "local", "mine", *words)
    assert (result.code, "has packages on top already" in result.err) == (2, True)
