"""tools/make-venv for real, on a copy of the checkout that has no dependencies to download."""

import os
import re
import shutil
from pathlib import Path

import pytest

from .conftest import CHECKOUT, PathWithout, run

PARTS = ("builder", "defs", "runscripts", "tools")
FILES = ("pyproject.toml", "LICENSE", "README.md")
PYTHONS = ("python3.14", "python3.13", "python3.12", "python3.11", "python3")
# Variables that a cluster's Python module may have set, and that would ruin pip's work.
SPOILT = {
    "PYTHONHOME": "/nowhere",
    "PYTHONPATH": "/nowhere",
    "PIP_USER": "1",
    "PIP_TARGET": "/nowhere",
}


def copy_checkout(source: Path, target: Path) -> Path:
    for part in PARTS:
        shutil.copytree(source / part, target / part, ignore=shutil.ignore_patterns("__pycache__"))
    for file in FILES:
        shutil.copy(source / file, target)
    pyproject = target / "pyproject.toml"
    bare = re.sub(r"(?ms)^dependencies = \[.*?^\]", "dependencies = []", pyproject.read_text())
    pyproject.write_text(bare)
    return target


@pytest.fixture(scope="module")
def made_checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    copy = copy_checkout(CHECKOUT, tmp_path_factory.mktemp("venv") / "a checkout")
    done = run(copy / "tools/make-venv", cwd=Path("/"), env=SPOILT)
    assert done.returncode == 0, done.stderr
    assert re.fullmatch(r"sifwright: making \.venv \(Python 3\.\d+\.\d+\) …\n", done.stderr)
    assert done.stdout == ""  # `make jobscript >job.sh` is the script alone
    return copy


def works(copy: Path) -> bool:
    python = copy / ".venv/bin/python"
    done = run(python, "-c", "import sifwright; print(sifwright.__file__)", cwd=Path("/"))
    first_line = (copy / ".venv/bin/sifwright").read_text().split("\n")[:2]
    return done.stdout.strip() == str(copy / "builder/sifwright/__init__.py") and str(
        python
    ) in "".join(first_line)


@pytest.mark.all
def test_gives_an_editable_installation_without_second_copies(made_checkout: Path) -> None:
    assert works(made_checkout)
    assert not list((made_checkout / ".venv").rglob("_data"))
    assert not (made_checkout / ".venv/.sifwright-begun").exists()


def test_an_environment_of_another_user_stays(tmp_path: Path) -> None:
    (tmp_path / "tools").mkdir()
    shutil.copy(CHECKOUT / "tools/make-venv", tmp_path / "tools")
    (tmp_path / "pyproject.toml").touch()
    if os.geteuid() == 0:
        (tmp_path / ".venv").mkdir()
        os.chown(tmp_path / ".venv", 4242, -1)
    else:
        (tmp_path / ".venv").symlink_to("/usr")  # root's
    done = run("tools/make-venv", cwd=tmp_path)
    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    assert line.startswith(f"sifwright: {tmp_path}/.venv belongs to ")
    assert (tmp_path / ".venv").exists()


@pytest.mark.all
def test_second_run_does_nothing(made_checkout: Path) -> None:
    before = (made_checkout / ".venv/.sifwright-stamp").stat().st_mtime_ns
    again = run("tools/make-venv", cwd=made_checkout)
    assert (again.returncode, again.stdout, again.stderr) == (0, "", "")
    assert (made_checkout / ".venv/.sifwright-stamp").stat().st_mtime_ns == before


@pytest.mark.all
def test_changed_pyproject_installs_again(made_checkout: Path) -> None:
    with (made_checkout / "pyproject.toml").open("a") as pyproject:
        pyproject.write("# changed\n")
    done = run("tools/make-venv", cwd=made_checkout)
    assert done.stderr.startswith("sifwright: updating .venv (Python 3.")
    assert works(made_checkout)


def is_healthy(copy: Path) -> bool:
    return run("/bin/bash", "-c", ". tools/make-venv; is_healthy", cwd=copy).returncode == 0


@pytest.mark.all
def test_copied_checkout_does_not_take_the_environment_of_the_first(
    made_checkout: Path, tmp_path: Path
) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(made_checkout, copy, symlinks=True)
    assert is_healthy(made_checkout)
    assert not is_healthy(copy)


@pytest.mark.all
def test_environment_without_its_python_is_made_anew(made_checkout: Path) -> None:
    python = made_checkout / ".venv/bin/python"
    python.unlink()
    python.symlink_to("/nowhere/python3")
    done = run("tools/make-venv", cwd=made_checkout)
    assert done.stderr.startswith("sifwright: making .venv "), done.stderr
    assert works(made_checkout)


@pytest.mark.all
def test_failed_installation_shows_the_log_and_will_be_repeated(made_checkout: Path) -> None:
    good = (made_checkout / "pyproject.toml").read_text()
    (made_checkout / "pyproject.toml").write_text("[broken")
    done = run("tools/make-venv", cwd=made_checkout)
    (made_checkout / "pyproject.toml").write_text(good)
    assert done.returncode == 1
    assert "TOMLDecodeError" in done.stderr
    assert "sifwright: failed: " in done.stderr
    assert not (made_checkout / ".venv/.sifwright-stamp").exists()
    assert not is_healthy(made_checkout)


def fake_python(path: str, *, new_enough: bool) -> None:
    python = Path(path) / "python3"
    answer = "*version_info*) exit 0 ;;" if new_enough else ""
    python.write_text(f'#!/bin/bash\ncase "$*" in {answer} *) exit 1 ;; esac\n')
    python.chmod(0o755)


@pytest.mark.parametrize("new_enough", [False, True])
def test_no_usable_python_is_explained(path_without: PathWithout, *, new_enough: bool) -> None:
    path = path_without(*PYTHONS, "apt-get")
    copy = copy_checkout(CHECKOUT, Path(path).with_name("copy"))
    fake_python(path, new_enough=new_enough)
    done = run("tools/make-venv", cwd=copy, env={"PATH": path})
    assert done.returncode == 1
    advice = "sudo apt install python3-venv" if new_enough else "needs Python >= 3.11"
    assert advice in done.stderr
    assert not (copy / ".venv").exists()


def test_unknown_argument_is_refused() -> None:
    done = run("tools/make-venv", "--wrong")
    assert done.returncode == 1
    assert "unknown argument '--wrong'" in done.stderr


@pytest.mark.parametrize(
    ("wanted", "installed", "expected"),
    [
        ("run", "", "run"),
        ("plot", "run", "plot"),
        ("run", "plot", "plot"),
        ("plot", "dev", "dev"),
        ("run", "dev", "dev"),
        ("dev", "plot", "dev"),
    ],
)
def test_an_extra_is_not_given_up(wanted: str, installed: str, expected: str) -> None:
    call = f"source {CHECKOUT}/tools/make-venv; larger '{wanted}' '{installed}'"
    assert run("bash", "-c", call).stdout == f"{expected}\n"
