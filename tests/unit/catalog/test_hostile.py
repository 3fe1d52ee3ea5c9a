"""R8: every value is refused, or comes out of a real shell byte for byte."""

import json
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from sifwright.catalog.load_catalog import load_catalog
from sifwright.catalog.model import Catalog, EnvRule, Value
from sifwright.catalog.script_rules import BUILD_ARGUMENT, refuse_text
from sifwright.errors import CatalogError, UsageError
from sifwright.plan.model import Plan
from sifwright.plan.resolve import resolve
from sifwright.render import build_files, shell
from sifwright.render.definition import definition
from tests.unit import deffile, hostile
from tests.unit.broken import IMAGE, TOOL, write
from tests.unit.conftest import GOOD, MACHINE, SHELLS, Shells, program

BATCH = 50
OPTION_VALUES, ENV_VALUES, FILES, DESCRIPTIONS = 8000, 4500, 2000, 300
ACTIONS: tuple[Literal["set", "default", "prepend"], ...] = ("set", "default", "prepend")
STEP = re.compile(
    r"^    (env (?:(?!^    \w).)*?)bash /\.sifwright/step tool$", re.MULTILINE | re.DOTALL
)


def test_there_are_enough_values() -> None:
    assert OPTION_VALUES + ENV_VALUES + FILES + DESCRIPTIONS >= 10_000


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make the small project, whose tool has a free-text option for each text of a batch."""
    project = shutil.copytree(GOOD, tmp_path_factory.mktemp("many") / "project")
    form = "{type: string, description: Any text, default: ''}"
    lines = "".join(f"  o{number}: {form}\n" for number in range(BATCH))
    path = project / "defs" / TOOL
    path.write_text(path.read_text().replace("options:\n", f"options:\n{lines}"))
    return project


def _batches(values: Sequence[str]) -> Iterator[list[str]]:
    for start in range(0, len(values), BATCH):
        yield list(values[start : start + BATCH])


def _is_accepted(catalog: Catalog, value: str) -> bool:
    """Return whether the command line accepts a text; a refusal is an error of ours."""
    try:
        resolve(catalog, "here", "", [f"tool.text={value}"])
    except UsageError:
        return False
    return True


def _check(plan: Plan, values: list[str], shells: Shells) -> None:
    """Check that the values come out of the plan's definition file as they went in."""
    text = definition(plan, MACHINE)
    assert BUILD_ARGUMENT.search(text) is None
    post = deffile.sections(text)["post"]
    (assignments,) = STEP.findall(post)
    for environment in shells.environments(f"exec {assignments}env -0"):
        assert [environment[f"OPT_O{n}"].decode() for n in range(len(values))] == values
    _check_record(post, values, shells)
    _check_tests(plan, values)


def _check_record(post: str, values: list[str], shells: Shells) -> None:
    pattern = (
        r"^(cat|base64 -d) (?:>>?)/opt/sifwright/plan\.json( <<'SIFWRIGHT_EOF'\n.*?^SIFWRIGHT_EOF$)"
    )
    pieces = re.findall(pattern, post, re.MULTILINE | re.DOTALL)
    script = "\n".join(f"{command}{document}" for command, document in pieces)
    options = json.loads(shells.run("dash", f"{script}\n"))["steps"][1]["options"]
    assert [options[f"o{number}"]["value"] for number in range(len(values))] == values


def _check_tests(plan: Plan, values: list[str]) -> None:
    """Check that the program run-tests hands them to test.sh, too."""
    with tempfile.TemporaryDirectory() as folder:
        kept = {
            file.path.rpartition("/")[2]: file.data for file in build_files.list_kept_files(plan)
        }
        for name in ("run-tests", "plan.json"):
            Path(folder, name).write_bytes(kept[name])
        test = Path(folder, "tests", "tool", "test.sh")
        test.parent.mkdir(parents=True)
        test.write_text("printf '%s\\0' " + " ".join(f'"$OPT_O{n}"' for n in range(len(values))))
        words, environment = ["bash", f"{folder}/run-tests"], {"PATH": os.environ["PATH"]}
        done = subprocess.run(words, env=environment, capture_output=True, check=True)
    output = done.stdout.removeprefix(b"sifwright: test tool\n")
    assert output.decode(errors="surrogateescape").split("\0")[:-1] == values


def _filled(values: list[str]) -> list[str]:
    """Keep the empty default of options that get no value of this batch."""
    return values + [""] * (BATCH - len(values))


