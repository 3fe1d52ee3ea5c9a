"""docs/sites.md shows what is really printed, and names every rule."""

import re

import pytest

from sifwright import lint_image_rules, lint_rules
from tests.core.conftest import CHECKOUT, Cli

TEXT = (CHECKOUT / "docs" / "sites.md").read_text()
BLOCKS = re.findall(r"```console\n\$ sifwright (.*)\n((?:.*\n)*?)```", TEXT)


def test_the_commands_are_found_in_the_text() -> None:
    assert [command.split()[:2] for command, _ in BLOCKS] == [
        ["list", "sites"],
        ["show", "site"],
        ["lint", "isambard-ai"],
    ]


@pytest.mark.parametrize(("command", "shown"), BLOCKS)
def test_its_output_is_what_is_printed(run_cli: Cli, command: str, shown: str) -> None:
    """Line by line, in order; '…' stands for those that are left out."""
    result = run_cli("--project", CHECKOUT, *command.split())
    lines = iter(f"{result.out}{result.err}".splitlines())
    for line in shown.splitlines():
        assert line == "…" or line in lines, line


def test_its_table_of_sites_is_whole(run_cli: Cli) -> None:
    assert BLOCKS[0][1] == run_cli("--project", CHECKOUT, "list", "sites").out


def test_its_table_of_rules_is_that_of_the_linter() -> None:
    rows = re.findall(r"^\| `(.*)` \| (error|warning) \| (.*) \|$", TEXT, re.MULTILINE)
    site = [(rule.name, rule.severity, rule.why) for rule in lint_rules.RULES]
    image = [(rule.name, rule.severity, rule.why) for rule in lint_image_rules.RULES]
    assert rows == site + image


def test_its_links_lead_somewhere() -> None:
    for target in re.findall(r"\]\(([^)#]+)[^)]*\)", TEXT):
        assert (CHECKOUT / "docs" / target).exists(), target
