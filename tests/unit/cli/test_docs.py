"""The pages of docs/ show what is really printed, and name every lint rule."""

import re
import shlex

import pytest

from sifwright.catalog.load_catalog import load_catalog
from sifwright.plan.lint import image_rules, site_rules
from sifwright.plan.lint.rule import texts
from tests.unit.conftest import CHECKOUT, Cli

SITES = (CHECKOUT / "docs" / "reference" / "sites.md").read_text()
RULES = (CHECKOUT / "docs" / "reference" / "lint-rules.md").read_text()
PAGES = [CHECKOUT / "README.md", *CHECKOUT.glob("docs/**/*.md")]
BLOCK = re.compile(r"^```console\n(.*?)^```", re.MULTILINE | re.DOTALL)
COMMAND = re.compile(r"^\$ sifwright (.*)\n((?:(?!\$ ).*\n)+)", re.MULTILINE)
# Commands whose output depends on defs/ alone, and not on this machine or an image.
PURE = {"list", "show", "lint"}


def list_commands() -> list[tuple[str, str]]:
    """Return commands that a page shows with their output."""
    blocks = (block for page in PAGES for block in BLOCK.findall(page.read_text()))
    pairs = (pair for block in blocks for pair in COMMAND.findall(block))
    return [(command, text) for command, text in pairs if command.split()[0] in PURE]


def test_the_commands_are_found_in_the_text() -> None:
    assert {command.split()[0] for command, _ in list_commands()} == PURE


@pytest.mark.parametrize(("command", "text"), list_commands())
def test_its_output_is_what_is_printed(run_cli: Cli, command: str, text: str) -> None:
    """Compare line by line; '…' stands for lines, or a part of a line, that are left out."""
    result = run_cli("--project", CHECKOUT, *shlex.split(command))
    lines = iter(f"{result.out}{result.err}".splitlines())
    for line in text.splitlines():
        pattern = ".*".join(map(re.escape, line.split("…")))
        assert line == "…" or any(re.fullmatch(pattern, printed) for printed in lines), line


def test_the_table_of_sites_is_whole() -> None:
    sites = load_catalog(CHECKOUT / "defs", CHECKOUT).sites.values()
    rows = re.findall(r"^\| `([\w-]+)` \| ([\w+]+) \| (.*) \|$", SITES, re.MULTILINE)
    assert rows == [
        (site.name, "+".join(dict.fromkeys((site.scheduler, site.launcher))), site.description)
        for site in sites
    ]


def test_the_list_of_rules_is_that_of_the_linter() -> None:
    items = re.findall(
        r"^- `(.*?)` \((error|warning|note)\): ((?:.+\n)(?:  .+\n)*)", RULES, re.MULTILINE
    )
    rules = [(name, severity, " ".join(why.split())) for name, severity, why in items]
    ours = {name: texts()[name] for name in (*site_rules.RULES, *image_rules.RULES)}
    assert rules == [(name, told["severity"], told["why"]) for name, told in ours.items()]
