"""`sifwright install` names what the host lacks before it writes anything."""

from __future__ import annotations

import json
import os
import sys
from contextlib import suppress
from pathlib import Path
from select import select
from typing import TYPE_CHECKING

import pytest

from sifwright.install.native import host_needs
from tests.conftest import run
from tests.stacks import write
from tests.system.native.test_host_software import change_site
from tests.unit.conftest import CHECKOUT, program

if TYPE_CHECKING:
    from tests.system.native.project import Project
    from tests.unit.conftest import Cli, Result


@pytest.fixture
def project(project: Project) -> Project:
    """Add the layer of virtual environments."""
    project.image("python-venv", "first", "last")
    return project


def native(**environment: str) -> dict[str, object]:
    provided = ["compilers", "mpi", "cuda-toolkit"]
    return {"provides": provided, "environment": environment, "source": "this test"}


def executable(path: Path, text: str) -> Path:
    path.write_text(text)
    path.chmod(0o755)
    return path


def refused(project: Project, run_cli: Cli, *words: str) -> Result:
    """Return the refusal; nothing was written."""
    done = run_cli(*project.words(*words))
    assert (done.code, project.prefix.exists()) == (5, False), done.err
    return done


def test_a_python_that_is_not_there(project: Project, run_cli: Cli) -> None:
    message = refused(project, run_cli, "--set", "host.program=/nowhere").err
    assert (
        "site 'local': there is no program '/nowhere', which is to be the host's Python" in message
    )
    assert "by --set host.program=PATH" in message


def test_another_python(project: Project, run_cli: Cli) -> None:
    message = refused(project, run_cli, "--set", "host.python=3.6").err
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    assert f"is Python {version}, and the plan is for 3.6" in message
    assert f"or plan with --set host.python={version}" in message


def test_a_program_that_is_no_python(project: Project, run_cli: Cli) -> None:
    message = refused(project, run_cli, "--set", "host.program=/bin/false").err
    assert "/bin/false cannot be run as a Python" in message


def test_a_python_without_venv(project: Project, run_cli: Cli, tmp_path: Path) -> None:
    hidden = "import sys; sys.modules['venv'] = None; "
    text = f'#!/bin/sh\nexec {sys.executable} -c "{hidden}$2"\n'
    program = executable(tmp_path / "python", text)
    message = refused(project, run_cli, "--set", f"host.program={program}").err
    assert f"{program} has no venv, or no ensurepip" in message


def test_compilers_and_toolkits(project: Project, run_cli: Cli) -> None:
    """Name all at once, with the layers that need them."""
    words = native(CC="no-such-compiler", MPICC="no-such-mpicc -shared", CUDA_HOME="/no/cuda")
    change_site(project, native=words)
    project.add("first", requires=["compilers", "mpi", "cuda-toolkit"])
    project.add("last", requires=["compilers"])
    message = refused(project, run_cli).err
    assert "there is no program 'no-such-compiler', which layers first, last need" in message
    assert "there is no program 'no-such-mpicc', which layers first need" in message
    assert "there is no program '/no/cuda/bin/nvcc', which layers first need" in message
    assert "native.modules of defs/sites/local.yaml" in message


@pytest.mark.parametrize("variable", ["CC", "CXX"])
def test_a_compiler_that_cannot_compile(
    project: Project, run_cli: Cli, tmp_path: Path, variable: str
) -> None:
    """Name it with its own words, as a compiler whose modules are not loaded says them."""
    text = "#!/bin/sh\necho no programming environment >&2\nexit 1\n"
    wrapper = executable(tmp_path / "wrapper", text)
    change_site(project, native=native(**{variable: str(wrapper)}))
    project.add("last", requires=["compilers"])
    message = refused(project, run_cli).err
    assert f"{wrapper} cannot compile, which layers last need" in message
    assert message.count("| no programming environment\n") == 1
    assert "Name the module that it needs in native.modules of defs/sites/local.yaml" in message


