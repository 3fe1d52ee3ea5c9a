"""The modules of a site, by Lmod: an installation loads them, or says which are missing."""

from __future__ import annotations

import json
import os
import shutil
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from tests.checkouts import write_image
from tests.conftest import ROOT, run, sifwright
from tests.stacks import write
from tests.system.native.conftest import LMOD, STATE

if TYPE_CHECKING:
    import subprocess
    from pathlib import Path

    from tests.system.native.project import Project

BASH = shutil.which("bash") or ""
pytestmark = pytest.mark.skipif(
    not LMOD.exists(), reason="Lmod is not installed: tools/install-test-programs"
)


def make_module(folder: Path, name: str, text: str) -> None:
    file = folder / f"{name}.lua"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


def change_site(project: Project, **facts: object) -> None:
    file = project.folder / "defs/sites/local.yaml"
    write(file, json.loads(file.read_text()) | facts)


def install(project: Project, modules: Path, **env: str) -> subprocess.CompletedProcess[str]:
    """Install as a user whose login shell has Lmod with the folder of modules."""
    program = [sys.executable, "-m", "sifwright", *project.words()]
    script = f'source {LMOD}; exec "$@"'
    env = os.environ | {"MODULEPATH": str(modules), **env}
    return run([BASH, "-c", script, "bash", *program], env=env)


@pytest.mark.smoke
def test_modules_that_are_not_there(project: Project, tmp_path: Path) -> None:
    """Name all missing modules, with the site's alternatives, before a file is written."""
    modules = tmp_path / "modules"
    make_module(modules, "cmake/3.24", "")
    make_module(modules, "gcc/13.2", "")
    change_site(
        project,
        modules={"init": str(LMOD), "host": ["gcc/13.2", "absent/1"]},
        native={"provides": [], "modules": ["cmake/3.25"], "source": "this test"},
    )
    done = install(project, modules)
    assert (done.returncode, project.prefix.exists()) == (5, False), done.stderr
    assert "module 'absent/1' cannot be loaded" in done.stderr
    assert "Name one that is there in modules.host of defs/sites/local.yaml" in done.stderr
    assert "module 'cmake/3.25' cannot be loaded" in done.stderr
    assert "native.modules of defs/sites/local.yaml. The site has module cmake/3.24" in done.stderr
    # The words of Lmod stand below the module that they are about.
    first, _, second = done.stderr.partition("module 'cmake/3.25'")
    for words, name in ((first, "absent/1"), (second, "cmake/3.25")):
        assert (words.count("unknown"), words.count(f'load "{name}"')) == (1, 1)


def test_no_compiler(project: Project, tmp_path: Path) -> None:
    """Name the modules that may have a compiler."""
    project.add("last", requires=["compilers"])
    make_module(tmp_path / "modules", "gcc/13.2", f'prepend_path("PATH", "{tmp_path}/gcc")')
    (tmp_path / "bin").mkdir()
    for name in ("bash", "env", "grep", "sed", "head", "id", "timeout", "uname"):
        (tmp_path / "bin" / name).symlink_to(shutil.which(name) or "/nowhere")
    done = install(project, tmp_path / "modules", PATH=str(tmp_path / "bin"))
    assert (done.returncode, project.prefix.exists()) == (5, False), done.stderr
    assert "there is no program 'cc', which layers last need" in done.stderr
    assert "native.modules of defs/sites/local.yaml" in done.stderr
    assert "The site has module gcc/13.2" in done.stderr