def test_option_values_from_the_command_line(many: Path, shells: Shells, portion: float) -> None:
    catalog = load_catalog(many / "defs", many)
    values = hostile.texts(hostile.SEED, int(OPTION_VALUES * portion) // 2)
    good = [value for value in values if _is_accepted(catalog, value)]
    assert 0.7 * len(values) < len(good) < len(values)
    for batch in _batches(good):
        words = [f"tool.o{number}={value}" for number, value in enumerate(batch)]
        _check(resolve(catalog, "here", "", words), _filled(batch), shells)


def test_option_values_from_yaml(many: Path, shells: Shells, portion: float) -> None:
    _write_image(many, [], style=None)
    catalog = load_catalog(many / "defs", many)
    values = hostile.texts(hostile.SEED + 1, int(OPTION_VALUES * portion) // 2)
    good = [value for value in values if _is_accepted(catalog, value)]
    for number, batch in enumerate(_batches(good)):
        _write_image(many, batch, style=(None, '"', "'", "|", ">")[number % 5])
        plan = resolve(load_catalog(many / "defs", many), "here", "", [])
        _check(plan, _filled(batch), shells)
    for value in [value for value in values if value not in good][:150]:
        _write_image(many, [value], style='"')
        with pytest.raises(CatalogError):
            load_catalog(many / "defs", many)


def _write_image(project: Path, values: list[str], *, style: str | None) -> None:
    options = {f"o{number}": value for number, value in enumerate(values)}
    layers = [{"layer": "base"}, {"layer": "tool", "options": options}, {"layer": "extra"}]
    document = {"description": "x", "layers": layers}
    text = yaml.safe_dump(document, default_style=style, allow_unicode=True, width=1 << 20)
    (project / "defs" / IMAGE).write_bytes(text.encode(errors="surrogatepass"))


def _expected(rule: EnvRule, before: str | None) -> str:
    if rule.action == "default":
        return rule.value if before is None else before
    if rule.action == "prepend" and before:
        return f"{rule.value}:{before}"
    return rule.value


def test_env_values(project: Path, shells: Shells) -> None:
    values = [v for v in hostile.texts(hostile.SEED + 2, ENV_VALUES) if v and not refuse_text(v)]
    catalog = load_catalog(project / "defs", project)
    before = {f"E{n}": ("", "b:é", "$x '")[n // 6 % 3] for n in range(0, BATCH, 2)}
    for batch in _batches(values):
        rules = tuple(
            EnvRule(name=f"E{n}", action=ACTIONS[n // 2 % 3], value=value)
            for n, value in enumerate(batch)
        )
        extra = replace(catalog.layers["extra"], env=rules)
        spoilt = replace(catalog, layers={**catalog.layers, "extra": extra})
        text = definition(resolve(spoilt, "here", "", []), MACHINE)
        _check_env(text, rules, before, shells)


def _check_env(text: str, rules: Sequence[EnvRule], before: dict[str, str], shells: Shells) -> None:
    """Compare in %environment, and in %post for the steps after it."""
    sections = deffile.sections(text)
    exports = re.findall(r"^    (?:\[ -n .*\] \|\| )?export E\d.*$", sections["post"], re.MULTILINE)
    for script in (sections["environment"], "\n".join(exports)):
        for environment in shells.environments(script, **before):
            for rule in rules:
                result = environment[rule.name].decode()
                assert result == _expected(rule, before.get(rule.name)), rule


def test_env_values_that_are_refused(project: Path) -> None:
    for value in [v for v in hostile.texts(hostile.SEED + 3, 900, share=1) if refuse_text(v)][:150]:
        text = yaml.safe_dump({"env": {"A": {"set": value}}}, default_style='"')
        header = "summary: x\nrequires: [tool]\n" + text
        write("layers/extra/layer.yaml", header.encode(errors="surrogatepass"))(project / "defs")
        with pytest.raises(CatalogError):
            load_catalog(project / "defs", project)


def test_descriptions(project: Path) -> None:
    """Open no section by texts in comments, labels and the help of an image."""
    texts = [text for text in hostile.texts(hostile.SEED + 7, DESCRIPTIONS, share=0) if text]
    catalog = load_catalog(project / "defs", project)
    for text in [text for text in texts if not refuse_text(text)]:
        image = replace(catalog.images["small"], description=text)
        site = replace(catalog.sites["here"], description=text)
        tool = replace(catalog.layers["tool"], summary=text)
        spoilt = replace(
            catalog,
            images={"small": image},
            sites={"here": site},
            layers={**catalog.layers, "tool": tool},
        )
        rendered = definition(resolve(spoilt, "here", "", []), MACHINE)
        assert list(deffile.sections(rendered)) == list(
            deffile.sections(definition(resolve(catalog, "here", "", []), MACHINE))
        )
        assert deffile.labels(rendered)["org.opencontainers.image.description"] == text.strip()


@settings(max_examples=150)
@given(st.lists(st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]))))
def test_quoting_of_any_text(values: list[str]) -> None:
    """Quote even texts that options refuse: the quoting does not depend on the refusal."""
    options = {f"o{n}": Value(value=value, origin="") for n, value in enumerate(values)}
    script = f"exec env -i {' '.join(shell.assignments(options))} /usr/bin/env -0\n"
    for name in SHELLS:
        done = subprocess.run(
            [program(name), "-e", "/dev/stdin"],
            input=script.encode(),
            check=True,
            capture_output=True,
        )
        pairs = [f"OPT_O{n}={value}" for n, value in enumerate(values)]
        assert done.stdout.decode().split("\0")[:-1] == pairs
