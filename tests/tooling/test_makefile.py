"""Words that a user types after `make sif`: sifwright gets them as data, word for word."""

import shutil
from pathlib import Path

import pytest

from .conftest import CHECKOUT, run

RECORDER = """#!/bin/bash
printf '%s\\0' "$@" >"$(dirname "$0")/argv"
exit "${RECORDER_STATUS:-0}"
"""


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """Make a checkout whose sifwright records its arguments, and whose set-up is done."""
    copy = tmp_path / "a checkout"
    shutil.copytree(CHECKOUT / "tools", copy / "tools")
    shutil.copy(CHECKOUT / "Makefile", copy)
    for program, text in {
        ".venv/bin/sifwright": RECORDER,
        "tools/make-venv": "#!/bin/bash\n",
        "tools/install-apptainer": "#!/bin/bash\n",
    }.items():
        file = copy / program
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        file.chmod(0o755)
    return copy


def arguments(copy: Path) -> list[str]:
    return (copy / ".venv/bin/argv").read_text().split("\0")[:-1]


def everything_in(folder: Path) -> set[Path]:
    return {path for path in folder.rglob("*") if path.name != "argv"}


def test_help_is_the_default_and_lists_the_targets() -> None:
    shown = run("make")
    assert shown.returncode == 0
    listed = {line.split()[0] for line in shown.stdout.splitlines() if line.startswith("  ")}
    assert listed == {
        *("help", "sif", "native", "plan", "def", "list", "check", "check-comm", "lock"),
        *("test", "lint", "bench"),
        *("clean", "clean-old", "easyconfig", "easyconfigs", "extend", "jobscript", "man"),
        *("test-all", "constraints", "test-slow", "docker", "dockerfile"),
    }


@pytest.mark.parametrize(
    ("target", "expected"),
    [
        ("sif", ["build", "local", ""]),
        ("def", ["render", "local", ""]),
        ("dockerfile", ["render", "local", "", "--format", "dockerfile"]),
        ("plan", ["plan", "local", ""]),
        ("easyconfig", ["easyconfig", "local", ""]),
        ("docker", ["build", "local", "", "--engine", "docker"]),
        ("list", ["list"]),
        ("check", ["check", "local", ""]),
        ("check-comm", ["check-comm", "local", ""]),
    ],
)
def test_target_runs_its_command(copy: Path, target: str, expected: list[str]) -> None:
    assert run("make", target, cwd=copy).returncode == 0
    assert arguments(copy) == expected


def test_choices_reach_the_command(copy: Path) -> None:
    given = ["SITE=lumi", "IMAGE=pytorch-rocm", "V=1", "SET=a.b=1  c.d=2"]
    given += ["MATRIX=a.v=1,2  c.w=x,y", "LAYOUT=flat", "TESTS=all", "ENGINE=docker"]
    assert run("make", "sif", *given, cwd=copy).returncode == 0
    assert arguments(copy) == [
        *("build", "lumi", "pytorch-rocm", "--set=a.b=1", "--set=c.d=2"),
        *("--matrix=a.v=1,2", "--matrix=c.w=x,y"),
        *("--layout", "flat", "--tests", "all", "--engine", "docker", "--format", "sif"),
        "--verbose",
    ]
    assert run("make", "plan", "V=1", "MATRIX=a.v=1,2", cwd=copy).returncode == 0
    assert arguments(copy) == ["plan", "local", "", "--explain"]


@pytest.mark.parametrize("option", ["requirements", "lock"])
def test_the_file_that_extends_an_image(copy: Path, option: str) -> None:
    assert run("make", "extend", f"{option.upper()}=a b", cwd=copy).returncode == 0
    assert arguments(copy) == ["extend", "local", "", f"--{option}=a b"]


@pytest.mark.parametrize(("given", "word"), [("1", "--submit="), ("pbs", "--submit=pbs")])
@pytest.mark.parametrize("target", ["sif", "native"])
def test_jobs_of_the_site_or_of_a_named_scheduler(
    copy: Path, target: str, given: str, word: str
) -> None:
    assert run("make", target, f"SUBMIT={given}", "PREFIX=/p", cwd=copy).returncode == 0
    assert arguments(copy)[-1] == word


def test_nodes_are_for_check_comm(copy: Path) -> None:
    for target, expected in {"check-comm": ["--nodes", "2"], "check": []}.items():
        assert run("make", target, "NODES=2", cwd=copy).returncode == 0
        assert arguments(copy)[3:] == expected


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a.b='1 2'", ["a.b=1 2"]),
        ("""a.b="it's" c.d=\\ x""", ["a.b=it's", "c.d= x"]),
        ("  ", []),
        ("--help", ["--help"]),
    ],
)
def test_set_is_split_at_blanks_outside_quotes(copy: Path, text: str, words: list[str]) -> None:
    assert run("make", "plan", f"SET={text}", cwd=copy).returncode == 0
    assert arguments(copy)[3:] == [f"--set={word}" for word in words]


