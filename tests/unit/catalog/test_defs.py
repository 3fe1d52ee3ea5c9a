"""The contents of defs/, and the schemas that they obey."""

import json
import re
from importlib import resources

import pytest
from jsonschema import Draft202012Validator

from sifwright.catalog import schema
from sifwright.catalog.model import Catalog, Option, TableCell
from tests.conftest import run
from tests.unit.conftest import CHECKOUT, program

SCRIPTS = sorted((CHECKOUT / "defs" / "layers").glob("*/*.sh"))
SCHEMAS = ("site", "image", "layer", "pins", "versions", "mirrors")


def test_scripts_say_what_they_do() -> None:
    assert [path for path in SCRIPTS if not path.read_text().startswith("#!/bin/bash\n# ")] == []


def test_scripts_are_clean_for_shellcheck() -> None:
    """Check all scripts at once: shellcheck's start takes longer than its work."""
    done = run([program("shellcheck"), *SCRIPTS])
    assert (done.returncode, done.stdout) == (0, "")


@pytest.mark.parametrize("name", SCHEMAS)
def test_schema_is_valid(name: str) -> None:
    text = resources.files("sifwright").joinpath("catalog", "schemas", f"{name}.json").read_text()
    Draft202012Validator.check_schema(json.loads(text))


def test_there_is_no_other_schema() -> None:
    results = {
        path.name for path in resources.files("sifwright").joinpath("catalog", "schemas").iterdir()
    }
    assert results == {f"{name}.json" for name in SCHEMAS}


def test_every_layer_has_a_test_and_is_described(real: Catalog) -> None:
    for layer in real.layers.values():
        assert layer.test, f"{layer.name} has no test.sh"
        assert len(layer.summary) > 10
        assert layer.disk_mb > 0, f"{layer.name} does not say what space it takes"


def test_every_option_is_described(real: Catalog) -> None:
    for layer in real.layers.values():
        for option in layer.options.values():
            assert len(option.description) > 10, f"{layer.name}.{option.name}"
            assert not option.description.endswith(".")


def test_every_version_is_exact(real: Catalog) -> None:
    """Let no version float that a layer installs by default."""
    for layer in real.layers.values():
        for option in layer.options.values():
            if option.description.startswith(("Version of", "Exact version")):
                for version in _defaults(real, option):
                    assert re.fullmatch(r"[0-9]+(\.[0-9]+)+", version), option


def _defaults(real: Catalog, option: Option) -> list[str]:
    """Return the option's default, or all values that it may be looked up as."""
    if isinstance(option.derived, TableCell):
        rows = real.versions[option.derived.table].values()
        cells = (row.get(option.derived.column, ()) for row in rows)
        return [version for cell in cells for version in cell]
    return [str(option.default)]


@pytest.mark.parametrize(
    ("word", "known", "answer"),
    [
        ("lcoal", ["local", "lumi"], "Did you mean 'local'? Known: local, lumi."),
        ("LUMI", ["local", "Lumi"], "Did you mean 'Lumi'? Known: local, Lumi."),
        ("x", ["local"], "Known: local."),
        ("x", ["a\nb"], r"Known: a\nb."),
        ("x", [], "There are none."),
        ("a", [str(n) for n in range(100, 150)], "Known: 100 … 149."),
    ],
)
def test_did_you_mean(word: str, known: list[str], answer: str) -> None:
    assert schema.did_you_mean(word, known) == answer
