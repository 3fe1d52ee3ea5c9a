"""The host is asked for the packages of images before anything is written."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

import pytest

from sifwright.install.native import layer_needs
from sifwright.plan.resolve import resolve
from tests.conftest import run
from tests.stacks import write
from tests.system.native.test_host_software import change_site
from tests.unit.conftest import CHECKOUT, program
from tests.unit.install.test_host_needs import executable, native

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from sifwright.catalog.model import Catalog
    from tests.system.native.project import Project
    from tests.unit.conftest import Cli

# The host's Python has a check of its own. The last two come with libibverbs1 and a compiler.
CHECKED_OTHERWISE = {"python3", "python3-venv", "ibverbs-providers", "libc6-dev"}
INSTALLED = re.compile(r"apt-install ([a-z0-9. +-]+)|packages\+?=\(([a-z0-9. +-]+)\)")


def need(project: Project, *needs: Mapping[str, object], **header: object) -> None:
    """Let layer `last` need these; their packages and modules are examples."""
    file = project.folder / "defs/layers/last/layer.yaml"
    example = {"package": "libsome-dev", "module": "some"}
    header["host-needs"] = [{**example, **item} for item in needs]
    write(file, json.loads(file.read_text()) | header)


def test_all_that_is_missing(project: Project, run_cli: Cli) -> None:
    program("cc")
    need(project, {"header": "nowhere/a.h"}, {"library": "nowhere"}, {"program": "no-where"})
    done = run_cli(*project.words())
    assert (done.code, project.prefix.exists()) == (5, False), done.err
    where = "site 'local'"
    assert f"{where}: no compiler finds nowhere/a.h, which layers last need" in done.err
    assert f"{where}: no compiler finds the library nowhere, which layers last need" in done.err
    assert f"{where}: there is no program 'no-where', which layers last need" in done.err
    fix = "in native.modules of defs/sites/local.yaml, or install it"
    assert done.err.count(f"has it {fix} (Debian's package: libsome-dev).\n") == 3


def test_what_is_there(project: Project, run_cli: Cli, tmp_path: Path) -> None:
    """Find it where the compiler does by CPATH, and CMake in the folders of modules."""
    for name in ("one/a.h", "two/include/b.h"):
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).touch()
    library = tmp_path / "two/lib/libtwo.so"
    library.parent.mkdir()
    run([program("cc"), "-shared", "-x", "c", "/dev/null", "-o", library])
    needs = [{"header": "a.h"}, {"header": "b.h"}, {"library": "two"}, {"program": "bash"}]
    need(project, *needs, {"shared-library": "libc.so.6"})
    paths = {"CPATH": f"{tmp_path}/one", "CMAKE_PREFIX_PATH": f"/nowhere:{tmp_path}/two"}
    change_site(project, native=native(**paths))
    done = run_cli(*project.words())
    assert (done.code, "Debian" in done.out) == (0, False), done.err


def test_only_for_some_sites_and_options(project: Project, run_cli: Cli) -> None:
    option = {"type": "boolean", "description": "Compile", "default": False}
    of_amd = {"header": "of-amd.h", "for": {"vendor": ["amd"]}}
    need(project, of_amd, {"header": "no.h", "when": "ops"}, options={"ops": option})
    assert run_cli(*project.words()).code == 0
    done = run_cli(*project.words("--set", "last.ops=true"))
    assert (done.code, "no compiler finds no.h" in done.err) == (5, True)
    assert "libsome-dev), or --set last.ops=false." in done.err
    assert "of-amd.h" not in done.err


@pytest.mark.parametrize("compiler", ["cc", "no-such-compiler"])
def test_what_a_layer_can_do_without(project: Project, run_cli: Cli, compiler: str) -> None:
    """Note it before the first step; a missing compiler locks nobody out."""
    needs = [{"header": "nowhere.h"}, {"shared-library": "libnowhere.so.1"}]
    need(project, *({**item, "without": "it is slow"} for item in needs))
    change_site(project, native=native(CC=compiler))
    done = run_cli(*project.words())
    assert done.code == 0, done.err
    notes, _, _ = done.out.partition("first ")
    assert "site 'local': no compiler finds nowhere.h: it is slow (layers last)" in notes
    assert "site 'local': there is no library libnowhere.so.1: it is slow (layers last)" in notes
    assert notes.count("in modules.host of defs/sites/local.yaml") == 2


def test_a_compiler_of_other_words(project: Project, run_cli: Cli) -> None:
    """Tell nothing of headers, as nothing can be known."""
    need(project, {"header": "nowhere.h"}, {"library": "nowhere"})
    change_site(project, native=native(CC="false"))
    assert run_cli(*project.words()).code == 0


@pytest.mark.parametrize(
    "setting", ["packages=numactl", f"explicit=https://x.example/a#{'0' * 32}"]
)
def test_conda_may_have_it(real: Catalog, setting: str) -> None:
    """Refuse nothing that the environment may have; its Python has its own header."""
    plan = resolve(real, "derecho", "pytorch-source", [f"conda.{setting}"], prefix="/sw/app")
    needs = {item.need.name: item.without for item in layer_needs.layer_needs(plan)}
    assert {"openblas", "numa.h", "png.h"} < needs.keys()
    assert all("conda.packages" in without for without in needs.values())
    assert "Python.h" not in needs
    assert layer_needs.problem(plan, "header", "numa.h").severity == "note"


def test_conda_without_packages(real: Catalog) -> None:
    """Refuse before PyTorch is compiled: the environment has Python and pip only."""
    plan = resolve(real, "derecho", "pytorch-source", (), prefix="/sw/app")
    problem = layer_needs.problem(plan, "header", "numa.h")
    assert problem.severity == "error"
    assert "or --set pytorch-source.numa=false" in problem.fix
    assert "by --set conda.packages=NAME." in problem.fix


def test_no_package_is_left_out_unchecked(real: Catalog) -> None:
    """Name every package that a layer of hosts installs in images."""
    for layer in real.layers.values():
        matches = INSTALLED.findall(layer.install) if layer.native else []
        packages = {name for match in matches for name in " ".join(match).split()}
        asked = {need.package for need in layer.host_needs}
        assert packages - asked <= CHECKED_OTHERWISE, layer.name


def test_deepspeed_on_a_host(tmp_path: Path) -> None:
    """Compile its kernels with the host's libaio, without a package manager."""
    stubs = ("fetch-source", "cuda-archs", "build-jobs", "pip")
    for name in stubs:
        executable(tmp_path / name, f'#!/bin/sh\necho {name} "$DS_BUILD_OPS"\n')
    env = {"OPT_OPS": "true", "OPT_ARCH": "sm_80", "IMAGE_ROOT": str(tmp_path)}
    env |= {"INSTALL_PREFIX": str(tmp_path), "PATH": f"{tmp_path}:/usr/bin:/bin"}
    script = CHECKOUT / "defs/layers/deepspeed/install.sh"
    done = run([program("bash"), script], cwd=tmp_path, env=env)
    assert (done.returncode, done.stdout.splitlines()[-1:]) == (0, ["pip 1"]), done.stderr
