"""Stock EasyBuild installs what `sifwright easyconfig` writes."""

from __future__ import annotations

import os
import pwd
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.conftest import ROOT, run
from tests.servers import serve_folder
from tests.system.easybuild.easybuild import EasyBuild, copy, make_bundle, sha256
from tests.system.easybuild.tools import NEEDS_BOTH, TOOLS, Session

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = NEEDS_BOTH
LMOD_LUA, LMOD_TCL, MODULES = TOOLS
NAME = f"sifwright-eb-{os.getpid()}"


@pytest.fixture(scope="module")
def config(small_sif: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_bundle(tmp_path_factory.mktemp("bundle") / "easybuild", small_sif)


@pytest.fixture
def easybuild(tmp_path: Path) -> EasyBuild:
    return EasyBuild(prefix=tmp_path / "eb")


def run_script(session: Session, script: str) -> str:
    done = session.run(script)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.strip()


def test_checks_of_easybuild_have_no_findings(easybuild: EasyBuild, config: Path) -> None:
    for check, verdict in (
        ("--check-style", "All style checks PASSed"),
        ("--check-contrib", "All contribution checks PASSed"),
        ("--dry-run", "PyTorch/2.13.0-cpu-python-3.11-singularity-20261122"),
    ):
        # Check the sites' files as well: their lines are longer.
        others = [] if check == "--dry-run" else sorted((ROOT / "easyconfigs").glob("*/*.eb"))
        done = easybuild.run(check, config, *others)
        assert (done.returncode, verdict in done.stdout) == (0, True), done.stdout + done.stderr


@pytest.mark.parametrize(
    ("syntax", "tool"),
    [("Lua", "Lmod"), ("Tcl", "Lmod"), ("Tcl", "EnvironmentModules")],
)
def test_installs_loads_and_unloads(
    easybuild: EasyBuild, config: Path, small_sif: Path, syntax: str, tool: str
) -> None:
    easybuild.syntax, easybuild.tool = syntax, tool
    root = easybuild.install(config)
    sif = root / f"{config.stem}.sif"
    # The one copy: no link, and nothing of it left where it was unpacked.
    assert sif.is_file()
    assert not sif.is_symlink()
    assert sha256(sif) == sha256(small_sif)
    assert not list((easybuild.prefix / "build").rglob("*.sif"))
    assert {"directory.squashfs", "record.json", "site-environment"} <= {
        entry.name for entry in (root / "share/sifwright").iterdir()
    }
    module_tool = MODULES if tool != "Lmod" else LMOD_LUA
    session = Session(tool=module_tool, modulepath=easybuild.modules)
    before, loaded, after = session.states("module load PyTorch\nmodule unload PyTorch")
    assert loaded["SIF"] == str(sif)
    assert loaded["APPTAINER_BINDPATH"].startswith(f"{root}/runscripts:/runscripts:ro,{root}/user")
    assert loaded["PATH"].startswith(f"{root}/bin:")
    assert after == before
    output = session.run("module help PyTorch")
    assert "conda-python-distributed" in output.stdout + output.stderr


def test_packages_of_users_outlive_a_reinstallation(easybuild: EasyBuild, config: Path) -> None:
    root = easybuild.install(config)
    (root / "user-software/venv").mkdir()
    (root / "user-software/venv/mine").write_text("mine")
    (root / "user-software.squashfs").write_bytes(b"packed")
    (root / "user-software.current").unlink()
    (root / "user-software.current").symlink_to("user-software.squashfs")
    (root / "runscripts/old").write_text("of an earlier release")
    sif = root / f"{config.stem}.sif"
    with sif.open("rb") as running:
        easybuild.install(config, "--rebuild")
        # Jobs go on with the image that they have open.
        assert os.fstat(running.fileno()).st_nlink == 0
    assert (root / "user-software/venv/mine").read_text() == "mine"
    assert (root / "user-software.current").read_bytes() == b"packed"
    assert not (root / "runscripts/old").exists()
    assert sif.is_file()


def test_without_its_image_a_central_one_serves(
    easybuild: EasyBuild, small_sif: Path, tmp_path: Path
) -> None:
    central = tmp_path / "central images"
    central.mkdir()
    config = make_bundle(tmp_path / "bundle", small_sif, central=str(central))
    root = easybuild.install(config)
    (root / f"{config.stem}.sif").rename(central / f"{config.stem}.sif")
    for option in ("--sanity-check-only", "--module-only"):
        done = easybuild.run(option, config, *(["--rebuild"] if "only" in option else []))
        assert done.returncode == 0, done.stdout + done.stderr
    session = Session(tool=LMOD_LUA, modulepath=easybuild.modules)
    assert run_script(session, "module load PyTorch; echo $SIF") == str(
        central / f"{config.stem}.sif"
    )


def test_eb_fetches_the_image_and_compares_it(
    easybuild: EasyBuild, small_sif: Path, tmp_path: Path
) -> None:
    (tmp_path / "served").mkdir()
    with serve_folder(tmp_path / "served") as address:
        config = make_bundle(tmp_path / "bundle", small_sif, image_url=address)
        assert not list(config.parent.glob("*.sif"))
        offered = tmp_path / "served" / f"{config.stem}.sif"
        offered.write_bytes(b"another image")
        refused = easybuild.run(config)
        assert refused.returncode != 0
        assert "hecksum verification" in refused.stdout + refused.stderr
        assert not [*easybuild.root().glob("*"), *easybuild.modules.rglob("*.lua")]
        offered.write_bytes(small_sif.read_bytes())
        # EasyBuild keeps what it fetched, and would take it again.
        (easybuild.prefix / "sources/p/PyTorch" / offered.name).unlink()
        root = easybuild.install(config)
    assert sha256(root / offered.name) == sha256(small_sif)


def test_central_installs_no_image(easybuild: EasyBuild, small_sif: Path, tmp_path: Path) -> None:
    config = make_bundle(tmp_path / "bundle", None, central=str(tmp_path / "central"))
    refused = easybuild.run(config)
    assert refused.returncode != 0
    assert "There is no image" in refused.stdout + refused.stderr
    (tmp_path / "central").mkdir()
    (tmp_path / "central" / f"{config.stem}.sif").symlink_to(small_sif)
    root = easybuild.install(config)
    assert not list(root.glob("*.sif"))


def test_a_second_version_beside_the_first(
    easybuild: EasyBuild, config: Path, small_sif: Path, tmp_path: Path
) -> None:
    first = easybuild.install(config)
    other = make_bundle(tmp_path / "second", small_sif, date="20270101")
    second = easybuild.install(other)
    assert first != second
    session = Session(tool=LMOD_LUA, modulepath=easybuild.modules)
    assert run_script(session, "module load PyTorch; echo $CONTAINERROOT") == str(second)
    script = f"module load PyTorch; module load PyTorch/{first.name}; echo $CONTAINERROOT"
    assert run_script(session, script) == str(first)


def test_paths_with_spaces(easybuild: EasyBuild, config: Path, tmp_path: Path) -> None:
    own = copy(config.parent, tmp_path / "my bundle")
    easybuild.prefix = tmp_path / "soft ware"
    root = easybuild.install(own)
    session = Session(tool=LMOD_LUA, modulepath=easybuild.modules)
    assert run_script(session, 'module load PyTorch; echo "$SIF"') == f"{root}/{config.stem}.sif"


@pytest.fixture
def user() -> Iterator[pwd.struct_passwd]:
    if os.geteuid() != 0:
        yield pwd.getpwuid(os.geteuid())
        return
    done = run(["useradd", "--create-home", NAME])
    assert done.returncode == 0, done.stderr
    try:
        yield pwd.getpwnam(NAME)
    finally:
        run(["userdel", "--remove", NAME])


def as_user(user: pwd.struct_passwd) -> dict[str, Any]:
    """Return the settings of a process of this user."""
    if os.geteuid() != 0:
        return {}
    return {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}


@pytest.mark.parametrize("umask", [0o077, 0o007])
def test_an_ordinary_user_of_any_umask(
    config: Path, user: pwd.struct_passwd, engine: str, umask: int, tmp_path: Path
) -> None:
    home = Path(user.pw_dir) if os.geteuid() == 0 else tmp_path
    owner = (user.pw_uid, user.pw_gid)
    own = copy(config.parent, home / f"bundle-{umask}", owner)
    how = as_user(user) | {"umask": umask}
    easybuild = EasyBuild(prefix=home / f"eb-{umask}", how=how)
    root = easybuild.install(own)
    # EasyBuild makes all of it readable; then the programs are executable, too.
    for name in ("runscripts/conda-python-simple", "bin/start-shell", "runscripts/launch"):
        assert (root / name).stat().st_mode & 0o777 == 0o755
    session = Session(tool=LMOD_LUA, modulepath=easybuild.modules, how=how)
    script = f'module load PyTorch && {engine} exec "$SIF" sh -c "command -v conda-python-simple"'
    done = session.run(script)
    assert (done.stdout, done.stderr) == ("/runscripts/conda-python-simple\n", "")


def test_a_read_only_installation(
    config: Path, user: pwd.struct_passwd, engine: str, tmp_path: Path
) -> None:
    """Serve users who may not write to it: its owner is another, or took the right away."""
    is_root = os.geteuid() == 0
    easybuild = EasyBuild(prefix=(Path(user.pw_dir) if is_root else tmp_path) / "eb")
    root = easybuild.install(config)
    if not is_root:
        for path in (root, *root.rglob("*")):
            if not path.is_symlink():
                path.chmod(path.stat().st_mode & 0o555)
    session = Session(tool=LMOD_LUA, modulepath=easybuild.modules, how=as_user(user))
    script = f'[ ! -w "$CONTAINERROOT" ] && {engine} exec "$SIF" cat /runscripts/get-master'
    done = session.run(f"module load PyTorch && {script}")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == (ROOT / "runscripts/get-master").read_text()