@pytest.mark.smoke
def test_modules_that_may_have_a_header(project: Project, tmp_path: Path) -> None:
    """Name them before a file is written; with the module of the header, the compiler finds it."""
    layer = project.folder / "defs/layers/last/layer.yaml"
    needs = [{"header": "tiny.h", "package": "libtiny-dev", "module": "libtiny|tiny"}]
    write(layer, json.loads(layer.read_text()) | {"host-needs": needs})
    modules, include = tmp_path / "modules", tmp_path / "include"
    make_module(modules, "numerics/tiny/1.2", f'prepend_path("CPATH", "{include}")')
    make_module(modules, "untiny/1", "")
    include.mkdir()
    (include / "tiny.h").touch()
    done = install(project, modules)
    assert (done.returncode, project.prefix.exists()) == (5, False), done.stderr
    assert "no compiler finds tiny.h, which layers last need" in done.stderr
    assert "package: libtiny-dev). The site has module numerics/tiny/1.2.\n" in done.stderr
    assert "untiny" not in done.stderr
    native = {"provides": [], "modules": ["numerics/tiny/1.2"], "source": "this test"}
    change_site(project, modules={"init": str(LMOD)}, native=native)
    done = install(project, modules)
    assert done.returncode == 0, done.stderr


def test_a_layer_that_asks_for_a_package(project: Project, tmp_path: Path) -> None:
    """Name the modules that may have it, as `install` cannot know of it before."""
    project.add("last", last="apt-install libtiny-dev")
    make_module(tmp_path / "modules", "tiny/1.2", "")
    done = install(project, tmp_path / "modules")
    assert done.returncode == 6, done.stderr
    assert "layer 'last' asks for packages of the system: libtiny-dev" in done.stderr
    assert "for libtiny-dev, the site has module tiny/1.2" in done.stderr


# A wrapper like Cray's `cc`: it compiles for MPI under any name.
WRAPPER = '#!/bin/bash\necho "$*" >>"{log}"\nexec mpicc "$@"\n'
# The Python of the environment, without pip, which would come from an index.
VENV = (
    '#!/bin/bash\nset -euo pipefail\n"$HOST_PYTHON" -m venv --without-pip "$INSTALL_PREFIX/venv"\n'
)
LOADED = "import os; print(os.environ['LOADEDMODULES'])"


@dataclass(frozen=True, kw_only=True)
class Site:
    """A site with modules that a user's shell finds, and a module that the user has loaded."""

    project: Project
    modules: Path
    toolkit: Path

    def facts(self, provides: list[str], environment: dict[str, str], **facts: object) -> None:
        native = {"provides": provides, "modules": ["cmake/3"], "environment": environment}
        native |= {"source": "this test"}
        modules = {"init": str(LMOD), "purge": "plain", "host": ["toolkit/1"]}
        change_site(self.project, native=native, modules=modules, **facts)

    def bash(self, script: str, *words: object) -> subprocess.CompletedProcess[str]:
        start = f"set -e; source {LMOD}; module load mine/1; {script}"
        env = os.environ | {"MODULEPATH": str(self.modules), "LC_ALL": "C.UTF-8"}
        return run([BASH, "-c", start, "bash", *words], env=env, cwd=self.project.folder)

    def install(self, *words: str) -> subprocess.CompletedProcess[str]:
        program = [sys.executable, "-m", "sifwright", *self.project.words(*words)]
        return self.bash('exec "$@"', *program)


@pytest.fixture
def site(project: Project, tmp_path: Path) -> Site:
    modules, toolkit = tmp_path / "modules", tmp_path / "toolkit"
    (toolkit / "bin").mkdir(parents=True)
    text = f'setenv("TOOLKIT_ROOT", "{toolkit}")\nprepend_path("PATH", "{toolkit}/bin")\n'
    make_module(modules, "toolkit/1", text)
    make_module(modules, "cmake/3", "")
    make_module(modules, "mine/1", "")
    return Site(project=project, modules=modules, toolkit=toolkit)


