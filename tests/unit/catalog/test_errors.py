"""Every refusal: its exit code and its whole text, as errors/<case>.txt shows them."""

import re
import shlex
from pathlib import Path

import pytest

from tests.unit import golden
from tests.unit.cases import CASES
from tests.unit.conftest import Cli

MESSAGES = Path(__file__).parents[1] / "errors"


@pytest.mark.parametrize("name", CASES)
def test_message(name: str, project: Path, run_cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    """Remove the quotes of choices, which argparse writes until Python 3.11 only."""
    monkeypatch.chdir(project.parent)
    for change in CASES[name].changes:
        change(project / "defs")
    result = run_cli("--project", "project", *CASES[name].command)
    assert result.out == ""
    assert result.err.startswith("sifwright: ")
    command = shlex.join(("sifwright", *CASES[name].command)).encode("unicode_escape").decode()
    message = re.sub(r"choose from .*\)", lambda choices: choices[0].replace("'", ""), result.err)
    golden.check(MESSAGES / f"{name}.txt", f"$ {command}\nexit {result.code}\n{message}")


def test_no_message_is_left_over() -> None:
    assert {path.stem for path in MESSAGES.glob("*.txt")} <= set(CASES)


def test_messages_say_what_to_do() -> None:
    """Print a fix in an indented line below each finding; no path of this machine."""
    for name in CASES:
        lines = (MESSAGES / f"{name}.txt").read_text().splitlines()
        code, findings = int(lines[1].removeprefix("exit ")), lines[2:]
        assert code in {2, 3, 4}, name
        assert all(line.startswith(("sifwright: ", "    ")) for line in findings), name
        starts = [n for n, line in enumerate(findings) if line.startswith("sifwright: ")]
        assert all(findings[n + 1].startswith("    ") for n in starts), name
        assert not re.search(r"/(tmp|work|home|root)/", "".join(findings)), name
