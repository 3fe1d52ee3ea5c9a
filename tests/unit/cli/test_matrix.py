"""Several sites, images and values in one command."""

from argparse import Namespace
from pathlib import Path

import pytest

from sifwright.catalog.load_catalog import load_catalog
from sifwright.cli.options import matrix
from sifwright.errors import UsageError
from sifwright.plan.plan_file import plan_json
from sifwright.plan.resolve import resolve
from tests.unit.conftest import GOOD, Cli


def arguments(*texts: str, site: str = "a", image: str = "x") -> Namespace:
    return Namespace(site=site, image=image, settings=["l.other=3"], matrix=list(texts))


def test_an_image_for_each_combination() -> None:
    texts = ("l.version=1.0+cpu,2.0,2.0", "m.mode=fast")
    images = list(matrix.expand(arguments(*texts, site="a,b", image="x,y")))
    names = [f"{image.site}/{image.image}{matrix.suffix(image)}" for image in images]
    ends = ("@1.0+cpu@fast", "@2.0@fast")
    assert names == [f"{folder}{end}" for folder in ("a/x", "a/y", "b/x", "b/y") for end in ends]
    assert matrix.settings(images[0]) == ["l.other=3", "l.version=1.0+cpu", "m.mode=fast"]
    # The command of a job, which names one value, leads to the same folder.
    chosen = [word.partition("=")[2] for word in matrix.words(images[1]) if "--matrix" in word]
    (again,) = matrix.expand(arguments(*chosen))
    assert matrix.suffix(again) == "@2.0@fast"


@pytest.mark.parametrize(
    "text", ["l.version", "version=1,2", "l.v=", "l.v=1,,2", "l.v=../x", "l.v=a b", "l.v=1@2"]
)
def test_values_that_name_no_folder(text: str) -> None:
    with pytest.raises(UsageError, match=r"not of the form layer\.option"):
        list(matrix.expand(arguments(text)))


def test_an_option_that_is_given_twice() -> None:
    with pytest.raises(UsageError, match=r"--matrix l\.v=2: is given twice"):
        list(matrix.expand(arguments("l.v=1", "l.v=2")))


@pytest.fixture
def recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Return the name of an image that has a record and no SIF."""
    plan = resolve(load_catalog(GOOD / "defs", GOOD), "here", "small", ["tool.count=7"])
    folder = tmp_path / "build" / "here" / "small@7"
    folder.mkdir(parents=True)
    (folder / "record.json").write_text(plan_json(plan))
    monkeypatch.chdir(tmp_path)
    return folder.name


def test_the_options_of_a_built_image(recorded: str) -> None:
    named = Namespace(site="here", image=recorded, settings=["tool.text=x"], output="build")
    matrix.read_name(named)
    assert (named.image, matrix.suffix(named)) == ("small", "@7")
    assert named.settings == ["tool.count=7", "tool.text=x"]


@pytest.mark.parametrize(
    "words",
    ["test", "easyconfig", "modulefile --format=lua --root=/x", "report", "audit", "check-comm"],
)
def test_commands_that_take_the_name_of_a_built_image(
    run_cli: Cli, recorded: str, words: str
) -> None:
    command, *options = words.split()
    absent = run_cli("--project", GOOD, command, "here", "small@8", *options)
    assert absent.code == 2
    assert "sifwright: build/here/small@8: its record cannot be read" in absent.err
    refused = run_cli("--project", GOOD, command, "here", recorded, *options)
    assert refused.code == 2
    assert "sifwright: build/here/small@7/image.sif: there is no image yet" in refused.err