@pytest.mark.smoke
def test_a_job_has_the_modules_of_the_installation(site: Site) -> None:
    """Begin both without the user's modules; the installation adds those of native.modules."""
    project = site.project
    layer = project.folder / "defs/layers/python-venv"
    (layer / "install.sh").write_text(VENV)
    (layer / "test.sh").unlink()
    project.add("last", last='echo "$LOADEDMODULES $CUDA_HOME" >"$INSTALL_PREFIX/last/modules"')
    project.image("python-venv", "last", "run-scripts")
    site.facts([], {"CUDA_HOME": "$TOOLKIT_ROOT/cuda"})
    done = site.install()
    assert done.returncode == 0, done.stderr
    during = (project.prefix / "current/last/modules").read_text().split()
    assert during == ["toolkit/1:cmake/3", f"{site.toolkit}/cuda"]
    words = ["--project", project.folder, "jobscript", "--site", "local", "--nodes", "1"]
    words += ["--environment", project.prefix / "current", "--", "-c", LOADED]
    job = sifwright(*words)
    assert job.returncode == 0, job.stderr
    (project.folder / "job.sh").write_text(job.stdout)
    ran = site.bash("exec bash job.sh")
    assert ran.stdout.split()[-1:] == ["toolkit/1"], ran.stderr


@pytest.mark.smoke
def test_activation_gives_the_user_s_modules_back(site: Site) -> None:
    site.facts([], {})
    assert site.install().returncode == 0
    script = f"""
        module load toolkit/1; module unload toolkit/1
        {STATE}
        state before
        source {site.project.prefix}/current/bin/activate
        echo "$LOADEDMODULES"
        deactivate
        state after; echo "$LOADEDMODULES"; diff before after"""
    done = site.bash(script)
    assert (done.returncode, done.stdout) == (0, "toolkit/1\nmine/1\n"), done.stderr


def test_a_compiler_wrapper_of_the_site(site: Site) -> None:
    """Compile mpi4py by `cc -shared`, as Cray's wrappers need it."""
    project, log = site.project, site.toolkit / "log"
    (site.toolkit / "bin/wrapper").write_text(WRAPPER.format(log=log))
    (site.toolkit / "bin/wrapper").chmod(0o755)
    for name in ("mpich", "mpich-wheel", "mpi4py"):
        shutil.copytree(ROOT / "defs/layers" / name, project.folder / "defs/layers" / name)
    project.image("python-venv", "mpich-wheel", "mpi4py")
    site.facts(["compilers"], {"MPICC": "wrapper -shared"})
    done = site.install("--set", "mpi4py.optimize=0")
    assert done.returncode == 0, done.stderr
    assert "-shared" in log.read_text()
    assert "MPI.c" in log.read_text()


@pytest.mark.skipif("libcuda.so.1" in run(["/sbin/ldconfig", "-p"]).stdout, reason="a driver")
def test_a_stub_in_place_of_the_driver(site: Site) -> None:
    """Find the toolkit's stub or report its absence: login nodes have no libcuda.so.1."""
    project, cuda = site.project, site.toolkit / "cuda"
    for name in ("bin/nvcc", "lib64/stubs/libcuda.so"):
        (cuda / name).parent.mkdir(parents=True)
        (cuda / name).touch(mode=0o755)
    shutil.copytree(ROOT / "defs/layers/horovod", project.folder / "defs/layers/horovod")
    layer = project.folder / "defs/layers/torch"
    layer.mkdir()
    header = {"summary": "no torch", "native": True, "requires": ["python"], "provides": ["torch"]}
    write(layer / "layer.yaml", header)
    shutil.copy(ROOT / "tests/system/native/no_torch.sh", layer / "install.sh")
    horovod = {"layer": "horovod", "options": {"cxx": "17", "mpi": "none"}}
    write_image(project.folder, "tiny", ("base-debian", "python-venv", "torch", horovod))
    words = ["compilers", "cuda-toolkit"]
    facts = {"vendor": "nvidia", "mpi": {"name": "openmpi"}}
    site.facts(words, {"CUDA_HOME": "$TOOLKIT_ROOT/cuda"}, **facts)
    done = site.install()
    assert done.returncode == 6, done.stderr
    assert f"the loader takes {cuda}/lib64/stubs/libcuda.so" in done.stderr
    (cuda / "lib64/stubs/libcuda.so").unlink()
    done = site.install()
    assert "there is neither a driver nor a stub of it, libcuda.so, below" in done.stderr
