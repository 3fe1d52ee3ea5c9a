"""What a module does to the environment, and that it undoes it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from sifwright.install.module import Bind
from tests.bind_cases import CASES

if TYPE_CHECKING:
    from tests.system.easybuild.conftest import Place

BINDS = ("APPTAINER_BINDPATH", "SINGULARITY_BINDPATH")
PATHS = ("APPTAINERENV_PREPEND_PATH", "SINGULARITYENV_PREPEND_PATH")
FLAGS = ("APPTAINER_NV", "SINGULARITY_NV")
ROUND = "module load PyTorch\nmodule unload PyTorch"
OURS = ["/user-software/venv/pytorch/bin", "/runscripts"]

# What users set of one list, and what becomes of their part under either name.
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
    **{
        f"case-{name}": ({"SINGULARITY_BINDPATH": text}, ",".join(expected))
        for name in ("options", "colons", "commas")
        for text, expected in [CASES[name]]
    },
}
# Lmod's path functions would change these, and in Tcl it has no others that can be undone.
DELICATE = (
    *("reordered", "options", "as-ours", "slashes"),
    *("case-options", "case-colons", "case-commas"),
)


def binds(place: Place, version: str = "1.0") -> str:
    root = place.root / version
    return ",".join(
        [
            str(place.folder / "data"),
            f"{root}/runscripts:/runscripts:ro",
            f"{root}/user-software:/.user-software",
            f"{root}/user-software.current:/user-software:ro,image-src=",
        ]
    )


@pytest.mark.parametrize("name", PRESETS)
def test_presets_survive_and_come_back(place: Place, name: str) -> None:
    preset, kept = PRESETS[name]
    place.module(gpu="NV")
    before, loaded, after = place.session.states(ROUND, **preset)
    if place.tool.name == "lmod-tcl" and name in DELICATE:
        assert {one: loaded[one] for one in preset} == preset
        assert {loaded[one] for one in ("APPTAINER_BIND", "SINGULARITY_BIND")} == {binds(place)}
    else:
        expected = ",".join(filter(None, (kept, binds(place))))
        assert {loaded[one] for one in BINDS} == {expected}
    assert {loaded[one] for one in PATHS} == {":".join(OURS)}
    assert {loaded[one] for one in FLAGS} == {"1"}
    assert after == before


def test_both_variables_have_what_lmod_changes(place: Place) -> None:
    """In Tcl it can give back neither."""
    place.module()
    binds = "/q:/a:ro,image-src=/,/r:/b:ro,image-src=/"
    preset = {"APPTAINER_BINDPATH": binds, "APPTAINER_BIND": binds.replace(":/", ":/other/")}
    if place.tool.name == "lmod-tcl":
        done = place.session.run("module load PyTorch; echo $APPTAINER_BIND", **preset)
        message = "Lmod would change APPTAINER_BIND, too: unset APPTAINER_BINDPATH or"
        assert message in " ".join(done.stderr.split()), done.stderr
        assert done.stdout == preset["APPTAINER_BIND"] + "\n"
    else:
        before, loaded, after = place.session.states(ROUND, **preset)
        assert loaded["APPTAINER_BIND"] == preset["APPTAINER_BIND"]
        assert after == before


def test_contradicting_presets_are_each_left_as_they_are(place: Place) -> None:
    place.module()
    preset = {"APPTAINER_BINDPATH": "/a:/x", "SINGULARITY_BINDPATH": "/b:/x"}
    before, loaded, after = place.session.states(ROUND, **preset)
    assert [loaded[one] for one in BINDS] == [f"/a:/x,{binds(place)}", f"/b:/x,{binds(place)}"]
    assert after == before


def test_presets_of_other_variables(place: Place) -> None:
    place.module(gpu="NV", environment=(("WITH_CONDA", "source /opt/venv/bin/activate"),))
    preset = {
        "APPTAINERENV_PREPEND_PATH": "/mine/bin",
        "SINGULARITY_NV": "0",
        "SINGULARITYENV_WITH_CONDA": "true",
        "APPTAINER_BIND": f"{place.folder}/data",
    }
    before, loaded, after = place.session.states(ROUND, **preset)
    assert {loaded[one] for one in PATHS} == {":".join(["/mine/bin", *OURS])}
    assert {loaded[one] for one in FLAGS} == {"0"}
    assert loaded["APPTAINERENV_WITH_CONDA"] == loaded["SINGULARITYENV_WITH_CONDA"] == "true"
    # Bound by the user already; the engine would say that it is there twice.
    assert f"{place.folder}/data," not in loaded["APPTAINER_BINDPATH"]
    assert after == before


def test_own_variables(place: Place) -> None:
    made = place.module()
    _, loaded = place.session.states("module load PyTorch")
    root = str(place.root / "1.0")
    assert loaded["CONTAINERROOT"] == root
    assert loaded["SIF"] == loaded["SIFPYTORCH"] == f"{root}/{made.sif}"
    assert loaded["RUNSCRIPTS"] == loaded["RUNSCRIPTSPYTORCH"] == f"{root}/runscripts"
    assert loaded["SIFWRIGHT_MODULE"] == "PyTorch/1.0"
    assert loaded["PATH"].startswith(f"{root}/bin:")


def test_only_what_is_there_is_bound(place: Place) -> None:
    place.module()
    (place.folder / "data").rmdir()
    (place.root / "1.0/user-software.current").unlink()
    (place.root / "1.0/user-software").rmdir()
    _, loaded = place.session.states("module load PyTorch")
    assert loaded["APPTAINER_BINDPATH"] == f"{place.root}/1.0/runscripts:/runscripts:ro"


def test_squashing_in_between_leaves_nothing(place: Place) -> None:
    """What is taken back is what was added, whatever is there by then."""
    place.module()
    root = place.root / "1.0"
    script = f"""module load PyTorch
        rmdir '{root}/user-software' '{place.folder}/data' && rm '{root}/user-software.current'
        module unload PyTorch"""
    before, _, _, after = place.session.states(script)
    assert after == before


def test_what_others_add_in_between_stays(place: Place) -> None:
    place.module()
    script = """module load PyTorch
        export APPTAINER_BINDPATH=$APPTAINER_BINDPATH,/late
        export APPTAINERENV_PREPEND_PATH=/late:$APPTAINERENV_PREPEND_PATH
        module unload PyTorch"""
    *_, after = place.session.states(script, APPTAINER_BINDPATH="/early")
    assert after["APPTAINER_BINDPATH"] == "/early,/late"
    assert after["APPTAINERENV_PREPEND_PATH"] == "/late"


@pytest.mark.parametrize("end", ["module unload PyTorch", "module purge"])
def test_loading_twice(place: Place, end: str) -> None:
    place.module(gpu="NV")
    script = f"module load PyTorch\nmodule load PyTorch\n{end}"
    before, once, twice, after = place.session.states(script, SINGULARITY_BINDPATH="/a")
    assert once == twice
    assert after == before


def test_swapping_versions(place: Place) -> None:
    place.module("1.0", gpu="NV")
    place.module("2.0", gpu="NV")
    script = """module load PyTorch/1.0
        module swap PyTorch/1.0 PyTorch/2.0
        module unload PyTorch"""
    before, _, second, after = place.session.states(script, APPTAINER_BINDPATH="/a")
    assert second["CONTAINERROOT"] == str(place.root / "2.0")
    assert second["APPTAINER_BINDPATH"] == second["SINGULARITY_BINDPATH"]
    assert second["APPTAINER_BINDPATH"] == f"/a,{binds(place, '2.0')}"
    assert after == before


def test_variables_of_the_user_in_binds(place: Place) -> None:
    entries = (
        Bind(source="$HERE/data", target="/mnt/$WHO"),
        Bind(source="$NOWHERE/data", target="$NOWHERE/data"),
    )
    place.module(binds=entries)
    _, loaded = place.session.states("module load PyTorch", HERE=str(place.folder), WHO="me")
    assert loaded["APPTAINER_BINDPATH"].startswith(f"{place.folder}/data:/mnt/me,")
    assert "NOWHERE" not in loaded["APPTAINER_BINDPATH"]


def test_packages_of_a_user_beside_a_read_only_installation(place: Place) -> None:
    place.module()
    own = place.folder / "own"
    (own / "user-software").mkdir(parents=True)
    _, loaded = place.session.states("module load PyTorch", SIFWRIGHT_USER_SOFTWARE=str(own))
    assert f"{place.root}/1.0/user-software:" in loaded["APPTAINER_BINDPATH"]
    (own / "user-software.current").touch()
    _, loaded = place.session.states("module load PyTorch", SIFWRIGHT_USER_SOFTWARE=str(own))
    assert f"{own}/user-software:/.user-software" in loaded["APPTAINER_BINDPATH"]
    assert f"{own}/user-software.current:/user-software" in loaded["APPTAINER_BINDPATH"]
    assert f"{place.root}/1.0/user-software:" not in loaded["APPTAINER_BINDPATH"]


def test_no_packages_if_the_user_wants_none(place: Place) -> None:
    place.module()
    _, loaded = place.session.states("module load PyTorch", SIFWRIGHT_USER_SOFTWARE="none")
    assert "user-software" not in loaded["APPTAINER_BINDPATH"]
    assert f"{place.root}/1.0/runscripts:/runscripts" in loaded["APPTAINER_BINDPATH"]