def test_a_host_compiler_that_nvcc_refuses(project: Project, run_cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    nvcc = executable(tmp_path / "bin" / "nvcc", "#!/bin/sh\necho gcc is too new >&2\nexit 1\n")
    change_site(project, native=native(CUDA_HOME=str(tmp_path)))
    project.add("first", requires=["cuda-toolkit"])
    message = refused(project, run_cli).err
    assert f"{nvcc} cannot compile, which layers first need" in message
    assert "| gcc is too new\n" in message


def test_a_host_without_headers_of_c(project: Project, run_cli: Cli) -> None:
    change_site(project, native=native(CC="gcc -nostdinc"))
    project.add("last", requires=["compilers"])
    assert "gcc cannot compile, which layers last need" in refused(project, run_cli).err


def end_once_started(
    project: Project, run_cli: Cli, monkeypatch: pytest.MonkeyPatch, started: Path
) -> None:
    """Let the check run out of its time, and give it more until the program wrote its file."""
    monkeypatch.setattr(host_needs, "_KILL_SECONDS", 1)
    for seconds in (1, 4, 16, 64):
        monkeypatch.setattr(host_needs, "_SECONDS", seconds)
        answer = f"site 'local': its modules and programs do not answer in {seconds} s\n"
        assert answer in refused(project, run_cli).err
        if started.exists():
            return
    pytest.fail("the program was never started")


@pytest.mark.parametrize("first", ["", "trap '' TERM;"])
def test_a_module_that_hangs(
    project: Project, run_cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, first: str
) -> None:
    """Say so after a time, and leave nothing of it behind, though it heeds no signal."""
    hang = f"{first} sleep 1000 & echo $! >{tmp_path}/pid; wait"
    (tmp_path / "init").write_text(f"module() {{ echo module $2; {hang}; }}")
    change_site(project, modules={"init": str(tmp_path / "init"), "host": ["one/1"]})
    end_once_started(project, run_cli, monkeypatch, tmp_path / "pid")
    with suppress(ProcessLookupError):
        left = os.pidfd_open(int((tmp_path / "pid").read_text()))
        assert select([left], [], [], 60)[0]


def test_a_compiler_that_hangs(
    project: Project, run_cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Leave nothing in the user's folder for temporary files."""
    (temporary := tmp_path / "temporary").mkdir()
    monkeypatch.setenv("TMPDIR", str(temporary))
    # It refuses its standard input, so a file is written for it.
    hang = f"[[ $* != *'-S -'* ]] || exit 1\ntouch {tmp_path}/tried\nexec sleep 1000\n"
    wrapper = executable(tmp_path / "wrapper", f"#!/bin/bash\n{hang}")
    change_site(project, native=native(CC=str(wrapper)))
    project.add("last", requires=["compilers"])
    end_once_started(project, run_cli, monkeypatch, tmp_path / "tried")
    assert list(temporary.iterdir()) == []


def test_a_gcc_that_is_too_new_for_nvcc(
    project: Project, run_cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Use the real gcc, with another release in its name."""
    text = f'#!/bin/sh\nexec {program("gcc")} -U__GNUC__ -D__GNUC__=16 "$@"\n'
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    executable(tmp_path / "gcc", text)
    project.add("last", facts={"newest-gcc": {"text": "15"}})
    message = refused(project, run_cli).err
    assert "gcc is release 16, and the plan's CUDA compiler takes none after 15" in message
    assert "In defs/sites/local.yaml, name the module of an older gcc" in message
    project.add("last", facts={"newest-gcc": {"text": "16"}})
    assert "gcc" not in refused(project, run_cli, "--set", "host.program=/nowhere").err


def test_what_an_option_requires(project: Project, run_cli: Cli) -> None:
    change_site(project, native=native(CC="/nowhere/cc"))
    header = project.folder / "defs/layers/last/layer.yaml"
    needs = [{"name": "compilers", "when": "ops"}]
    ops = {"type": "boolean", "description": "Compile", "default": False}
    known = json.loads(header.read_text())
    write(header, known | {"requires": needs, "options": {"ops": ops}})
    message = refused(project, run_cli, "--set", "last.ops=true").err
    assert "there is no program '/nowhere/cc', which layers last need" in message
    assert run_cli(*project.words()).code == 0


def test_programs_that_fetch_sources(
    project: Project, run_cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit, digest = {"commit": "0" * 40}, {"sha256": "0" * 64}
    git = {"git": "https://site.example/one.git", "tag": "v{version}"}
    pins = {
        "one": {**git, "versions": {"1": commit}},
        "two": {"archive": "https://site.example/{version}.tar.gz", "versions": {"1": digest}},
        "three": {"pip": "three", "versions": {"1": digest}},
    }
    write(project.folder / "defs/layers/last/pins.yaml", pins)
    version = {"type": "string", "description": "Version", "default": "1"}
    layer = project.folder / "defs/layers/last/layer.yaml"
    write(layer, json.loads(layer.read_text()) | {"options": {"version": version}})
    (tmp_path / "bin").mkdir()
    for name in ("bash", "env", "grep", "sed", "head", "id", "timeout", "uname"):
        (tmp_path / "bin" / name).symlink_to(program(name))
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    message = refused(project, run_cli).err
    for name in ("git", "curl"):
        assert message.count(f"there is no program '{name}', which layers last need") == 1


def test_a_variable_that_no_module_sets(project: Project, run_cli: Cli) -> None:
    change_site(project, native=native(CUDA_HOME="$NO_SUCH_ROOT/cuda", NEXT="$CUDA_HOME/lib"))
    message = refused(project, run_cli).err
    assert "no module sets NO_SUCH_ROOT, which native.environment.CUDA_HOME names" in message
    assert "no module sets CUDA_HOME, which native.environment.NEXT names" in message


def test_no_module_system(project: Project, run_cli: Cli, tmp_path: Path) -> None:
    init = tmp_path / "init"
    init.touch()
    change_site(project, modules={"init": str(init), "host": ["some/1"]})
    message = refused(project, run_cli).err
    assert "there is no command 'module', and these are to be loaded: some/1" in message
    change_site(project, modules={"init": "$NO_SUCH_FOLDER/init", "host": ["some/1"]})
    message = refused(project, run_cli).err
    assert "NO_SUCH_FOLDER" in message
    assert "Correct modules.init of defs/sites/local.yaml" in message


def test_a_disk_that_is_too_small(project: Project, run_cli: Cli) -> None:
    layer = project.folder / "defs/layers/first/layer.yaml"
    write(layer, json.loads(layer.read_text()) | {"disk_mb": 10**9})
    message = refused(project, run_cli).err
    assert f"{project.prefix}: 1500000.2 GB are needed for the installation" in message
    assert "or name another --prefix" in message


def test_steps_compile_where_the_user_wants(
    project: Project, run_cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project.image("first", "last")
    project.add("last", last='echo "$TMPDIR" "$HOME" >"$INSTALL_PREFIX/last/folders"')
    monkeypatch.setenv("APPTAINER_TMPDIR", str(tmp_path / "disk"))
    assert run_cli(*project.words()).code == 0
    folders = (project.prefix / "current/last/folders").read_text()
    assert folders.count(f"{tmp_path}/disk/sifwright-") == 2
    assert list((tmp_path / "disk").iterdir()) == []


def test_flags_of_the_shell_do_not_reach_steps(
    project: Project, run_cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Keep what modules of the shell have set, and what the site's file sets."""
    project.image("first", "last")
    change_site(project, native=native(LDFLAGS="-Lsite"))
    own = ("CFLAGS", "LDFLAGS", "USE_CUDA", "MAKEFLAGS", "GIT_DIR", "MAMBA_ROOT_PREFIX")
    for name in (*own, "CPATH", "MAX_JOBS"):
        monkeypatch.setenv(name, "mine")
    project.add("last", last='env >"$INSTALL_PREFIX/last/variables"')
    assert run_cli(*project.words()).code == 0
    lines = (project.prefix / "current/last/variables").read_text().splitlines()
    variables = dict(line.partition("=")[::2] for line in lines)
    assert variables["LDFLAGS"] == "-Lsite"
    assert {name for name, value in variables.items() if value == "mine"} == {"CPATH", "MAX_JOBS"}


@pytest.mark.skipif(Path("/usr/include/nccl.h").exists(), reason="this machine has NCCL")
def test_a_host_without_nccl(tmp_path: Path) -> None:
    """Tell the site's key and the option, as a host can have no layer nccl."""
    stubs = {"fetch-source": "mkdir source", "python": "", "mpicxx": "", "build-jobs": "echo 1"}
    for name, text in (stubs | {"cuda-archs": ""}).items():
        executable(tmp_path / name, f"#!/bin/sh\n{text}\n")
    options = {"ARCH": "sm_80", "VENDOR": "nvidia", "VERSION": "2.10.0", "SYSTEM_NCCL": "true"}
    options |= {"OPENBLAS": "true", "NUMA": "true"}
    env = {f"OPT_{name}": value for name, value in options.items()}
    env |= {"INSTALL_PREFIX": str(tmp_path), "IMAGE_ROOT": str(tmp_path), "CUDA_HOME": "/nowhere"}
    env["PATH"] = f"{tmp_path}:/usr/bin:/bin"
    script = CHECKOUT / "defs/layers/pytorch-source/install.sh"
    done = run([program("bash"), script], cwd=tmp_path, env=env)
    assert (done.returncode, "no nccl.h on this host: name" in done.stderr) == (1, True)
    assert "set pytorch-source.system-nccl=false" in done.stderr