def test_a_job_script_is_asked_for_word_by_word(copy: Path) -> None:
    asked = (
        "SITE=lumi",
        "NODES=2",
        "JOB=--account 'a b'",
        """SCRIPT=train.py "it's" -- $(id) ;x""",
    )
    assert run("make", "jobscript", *asked, cwd=copy).returncode == 0
    assert arguments(copy) == [
        *("jobscript", "--site", "lumi", "--image", "", "--nodes", "2", "--account", "a b"),
        *("--", "train.py", "it's", "--", "$(id)", ";x"),
    ]
    assert run("make", "jobscript", "SCRIPT=train.py", cwd=copy).returncode == 0
    assert arguments(copy)[1:] == [
        *("--site", "local", "--image", "", "--nodes", "1", "--", "train.py")
    ]


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        (("jobscript",), 'SCRIPT is empty: make jobscript SCRIPT="train.py --epochs 3"'),
        (("jobscript", "SCRIPT= "), "SCRIPT is empty"),
        (("jobscript", "SCRIPT=a 'b"), "SCRIPT has a quote without its partner: a 'b"),
        (("jobscript", "SCRIPT=a", "JOB='b"), "JOB has a quote without its partner: 'b"),
        (("plan", "SET=a.b='1"), "SET has a quote without its partner: a.b='1"),
    ],
)
def test_words_that_cannot_be_split_are_refused_with_the_text(
    copy: Path, asked: tuple[str, ...], message: str
) -> None:
    done = run("make", *asked, cwd=copy)
    assert done.returncode == 2
    assert f"sifwright: {message}" in done.stderr
    assert not (copy / ".venv/bin/argv").exists()


@pytest.mark.parametrize("name", ["SCRIPT", "JOB", "NODES"])
def test_hostile_jobs_run_nothing(copy: Path, name: str) -> None:
    before = everything_in(copy)
    for text in HOSTILE:
        done = run("make", "jobscript", "SCRIPT=train.py", f"{name}={text}", cwd=copy)
        assert done.returncode == 0, done.stderr
        result = arguments(copy)
        expected = [text] if name == "NODES" else text.replace("\\", "").split()
        assert [word for word in result if word in expected] == expected
    assert everything_in(copy) == before


HOSTILE = [
    "a.b=$(touch owned)",
    "a.b=$(shell touch owned)",
    "a.b=`touch owned`",
    "a.b=1;touch owned",
    "a.b=1&&touch owned|touch owned",
    "a.b=$$(touch owned)${HOME}$(error boom)",
    "a.b=*#%{}!<>~",
    "a.b=\\$\\(touch",
]


@pytest.mark.parametrize("how", ["argument", "environment"])
@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_set_runs_nothing(copy: Path, text: str, how: str) -> None:
    before = everything_in(copy)
    if how == "argument":
        done = run("make", "plan", f"SET={text}", cwd=copy)
    else:
        done = run("make", "plan", cwd=copy, env={"SET": text})
    assert done.returncode == 0, done.stderr
    expected = text.replace("\\", "").split()
    assert arguments(copy)[3:] == [f"--set={word}" for word in expected]
    assert everything_in(copy) == before


@pytest.mark.parametrize("name", ["SITE", "IMAGE", "NODES", "LAYOUT", "TESTS", "V", "PYTEST"])
@pytest.mark.parametrize("text", ["$(touch owned)", "$(shell touch owned)", "`touch owned`;'"])
def test_hostile_choice_runs_nothing(copy: Path, name: str, text: str) -> None:
    before = everything_in(copy)
    done = run("make", "plan", f"{name}={text}", cwd=copy)
    assert done.returncode == 0, done.stderr
    assert (text in arguments(copy)) == (name in {"SITE", "IMAGE"})
    assert everything_in(copy) == before


def test_failure_of_the_command_fails_make(copy: Path) -> None:
    done = run("make", "sif", cwd=copy, env={"RECORDER_STATUS": "7"})
    assert done.returncode == 2
    assert "Error 7" in done.stderr


def test_clean_old_keeps_what_stands_there_now(copy: Path) -> None:
    folder = copy / "build" / "local" / "my image"
    folder.mkdir(parents=True)
    names = [f"my image-{digit * 12}.sif" for digit in "abc"]
    for name in [*names, "my image-x.sif", "other-aaaaaaaaaaaa.sif"]:
        (folder / name).touch()
    (folder / "image.sif").symlink_to(names[1])
    done = run("make", "clean-old", cwd=copy)
    assert done.returncode == 0, done.stderr
    assert [name in done.stdout for name in names] == [True, False, True]
    kept = {path.name for path in folder.iterdir()}
    assert kept == {"image.sif", names[1], "my image-x.sif", "other-aaaaaaaaaaaa.sif"}
    assert "nothing to remove" in run("make", "clean-old", cwd=copy).stdout
    refused = run("make", "clean-old", "SITE=../build", cwd=copy)
    assert "names, without a slash" in refused.stderr


def test_clean_says_what_it_removes_and_keeps_the_rest(copy: Path) -> None:
    image = copy / "build/local/pytorch/image.sif"
    image.parent.mkdir(parents=True)
    image.write_text("x")
    done = run("make", "clean", cwd=copy)
    assert "build/local/pytorch" in done.stdout
    assert not (copy / "build").exists()
    assert (copy / ".venv/bin/sifwright").exists()
    assert "nothing to remove" in run("make", "clean", cwd=copy).stdout
