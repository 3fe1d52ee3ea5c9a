"""The commands as a folder of modules: what each has, completion, manual page."""

import argparse
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from sifwright import __version__
from sifwright.cli import main, registry
from tests.conftest import run
from tests.unit.conftest import CHECKOUT, Cli, program


def subparsers(command: str = "") -> dict[str, argparse.ArgumentParser]:
    """Return the parsers of all commands, or of one."""
    actions = main.parser(command)._actions  # noqa: SLF001
    [choices] = [action.choices for action in actions if action.nargs == argparse.PARSER]
    assert isinstance(choices, dict)
    return choices


def options() -> list[tuple[str, str, argparse.Action]]:
    """Return the options of every command: command, option, and the parser's facts of it."""
    return [
        (name, option, action)
        for name, parser in subparsers().items()
        for action in parser._actions  # noqa: SLF001
        for option in action.option_strings
    ]


@pytest.mark.parametrize("name", registry.names())
def test_a_command_has_a_short_help_and_a_group(name: str) -> None:
    command = registry.load(name)
    assert command.GROUP in registry.GROUPS
    assert len(command.HELP) <= 63, "a line of --help has 80 characters"
    assert callable(command.run)


def test_every_group_has_a_command() -> None:
    assert {registry.load(name).GROUP for name in registry.names()} == registry.GROUPS.keys()


def test_a_command_loads_no_other() -> None:
    prefix = "sifwright.cli.commands."
    code = "import sys; from sifwright.cli import registry; registry.load('list')"
    done = run([sys.executable, "-c", f"{code}; print(*sys.modules)"])
    assert [name for name in done.stdout.split() if name.startswith(prefix)] == [f"{prefix}list"]


def test_the_version_loads_no_command() -> None:
    code = "from sifwright.cli.main import main; main(['--version'])"
    done = run([sys.executable, "-X", "importtime", "-c", code])
    assert done.stdout == f"sifwright {__version__}\n"
    assert "sifwright.cli.commands\n" in done.stderr
    assert "sifwright.cli.commands." not in done.stderr


@pytest.mark.parametrize(
    ("module", "late"),
    [
        ("cli.commands.build", {"packaging.pylock", "sifwright.make_image.build_image"}),
        ("make_image.build_image", {"cyclonedx", "docker", "urllib3"}),
    ],
)
def test_a_build_loads_large_modules_where_it_needs_them(module: str, late: set[str]) -> None:
    done = run([sys.executable, "-c", f"import sys, sifwright.{module}; print(*sys.modules)"])
    assert late.isdisjoint(done.stdout.split())


def test_an_option_means_the_same_everywhere() -> None:
    """Compare choices and numbers of values; --format names the form that a command writes."""
    forms: dict[str, set[object]] = {}
    for _, option, action in options():
        choices = None if option == "--format" else tuple(action.choices or ())
        forms.setdefault(option, set()).add((choices, action.nargs))
    assert [option for option, form in forms.items() if len(form) > 1] == []


@pytest.mark.parametrize("shell", ["bash", "zsh"])
def test_completion_names_all_of_today(run_cli: Cli, shell: str) -> None:
    result = run_cli("--print-completion", shell)
    assert (result.code, result.err) == (0, "")
    for name, option, _ in options():
        assert name in result.out
        assert option in result.out
    subprocess.run([program(shell), "-n"], input=result.out, text=True, check=True)


def test_bash_completes_a_command(run_cli: Cli) -> None:
    script = run_cli("--print-completion", "bash").out
    words = "COMP_WORDS=(sifwright jobs); COMP_CWORD=1; _shtab_sifwright"
    done = run(["bash", "-c", f"{script}\n{words}; printf '%s\\n' ${{COMPREPLY[@]}}"])
    assert done.stdout == "jobscript\n"


def test_make_writes_the_manual_page() -> None:
    """Take its command from the Makefile."""
    lines = (CHECKOUT / "Makefile").read_text().partition("\nman:")[2].partition("\n\n")[0]
    command = shlex.split(lines.partition("@.venv/bin/")[2].replace("\\\n", " "))
    page = run([Path(sys.executable).with_name(command[0]), *command[1:-2]])
    assert (page.returncode, page.stderr) == (0, "")
    text = page.stdout.replace("\\-", "-").replace("\\fB", "").replace("\\fR", "")
    for name, option, _ in options():
        assert f"\n.SS sifwright {name}\n" in text
        assert option in text or option in {"-h", "--help"}
