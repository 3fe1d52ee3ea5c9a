"""`eb easyconfigs/lumi/….eb` in a fresh clone, with EasyBuild 4.9 and 5, and as LUMI sets it up."""

from __future__ import annotations

import json
import os
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from sifwright.plan.resolve import resolve
from tests.catalogs import REAL
from tests.conftest import ROOT, run
from tests.system.apptainer.steps import make_root
from tests.system.easybuild.easybuild import EASYBUILD_4, EasyBuild
from tests.system.easybuild.tools import LMOD, NEEDS_BOTH, TOOLS, Session

if TYPE_CHECKING:
    from collections.abc import Mapping

pytestmark = NEEDS_BOTH
SITE = "lumi"
LMOD_LUA = TOOLS[0]
EASYBUILDS = {"4.9": EASYBUILD_4, "5": Path(sys.executable).parent / "eb"}
# Settings of LUMI's modules, as far as EasyBuild and module paths depend on them. Source:
# Lumi-supercomputer/LUMI-SoftwareStack@02f17317 (2026-07), modules/EasyBuild-config/25.01.lua,
# modules/LUMIpartition/21.01.lua, modules/CrayEnv.lua.
MODULES = {
    "LUMI/25.03": """
prepend_path("MODULEPATH", os.getenv("STAND_IN") .. "/partitions")
prepend_path("MODULEPATH", os.getenv("EBU_USER_PREFIX") .. "/modules/container")
""",
    "CrayEnv": 'prepend_path("MODULEPATH", os.getenv("EBU_USER_PREFIX") .. "/modules/container")\n',
    "../partitions/partition/container": """
prepend_path("MODULEPATH", os.getenv("STAND_IN") .. "/container")
""",
    "../container/EasyBuild-user/25.03": """
local user = os.getenv("EBU_USER_PREFIX")
setenv("EASYBUILD_PREFIX", user)
setenv("EASYBUILD_SOURCEPATH", user .. "/sources:/appl/sources/easybuild:" .. os.getenv("CENTRAL"))
setenv("EASYBUILD_INSTALLPATH", user)
setenv("EASYBUILD_INSTALLPATH_SOFTWARE", user .. "/SW/container")
setenv("EASYBUILD_INSTALLPATH_MODULES", user .. "/modules/container")
setenv("EASYBUILD_REPOSITORY", "FileRepository")
setenv("EASYBUILD_REPOSITORYPATH", user .. "/ebfiles_repo/container")
setenv("EASYBUILD_BUILDPATH", os.getenv("STAND_IN") .. "/easybuild/build")
setenv("EASYBUILD_TMPDIR", os.getenv("STAND_IN") .. "/easybuild/tmp")
setenv("EASYBUILD_ROBOT_PATHS", user .. "/ebfiles_repo/container:" .. user .. "/UserRepo")
setenv("EASYBUILD_SUFFIX_MODULES_PATH", "")
setenv("EASYBUILD_OPTARCH", "x86-rome")
setenv("EASYBUILD_MODULE_SYNTAX", "Lua")
setenv("EASYBUILD_MODULES_TOOL", "Lmod")
setenv("EASYBUILD_ALLOW_LOADED_MODULES", "EasyBuild,EasyBuild-user")
setenv("EASYBUILD_CHECK_EBROOT_ENV_VARS", "ignore")
setenv("EASYBUILD_UMASK", "002")
setenv("EASYBUILD_GROUP_WRITABLE_INSTALLDIR", "True")
""",
}


def clone(folder: Path, site: str) -> Path:
    """Copy the committed easyconfigs, and nothing else of the checkout; return the site's .eb."""
    listed = run(["git", "ls-files", "-z", "easyconfigs"], cwd=ROOT)
    assert listed.returncode == 0, listed.stderr
    for name in filter(None, listed.stdout.split("\0")):
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / name, target, follow_symlinks=False)
    (path,) = (folder / "easyconfigs" / site).glob("*.eb")
    return path


def stand_in(engine: str, folder: Path, site: str) -> Path:
    """Build an image of a few programs that says of itself that it is of the site's plan."""
    plan = resolve(REAL, site, "", ())
    root = make_root(folder / "root")
    (root / ".singularity.d").mkdir()
    labels = {"org.sifwright.plan": plan.id}
    (root / ".singularity.d/labels.json").write_text(json.dumps(labels))
    done = run([engine, "build", folder / "image.sif", root])
    assert done.returncode == 0, done.stderr
    return folder / "image.sif"


@pytest.fixture(params=EASYBUILDS)
def easybuild(request: pytest.FixtureRequest, tmp_path: Path) -> EasyBuild:
    program = EASYBUILDS[request.param]
    if not program.exists():
        if os.environ.get("CI"):
            pytest.fail(f"CI installs EasyBuild {request.param}, but it is not there")
        pytest.skip(f"EasyBuild {request.param} is not installed: tools/install-test-programs")
    return EasyBuild(prefix=tmp_path / "eb", eb=program)


