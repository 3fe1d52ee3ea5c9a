"""Modules of a job, by the real bash with a `module` that records; Lmod: tests/system/slurm."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from sifwright.catalog.model import Modules
from sifwright.errors import UsageError

if TYPE_CHECKING:
    from pathlib import Path

    from sifwright.catalog.model import Catalog, Site
    from tests.unit.jobs import Bench

# Records, and does what a module of an image does.
LOADS = """() { printf '%s\\n' "module $*" >>"$RECORD/modules"
  case $* in "purge") unset SIF ;; "load "*PyTorch*) export SIF=/etc/hostname ;; esac; }"""


@pytest.fixture
def site(real: Catalog) -> Site:
    """Return a site that purges modules, and loads two of its own."""
    return replace(real.sites["slurm-generic"], cache="")


def test_the_modules_of_the_request_come_after_the_sites(bench: Bench, site: Site) -> None:
    names, folders = ("LUMI/25.03", "ai/PyTorch/2.10.0-rocm-7.0.2"), ("/a", "/it's $(here)")
    text = bench.render(site, ranks_per_node=1, modules=names, module_paths=folders)
    ran = bench.run(text, SIF="/stale", **{"BASH_FUNC_module%%": LOADS})
    assert (ran.code, ran.out, ran.err) == (0, "", "")
    assert ran.modules == [
        "module purge",
        "module load apptainer openmpi",
        "module unload ai/PyTorch LUMI",
        "module use /it's $(here)",
        "module use /a",
        "module load LUMI/25.03 ai/PyTorch/2.10.0-rocm-7.0.2",
    ]
    assert "/etc/hostname" in ran.argv


def test_a_module_without_an_image_ends_the_job(bench: Bench, site: Site) -> None:
    """End it also if the submitting shell has an image, which is another one."""
    site = replace(site, modules=Modules())  # without a purge, which would unset SIF as well
    text = bench.render(site, ranks_per_node=1, modules=("cuda/12.6",))
    ran = bench.run(text, SIF="/etc/hostname", **{"BASH_FUNC_module%%": LOADS})
    assert (ran.code, ran.out, ran.argv) == (66, "", [])
    assert "SIF is not set by the modules cuda/12.6" in ran.err
    assert "--sif" in ran.err
    named = bench.render(site, ranks_per_node=1, modules=("cuda/12.6",), sif=str(bench.sif))
    assert str(bench.sif) in bench.run(named, **{"BASH_FUNC_module%%": LOADS}).argv


def test_a_module_that_cannot_be_loaded_ends_the_job(bench: Bench, site: Site) -> None:
    text = bench.render(site, ranks_per_node=1, modules=("PyTorch",))
    fails = "() { [[ $1 != load || $2 == apptainer ]]; }"
    assert bench.run(text, **{"BASH_FUNC_module%%": fails}).code == 1


def test_the_module_of_the_submitting_shell_survives_a_purge(bench: Bench, site: Site) -> None:
    text = bench.render(site, ranks_per_node=1)
    loaded = {"SIF": "/stale", "SIFWRIGHT_MODULE": "PyTorch/2.13.0"}
    ran = bench.run(text, **loaded, **{"BASH_FUNC_module%%": LOADS})
    assert ran.modules[-1] == "module load PyTorch/2.13.0"
    assert "/etc/hostname" in ran.argv


def test_the_command_module_is_looked_for(bench: Bench, real: Catalog, tmp_path: Path) -> None:
    """Look for it, as a job submitted with --export=NONE does not inherit it."""
    site = replace(real.sites["lumi"], cache="", binds=(), modules=Modules())
    text = bench.render(site, account="project", modules=("PyTorch",))
    init = tmp_path / "init" / "bash"
    init.parent.mkdir()
    init.write_text(f"module {LOADS}\n")
    for variable in ("LMOD_PKG", "MODULESHOME"):
        ran = bench.run(text, **{"BASH_FUNC_module%%": "", variable: str(tmp_path)})
        assert (ran.code, ran.err) == (0, ""), ran.err
        assert ran.modules == ["module unload PyTorch", "module load PyTorch"]


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"modules": ("-x",)}, "--module '-x': is no module's name"),
        ({"modules": ("a b",)}, "is no module's name"),
        ({"modules": ("a;touch x",)}, "is no module's name"),
        ({"modules": ("a\nb",)}, "is no module's name"),
        ({"modules": ("",)}, "is no module's name"),
        ({"modules": ("x",), "module_paths": ("y",)}, "is no absolute path"),
        ({"modules": ("x",), "module_paths": ("/a:/b",)}, "is no absolute path"),
        ({"module_paths": ("/a",)}, "no module is named that would be there"),
    ],
)
def test_names_that_are_refused(
    bench: Bench, site: Site, asked: dict[str, object], message: str
) -> None:
    with pytest.raises(UsageError) as caught:
        bench.render(site, ranks_per_node=1, **asked)
    assert message in str(caught.value)
    assert caught.value.problems[0].fix
