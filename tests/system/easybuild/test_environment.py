"""Changes of a module to the environment, and their end when it is unloaded."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from sifwright.install.module import Bind

if TYPE_CHECKING:
    from tests.system.easybuild.conftest import Installations

BINDS = ("APPTAINER_BINDPATH", "SINGULARITY_BINDPATH")
PATHS = ("APPTAINERENV_PREPEND_PATH", "SINGULARITYENV_PREPEND_PATH")
FLAGS = ("APPTAINER_NV", "SINGULARITY_NV")
ROUND = "module load PyTorch\nmodule unload PyTorch"
OURS = ["/user-software/venv/pytorch/bin", "/runscripts"]

# Users' values of one list, and the result for their part under either name.
PRESETS: dict[str, tuple[dict[str, str], str]] = {
    "none": ({}, ""),
    "apptainer": ({"APPTAINER_BINDPATH": "/a:/x"}, "/a:/x"),
    "singularity": ({"SINGULARITY_BINDPATH": "/a:/x"}, "/a:/x"),
    "equal": ({"APPTAINER_BINDPATH": "/a:/x,/b", "SINGULARITY_BINDPATH": "/a:/x,/b"}, "/a:/x,/b"),
    "different": ({"APPTAINER_BINDPATH": "/a:/x", "SINGULARITY_BINDPATH": "/b"}, "/a:/x,/b"),
    "overlapping": (
        {"APPTAINER_BINDPATH": "/a,/b", "SINGULARITY_BINDPATH": "/b,/c"},
        "/a,/b,/c",
    ),
    "reordered": (
        {"APPTAINER_BINDPATH": "/a,/b", "SINGULARITY_BINDPATH": "/b,/a"},
        "/a,/b",
    ),
    "options": (
        {"APPTAINER_BINDPATH": "/a:/x:image-src=/,ro,/b:/y:image-src=/,ro"},
        "/a:/x:image-src=/,ro,/b:/y:image-src=/,ro",
    ),
    "as-ours": ({"APPTAINER_BINDPATH": "/a:/x:ro,image-src="}, "/a:/x:ro,image-src="),
    "slashes": ({"SINGULARITY_BINDPATH": "/a/,//b"}, "/a/,//b"),
}
# Lmod's path functions would change these, and in Tcl it has no others that can be undone.
DELICATE = ("reordered", "options", "as-ours", "slashes")


def binds(installations: Installations, version: str = "1.0") -> str:
    root = installations.root / version
    return ",".join(
        [
            str(installations.folder / "data"),
            f"{root}/runscripts:/runscripts:ro",
            f"{root}/user-software:/.user-software",
            f"{root}/user-software.current:/user-software:ro,image-src=",
        ]
    )


@pytest.mark.parametrize("name", PRESETS)
def test_presets_survive_and_come_back(installations: Installations, name: str) -> None:
    preset, kept = PRESETS[name]
    installations.module(gpu="NV")
    before, loaded, after = installations.session.states(ROUND, **preset)
    if installations.tool.name == "lmod-tcl" and name in DELICATE:
        assert {variable: loaded[variable] for variable in preset} == preset
        assert {loaded[variable] for variable in ("APPTAINER_BIND", "SINGULARITY_BIND")} == {
            binds(installations)
        }
    else:
        expected = ",".join(filter(None, (kept, binds(installations))))
        assert {loaded[variable] for variable in BINDS} == {expected}
    assert {loaded[variable] for variable in PATHS} == {":".join(OURS)}
    assert {loaded[variable] for variable in FLAGS} == {"1"}
    assert after == before


def test_both_variables_have_what_lmod_changes(installations: Installations) -> None:
    """Keep both equal; in Tcl a module can restore neither."""
    installations.module()
    binds = "/q:/a:ro,image-src=/,/r:/b:ro,image-src=/"
    preset = {"APPTAINER_BINDPATH": binds, "APPTAINER_BIND": binds.replace(":/", ":/other/")}
    if installations.tool.name == "lmod-tcl":
        done = installations.session.run("module load PyTorch; echo $APPTAINER_BIND", **preset)
        message = "Lmod would change APPTAINER_BIND, too: unset APPTAINER_BINDPATH or"
        assert message in " ".join(done.stderr.split()), done.stderr
        assert done.stdout == preset["APPTAINER_BIND"] + "\n"
    else:
        before, loaded, after = installations.session.states(ROUND, **preset)
        assert loaded["APPTAINER_BIND"] == preset["APPTAINER_BIND"]
        assert after == before


def test_contradicting_presets_are_each_left_as_they_are(installations: Installations) -> None:
    installations.module()
    preset = {"APPTAINER_BINDPATH": "/a:/x", "SINGULARITY_BINDPATH": "/b:/x"}
    before, loaded, after = installations.session.states(ROUND, **preset)
    assert [loaded[name] for name in BINDS] == [
        f"/a:/x,{binds(installations)}",
        f"/b:/x,{binds(installations)}",
    ]
    assert after == before


def test_presets_of_other_variables(installations: Installations) -> None:
    installations.module(gpu="NV", environment=(("WITH_CONDA", "source /opt/venv/bin/activate"),))
    preset = {
        "APPTAINERENV_PREPEND_PATH": "/mine/bin",
        "SINGULARITY_NV": "0",
        "SINGULARITYENV_WITH_CONDA": "true",
        "APPTAINER_BIND": f"{installations.folder}/data",
    }
    before, loaded, after = installations.session.states(ROUND, **preset)
    assert {loaded[name] for name in PATHS} == {":".join(["/mine/bin", *OURS])}
    assert {loaded[name] for name in FLAGS} == {"0"}
    assert loaded["APPTAINERENV_WITH_CONDA"] == loaded["SINGULARITYENV_WITH_CONDA"] == "true"
    # Bound by the user already; the engine would say that it is there twice.
    assert f"{installations.folder}/data," not in loaded["APPTAINER_BINDPATH"]
    assert after == before


def test_own_variables(installations: Installations) -> None:
    result = installations.module()
    _, loaded = installations.session.states("module load PyTorch")
    root = str(installations.root / "1.0")
    assert loaded["CONTAINERROOT"] == root
    assert loaded["SIF"] == loaded["SIFPYTORCH"] == f"{root}/{result.sif}"
    assert loaded["RUNSCRIPTS"] == loaded["RUNSCRIPTSPYTORCH"] == f"{root}/runscripts"
    assert loaded["SIFWRIGHT_MODULE"] == "PyTorch/1.0"
    assert loaded["PATH"].startswith(f"{root}/bin:")


def test_only_what_is_there_is_bound(installations: Installations) -> None:
    installations.module()
    (installations.folder / "data").rmdir()
    (installations.root / "1.0/user-software.current").unlink()
    (installations.root / "1.0/user-software").rmdir()
    _, loaded = installations.session.states("module load PyTorch")
    assert loaded["APPTAINER_BINDPATH"] == f"{installations.root}/1.0/runscripts:/runscripts:ro"


def test_squashing_in_between_leaves_nothing(installations: Installations) -> None:
    """Take back exactly the added values, after other files have appeared."""
    installations.module()
    root, folder = installations.root / "1.0", installations.folder
    script = f"""module load PyTorch
        rmdir '{root}/user-software' '{folder}/data' && rm '{root}/user-software.current'
        module unload PyTorch"""
    before, _, _, after = installations.session.states(script)
    assert after == before


def test_values_that_others_add_in_between_stay(installations: Installations) -> None:
    installations.module()
    script = """module load PyTorch
        export APPTAINER_BINDPATH=$APPTAINER_BINDPATH,/late
        export APPTAINERENV_PREPEND_PATH=/late:$APPTAINERENV_PREPEND_PATH
        module unload PyTorch"""
    *_, after = installations.session.states(script, APPTAINER_BINDPATH="/early")
    assert after["APPTAINER_BINDPATH"] == "/early,/late"
    assert after["APPTAINERENV_PREPEND_PATH"] == "/late"


@pytest.mark.parametrize("end", ["module unload PyTorch", "module purge"])
def test_loading_twice(installations: Installations, end: str) -> None:
    installations.module(gpu="NV")
    script = f"module load PyTorch\nmodule load PyTorch\n{end}"
    before, once, twice, after = installations.session.states(script, SINGULARITY_BINDPATH="/a")
    assert once == twice
    assert after == before


def test_swapping_versions(installations: Installations) -> None:
    installations.module("1.0", gpu="NV")
    installations.module("2.0", gpu="NV")
    script = """module load PyTorch/1.0
        module swap PyTorch/1.0 PyTorch/2.0
        module unload PyTorch"""
    before, _, second, after = installations.session.states(script, APPTAINER_BINDPATH="/a")
    assert second["CONTAINERROOT"] == str(installations.root / "2.0")
    assert second["APPTAINER_BINDPATH"] == second["SINGULARITY_BINDPATH"]
    assert second["APPTAINER_BINDPATH"] == f"/a,{binds(installations, '2.0')}"
    assert after == before


def test_variables_of_the_user_in_binds(installations: Installations) -> None:
    entries = (
        Bind(source="$HERE/data", target="/mnt/$WHO"),
        Bind(source="$NOWHERE/data", target="$NOWHERE/data"),
    )
    installations.module(binds=entries)
    _, loaded = installations.session.states(
        "module load PyTorch", HERE=str(installations.folder), WHO="me"
    )
    assert loaded["APPTAINER_BINDPATH"].startswith(f"{installations.folder}/data:/mnt/me,")
    assert "NOWHERE" not in loaded["APPTAINER_BINDPATH"]


def test_packages_of_a_user_beside_a_read_only_installation(installations: Installations) -> None:
    installations.module()
    own = installations.folder / "own"
    (own / "user-software").mkdir(parents=True)
    _, loaded = installations.session.states(
        "module load PyTorch", SIFWRIGHT_USER_SOFTWARE=str(own)
    )
    assert f"{installations.root}/1.0/user-software:" in loaded["APPTAINER_BINDPATH"]
    (own / "user-software.current").touch()
    _, loaded = installations.session.states(
        "module load PyTorch", SIFWRIGHT_USER_SOFTWARE=str(own)
    )
    assert f"{own}/user-software:/.user-software" in loaded["APPTAINER_BINDPATH"]
    assert f"{own}/user-software.current:/user-software" in loaded["APPTAINER_BINDPATH"]
    assert f"{installations.root}/1.0/user-software:" not in loaded["APPTAINER_BINDPATH"]


def test_no_packages_if_the_user_wants_none(installations: Installations) -> None:
    installations.module()
    _, loaded = installations.session.states("module load PyTorch", SIFWRIGHT_USER_SOFTWARE="none")
    assert "user-software" not in loaded["APPTAINER_BINDPATH"]
    assert f"{installations.root}/1.0/runscripts:/runscripts" in loaded["APPTAINER_BINDPATH"]
