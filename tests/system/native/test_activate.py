"""An extended environment loads the module and leaves every variable as it was."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.conftest import run
from tests.system.native.conftest import MODULE, NativeSite

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

ACTIVATE = 'source "my env/bin/activate"'
SHOW = 'echo "$LOADEDMODULES"; echo "$PATH"; echo "${PYTHONPATH-unset}"'


def _other(choose: Callable[[Iterable[int]], int]) -> str:
    """Return the oldest or newest Python 3 of pyenv, or ours: its venv writes another file."""
    root = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    results = {
        int(path.parts[-3].split(".")[1]): path for path in root.glob("versions/3.*/bin/python3")
    }
    return str(results[choose(results)]) if results else sys.executable


KINDS = {
    "virtualenv": (sys.executable, "-m", "virtualenv", "--no-seed", "--no-download"),
    "uv": (sys.executable, "-m", "uv", "venv", "--offline"),
    "venv": (sys.executable, "-m", "venv", "--without-pip"),
    "oldest-venv": (_other(min), "-m", "venv", "--without-pip"),
    "newest-venv": (_other(max), "-m", "venv", "--without-pip"),
}


@pytest.mark.parametrize("kind", KINDS)
def test_it_comes_and_goes(native_site: NativeSite, kind: str) -> None:
    native_site.venv("my env", *KINDS[kind])
    native_site.extended()
    output = native_site.checked(f"{ACTIVATE}\n{SHOW}\ndeactivate")
    assert MODULE in output[0].split(":")
    assert output[1].startswith(f"{native_site.folder}/my env/bin:{native_site.folder}/prefix/bin:")
    first, second = output[2].split(":")
    assert first.startswith(f"{native_site.folder}/my env/lib/python3")
    assert second == f"{native_site.folder}/prefix/lib/python3.12/site-packages"


@pytest.fixture
def extended(native_site: NativeSite) -> NativeSite:
    """Extend an environment of the place."""
    native_site.venv("my env")
    native_site.extended()
    return native_site


@pytest.mark.parametrize("start", ["PS1='$ '", "export PS1='$ '", "unset PS1", "PS1="])
def test_the_prompt(extended: NativeSite, start: str) -> None:
    show = f'{ACTIVATE}; echo "${{PS1-}}"; deactivate'
    assert extended.checked(show, start)[0].startswith("(my env) ")
    extended.checked(f"export VIRTUAL_ENV_DISABLE_PROMPT=1; state before\n{show}", start)


def test_a_module_that_was_loaded_stays(extended: NativeSite) -> None:
    script = f"{ACTIVATE}; deactivate; echo $LOADEDMODULES"
    output = extended.checked(script, f"module load {MODULE}")
    assert MODULE in output[0].split(":")


def test_twice(extended: NativeSite) -> None:
    once = extended.checked(f"{ACTIVATE}\n{SHOW}\ndeactivate")
    assert extended.checked(f"{ACTIVATE}\n{ACTIVATE}\n{SHOW}\ndeactivate") == once


@pytest.mark.parametrize("is_extended", [True, False])
def test_from_another_environment(extended: NativeSite, *, is_extended: bool) -> None:
    extended.venv("other")
    if is_extended:
        extended.extended("other")
    # Python's own code leaves a prompt exported, and one that was not there behind.
    start = "export PS1='$ '"
    alone = extended.checked(f"{ACTIVATE}\n{SHOW}\ndeactivate", start)
    both = f"source other/bin/activate\n{ACTIVATE}\n{SHOW}\ndeactivate"
    assert extended.checked(both, start) == alone


def test_an_environment_that_is_not_extended_leaves_the_module(extended: NativeSite) -> None:
    """Leave it although activate replaces `deactivate` before it calls it."""
    extended.venv("other")
    script = f"{ACTIVATE}\nsource other/bin/activate\ndeactivate\necho $LOADEDMODULES\necho $PATH"
    output = extended.bash(script).stdout.splitlines()
    assert MODULE in output[0].split(":")
    assert output[1].startswith(f"{extended.folder}/prefix/bin:")


@pytest.mark.parametrize("path", ["/a::/b", ""])
def test_a_pythonpath_of_the_user(extended: NativeSite, path: str) -> None:
    extended.checked(f"{ACTIVATE}\ndeactivate", PYTHONPATH=path)


def test_modules_may_come_and_go_meanwhile(extended: NativeSite) -> None:
    extended.checked(f"{ACTIVATE}\nmodule purge\ndeactivate")
    output = extended.checked(
        f"{ACTIVATE}\nmodule load other/1.0\ndeactivate\necho $PATH\nmodule unload other/1.0"
    )
    assert output == ["/opt/other/1.0/bin:/usr/local/bin:/usr/bin:/bin"]


def test_packages_of_the_environment_come_first(extended: NativeSite) -> None:
    (packages,) = (extended.folder / "my env").glob("lib/python3*/site-packages")
    ask = "python -c 'import thing; print(thing.whose)'"
    assert extended.checked(f"{ACTIVATE}\n{ask}\ndeactivate") == ["the module"]
    (packages / "thing.py").write_text("whose = 'the user'\n")
    assert extended.checked(f"{ACTIVATE}\n{ask}\ndeactivate") == ["the user"]


def test_a_module_that_is_not_there(native_site: NativeSite) -> None:
    native_site.venv("my env")
    assert native_site.extend("--module", "pytorch/9", "my env").returncode == 0
    done = native_site.bash(f"{ACTIVATE}\necho $VIRTUAL_ENV\ndeactivate\nstate after")
    assert (done.returncode, done.stdout) == (0, f"{native_site.folder}/my env\n")
    assert "pytorch/9 could not be loaded; the environment goes on without it" in done.stderr
    assert (native_site.folder / "before").read_text() == (native_site.folder / "after").read_text()


def test_without_the_command_module(without_modules: NativeSite) -> None:
    native_site = without_modules
    native_site.venv("my env")
    native_site.extended()
    done = native_site.bash(f"{ACTIVATE}\necho $VIRTUAL_ENV\ndeactivate\nstate after")
    assert (done.returncode, done.stdout) == (0, f"{native_site.folder}/my env\n")
    assert f"no command 'module' in this shell, so {MODULE} is not loaded" in done.stderr
    assert (native_site.folder / "before").read_text() == (native_site.folder / "after").read_text()


def test_a_shell_that_takes_no_functions(extended: NativeSite) -> None:
    """Make the command `module` again, as in run scripts, by the file of the module system."""
    init = extended.folder / "system/init/bash"
    init.parent.mkdir(parents=True)
    init.write_text(extended.tool.partition(";")[0])
    inner = f"bash -peuc '{ACTIVATE}; echo $LOADEDMODULES'"
    done = extended.bash(f"export MODULESHOME={init.parents[1]}; unset LMOD_PKG; {inner}")
    assert MODULE in done.stdout.strip().split(":"), done.stderr


def test_another_shell_goes_past_it(without_modules: NativeSite) -> None:
    native_site = without_modules
    native_site.venv("my env")
    native_site.extended()
    script = '. "my env/bin/activate"; echo "$VIRTUAL_ENV"; deactivate; set | grep -i extend_venv'
    done = run(["dash", "-eu", "-c", f"{script} || echo gone"], cwd=native_site.folder)
    assert done.stdout == f"{native_site.folder}/my env\ngone\n"
    assert done.stderr.splitlines() == [
        f"extend-venv-activate: this works in bash only; in this shell: module load {MODULE}"
    ]
