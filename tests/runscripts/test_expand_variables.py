"""conda-python-distributed --expand-variables: variables of a rank in the arguments of a script."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.conftest import run

from .conftest import RUNSCRIPTS
from .test_conda_python_distributed import BY_HAND, SCRIPT
from .test_local_ranks import torchrun, torchrun_arguments

if TYPE_CHECKING:
    from pathlib import Path

    from .conftest import Runner

__all__ = ["torchrun"]

SHOW = "import json, sys; print(json.dumps(sys.argv[1:]))"
EXPANSION = RUNSCRIPTS / "launch" / "expansion.py"


def _arguments(runner: Runner, *arguments: str) -> list[str]:
    result = runner.having(**BY_HAND, LOCAL_RANK="1", LOCAL_WORLD_SIZE="2").run(
        SCRIPT, "--expand-variables", "-c", SHOW, *arguments
    )
    assert (result.returncode, result.stderr) == (0, "")
    return list(json.loads(result.stdout))


@pytest.mark.parametrize(
    ("argument", "expected"),
    [
        ("--master_addr=$MASTER_ADDR", "--master_addr=127.0.0.1"),
        ("tcp://${MASTER_ADDR}:$MASTER_PORT/$RANK", "tcp://127.0.0.1:29876/1"),
        ("$ODD", "$RANK `touch x` *  ${RANK}"),
        (
            "$$RANK costs 5$, $(touch x), $1, ${RANK, ${1}",
            "$RANK costs 5$, $(touch x), $1, ${RANK, ${1}",
        ),
        ("$RANK$$$RANK", "1$1"),
        ("", ""),
        ("$" * 4001, "$" * 2001),
        ("caf\u00e9 $RANK\n", "caf\u00e9 1\n"),
    ],
)
def test_names_are_replaced_once_and_nothing_is_run(
    runner: Runner, argument: str, expected: str
) -> None:
    odd = runner.having(ODD="$RANK `touch x` *  ${RANK}")
    assert _arguments(odd, argument, "last") == [expected, "last"]


def test_a_variable_that_is_not_set_ends_the_rank(runner: Runner) -> None:
    result = runner.having(**BY_HAND).run(SCRIPT, "--expand-variables", "t.py", "--x=$NOWHERE")
    assert (result.returncode, result.stdout) == (78, "")
    assert "NOWHERE is not set, which the argument '--x=$NOWHERE' names" in result.stderr


def test_without_the_option_arguments_stay(runner: Runner) -> None:
    result = runner.having(**BY_HAND).run(SCRIPT, "-c", SHOW, "$RANK", "--expand-variables")
    assert json.loads(result.stdout) == ["$RANK", "--expand-variables"]


@pytest.mark.parametrize("first", [True, False])
def test_ranks_of_torchrun_expand_their_own(
    torchrun: Runner, tmp_path: Path, *, first: bool
) -> None:
    words = ["--nproc-per-node", "2"]
    words = ["--expand-variables", *words] if first else [*words, "--expand-variables"]
    result = torchrun_arguments(torchrun, *words, "-u", "t.py", "$RANK")
    assert result[-4:] == [str(EXPANSION), "-u", "t.py", "$RANK"]
    # torchrun starts it so for each rank.
    (tmp_path / "t.py").write_text(SHOW)
    command = (sys.executable, "-u", *result[-4:-2], tmp_path / "t.py", "$RANK")
    done = run(command, env={**os.environ, "RANK": "7"})
    assert json.loads(done.stdout) == ["7"]


def test_ranks_of_torchrun_keep_the_check_of_mpi() -> None:
    """Defer the check from the first Python to the second one."""
    code = "import sys; print([type(finder).__name__ for finder in sys.meta_path].count('Watcher'))"
    for path, count in ((EXPANSION.with_name("guard"), "1"), (EXPANSION.parent, "0")):
        env = {**os.environ, "PYTHONPATH": str(path)}
        command = [sys.executable, str(EXPANSION), "-c", code]
        assert subprocess.check_output(command, env=env, text=True).strip() == count


def test_a_rank_of_torchrun_without_the_variable_ends() -> None:
    command = [sys.executable, str(EXPANSION), "t.py", "$NOWHERE"]
    done = run(command, env={})
    assert (done.returncode, done.stdout) == (78, "")
    assert done.stderr.startswith("conda-python-distributed: NOWHERE is not set")