@pytest.fixture(scope="module")
def sif(engine: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return stand_in(engine, tmp_path_factory.mktemp("image"), SITE)


def test_without_the_image_nothing_is_installed_and_the_way_is_said(
    easybuild: EasyBuild, tmp_path: Path
) -> None:
    config = clone(tmp_path, SITE)
    done = easybuild.run(config)
    assert done.returncode != 0
    message = " ".join((done.stdout + done.stderr).split())
    assert f"eb needs the image under this name: {config.stem}.sif" in message
    assert "make sif SITE=lumi IMAGE=pytorch" in message
    assert f"Couldn't find file {config.stem}.sif" in message
    assert not list((easybuild.prefix / "software").glob("PyTorch/*"))


def test_an_image_of_another_plan_is_refused(easybuild: EasyBuild, tmp_path: Path) -> None:
    config = clone(tmp_path, SITE)
    config.with_suffix(".sif").write_bytes(b"another" * 100_000)
    done = easybuild.run(config)
    assert done.returncode != 0
    errors = done.stdout + done.stderr
    assert "An image of another plan than" in errors
    assert "or write one: sifwright easyconfig SITE --from SIF" in errors
    assert not list((easybuild.prefix / "software").glob("PyTorch/*/*"))
    assert not list(easybuild.modules.rglob("*.lua"))


@pytest.mark.smoke
def test_with_the_image_in_the_source_path_it_is_installed(
    easybuild: EasyBuild, sif: Path, engine: str, tmp_path: Path
) -> None:
    config = clone(tmp_path, SITE)
    central = tmp_path / "central images"
    central.mkdir()
    (central / f"{config.stem}.sif").symlink_to(sif)
    done = easybuild.run(config, f"--sourcepath={central}")
    assert done.returncode == 0, done.stdout + done.stderr
    session = Session(tool=LMOD_LUA, modulepath=easybuild.modules)
    before, loaded, after = session.states("module load PyTorch\nmodule unload PyTorch")
    assert after == before
    copied = Path(loaded["SIF"])
    assert copied.parent == easybuild.prefix / "software/PyTorch" / config.stem[len("PyTorch-") :]
    assert not copied.is_symlink()
    assert copied.read_bytes() == sif.read_bytes()
    ran = session.run(f'module load PyTorch; {engine} exec "$SIF" cat /runscripts/get-master')
    assert (ran.returncode, ran.stderr) == (0, "")


def test_as_a_user_of_lumi(easybuild: EasyBuild, sif: Path, tmp_path: Path) -> None:
    """Run the lines of docs/how-to/easybuild.md, with stand-ins for LUMI's modules."""
    config = clone(tmp_path / "sifwright", SITE)
    session, environment = lumi(tmp_path, easybuild)
    (Path(environment["CENTRAL"]) / f"{config.stem}.sif").symlink_to(sif)
    session.environment = environment
    done = session.run(
        f"""
        export EBU_USER_PREFIX={tmp_path}/project/EasyBuild
        mkdir -p $EBU_USER_PREFIX/modules/container
        module load LUMI partition/container EasyBuild-user
        eb {config} || exit
        module purge
        for stack in LUMI CrayEnv; do
          module load $stack
          module load PyTorch
          echo "$stack $SIF"
          module purge
        done
        """
    )
    assert done.returncode == 0, done.stdout + done.stderr
    root = tmp_path / "project/EasyBuild/SW/container/PyTorch" / config.stem[len("PyTorch-") :]
    installed = f"{root}/{config.stem}.sif"
    assert done.stdout.splitlines()[-2:] == [f"LUMI {installed}", f"CrayEnv {installed}"]


def lumi(folder: Path, easybuild: EasyBuild) -> tuple[Session, Mapping[str, str]]:
    """Make the stand-ins for LUMI's modules, and a folder of central images."""
    path = folder / "lumi"
    for name, text in MODULES.items():
        file = path / "core" / f"{name}.lua"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    (path / "images").mkdir()
    environment = {
        "PATH": f"{easybuild.eb.parent}:/usr/local/bin:/usr/bin:/bin",
        "STAND_IN": str(path),
        "CENTRAL": str(path / "images"),
        "HOME": str(folder),
        "LMOD_CMD": LMOD,
        "USER": "somebody",
        "EASYBUILD_ALLOW_USE_AS_ROOT_AND_ACCEPT_CONSEQUENCES": "1",
        "LC_ALL": "C.UTF-8",
    }
    return Session(tool=LMOD_LUA, modulepath=path / "core"), environment
