"""Options of srun for an image's MPI, and the sources of facts about the image."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from sifwright.catalog import pmi
from sifwright.catalog.model import Catalog, LauncherOptions, Site
from sifwright.catalog.pmi import UNKNOWN, ImageMpi
from sifwright.errors import UsageError
from sifwright.launch import launch_command
from sifwright.launch.job import decide_job
from sifwright.launch.job_mpi import mpi_notes
from sifwright.launch.model import JobRequest
from tests.unit.conftest import GOOD, Cli

MPICH = ImageMpi(name="mpich", pmi=("pmi1",), version="5.0.1", source="here")
OPEN_MPI = ImageMpi(name="openmpi", pmi=("pmix",), version="5.0.10", source="here")
NO_MPI = ImageMpi(name="")
SPOKEN = ("cray_shasta", "pmi2", "pmix_v4", "pmix")


@pytest.fixture
def site(real: Catalog) -> Site:
    """Return a site with a Slurm that has every plugin, and launchers of both MPIs."""
    others = {"mpirun": LauncherOptions(), "mpiexec": LauncherOptions(pmi=("pmi1",))}
    launchers = {"srun": LauncherOptions(pmi=SPOKEN), **others}
    generic = real.sites["slurm-generic"]
    return replace(generic, vendor="cpu", launch=launchers, other_launchers=tuple(others))


def words(site: Site, mpi: ImageMpi | None, **asked: object) -> list[str]:
    """Return the words that start two ranks; raise their refusal."""
    values = {"nodes": 2, "arguments": ("x.py",), "mpi": mpi} | asked
    return launch_command.words(decide_job(site, JobRequest(**values)))  # type: ignore[arg-type]


def told(messages: list[str]) -> list[str]:
    return [word.removeprefix("--mpi=") for word in messages if word.startswith("--mpi")]


@pytest.mark.parametrize(
    ("mpi", "asked", "plugins"),
    [
        (MPICH, {}, ["pmi2"]),
        (OPEN_MPI, {}, ["pmix_v4"]),
        (OPEN_MPI, {"pmi": "pmix"}, ["pmix"]),
        (MPICH, {"pmi": "none"}, ["none"]),
        (MPICH, {"launcher": "torchrun", "pmi": "none"}, []),
        (NO_MPI, {}, []),
        (None, {}, []),
        (None, {"pmi": "pmi2"}, ["pmi2"]),
        (ImageMpi(name=UNKNOWN), {}, []),
        (MPICH, {"launcher": "mpiexec"}, []),
        (OPEN_MPI, {"launcher": "mpirun"}, []),
        (OPEN_MPI, {"launcher": "mpiexec", "pmi": "none"}, []),
    ],
)
def test_srun_is_told_what_both_speak(
    site: Site, mpi: ImageMpi | None, asked: dict[str, object], plugins: list[str]
) -> None:
    assert told(words(site, mpi, **asked)) == plugins


@pytest.mark.parametrize("launcher", ["mpirun", "mpiexec"])
@pytest.mark.parametrize(
    ("mpi", "options"),
    [(MPICH, "-n 4 -ppn 2"), (OPEN_MPI, "-np 4 --bind-to none --map-by ppr:2:node")],
)
def test_the_words_are_those_of_the_launchers_mpi(
    site: Site, launcher: str, mpi: ImageMpi, options: str
) -> None:
    spoken = {**site.launch, launcher: LauncherOptions(pmi=mpi.pmi)}
    asked = {"launcher": launcher, "ranks_per_node": 2}
    assert words(replace(site, launch=spoken), mpi, **asked) == [launcher, *options.split()]


def test_an_installation_with_an_mpi_starts_as_an_image_with_it(
    run_cli: Cli, tmp_path: Path
) -> None:
    """Start it by srun; mpirun is in goldens/jobs/slurm-generic-mpirun-mpich.sh."""
    facts = {"mpi": "mpich", "mpich": "5.0.1", "pmi": "pmi1"}
    plan = {"site": "here", "image": "small", "id": "1", "steps": [], "facts": facts}
    for name, text in {"sifwright/plan.json": json.dumps(plan), "bin/activate": ""}.items():
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).write_text(text)
    asked = ("--site", "slurm-generic", "--nodes", "2", "--tasks-per-node", "2")
    done = run_cli("jobscript", *asked, "--environment", tmp_path, "--", "x.py")
    assert done.code == 0, done.err
    assert "--mpi=pmi2" in done.out


@pytest.mark.parametrize(
    ("mpi", "launcher", "says"),
    [
        (MPICH, "mpirun", "it speaks pmix (as that of Open MPI), and the image has MPICH 5.0.1"),
        (OPEN_MPI, "mpiexec", "it speaks pmi1 (launch.mpiexec.pmi of site 'slurm-generic')"),
    ],
)
def test_the_wrong_pair_is_refused(site: Site, mpi: ImageMpi, launcher: str, says: str) -> None:
    with pytest.raises(UsageError) as caught:
        words(site, mpi, launcher=launcher)
    (problem,) = caught.value.problems
    assert (problem.where, says in problem.what) == (f"launcher {launcher}", True), problem
    assert problem.fix.startswith("Use --launcher srun. Use --launcher "), problem.fix


@pytest.mark.parametrize(
    ("site", "option", "plugin"),
    [
        ("slurm-generic", ("--environment", "/venv"), "--mpi=pmix"),  # its module is Open MPI
        ("frontier", ("--environment", "/venv"), ""),  # Cray's MPI: the default of their srun
        ("frontier", ("--host-mpi",), ""),
        ("cirrus-epcc", ("--environment", "/venv"), ""),  # no source says what its srun speaks
    ],
)
def test_ranks_of_the_sites_mpi_are_started_as_the_site_does(
    run_cli: Cli, site: str, option: tuple[str, ...], plugin: str
) -> None:
    asked = ("--nodes", "2", "--tasks-per-node", "2", "--account", "a", "--elsewhere")
    done = run_cli("jobscript", "--site", site, *asked, *option, "--", "x.py")
    assert done.code == 0, done.err
    assert told(done.out.split()) == [plugin.removeprefix("--mpi=")][: len(plugin)]


@pytest.mark.parametrize("mpi", [MPICH, OPEN_MPI])
def test_torchrun_starts_no_ranks_of_mpi(site: Site, mpi: ImageMpi) -> None:
    with pytest.raises(UsageError) as caught:
        words(site, mpi, launcher="torchrun")
    (problem,) = caught.value.problems
    assert (problem.where, f"the image has {mpi}: each rank" in problem.what) == (
        "launcher torchrun",
        True,
    )
    other = "mpiexec" if mpi == MPICH else "mpirun"
    ways = f"Use --launcher srun. Use --launcher {other}. "
    assert problem.fix == f"{ways}For a program without MPI: --pmi none."


def test_notes(site: Site) -> None:
    def notes(mpi: ImageMpi, **asked: object) -> list[str]:
        values = {"nodes": 2, "arguments": ("x.py",), "mpi": mpi} | asked
        return list(mpi_notes(decide_job(site, JobRequest(**values))))  # type: ignore[arg-type]

    (torchrun,) = notes(replace(MPICH, of_base=True), launcher="torchrun")
    assert torchrun.startswith("torchrun does not start MPI ranks")
    assert "MPICH 5.0.1 (here)" in torchrun
    (unknown,) = notes(ImageMpi(name=UNKNOWN, source="x.sif (not on this machine)"))
    assert unknown.startswith("the MPI of x.sif (not on this machine) is not known here")
    assert notes(MPICH) == notes(NO_MPI) == notes(NO_MPI, launcher="torchrun") == []
    assert notes(MPICH, launcher="torchrun", pmi="none") == []


TABLE = {"mpich": {"pmi": ("pmi1",)}, "openmpi": {"pmi": ("pmix",)}}


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        ((), ("", (), "")),
        (("MPICH 4.2",), ("mpich", ("pmi1",), "4.2")),
        (("Open MPI 4.1.7",), ("openmpi", ("pmix",), "4.1.7")),
        (("Open MPI 4.1.5", "Open MPI 4.1.7"), ("openmpi", ("pmix",), "")),
        (("MPICH 4.2", "Open MPI 4.1.7"), (UNKNOWN, (), "")),
    ],
)
def test_the_result_of_an_inspection(texts: tuple[str, ...], expected: tuple[object, ...]) -> None:
    known = pmi.inspected_mpi(texts, TABLE, "")
    assert (known.name, known.pmi, known.version) == expected


@pytest.fixture
def beside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Path]:
    """Put an image with the record of a build into the folder of builds."""
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "build" / "here" / "small"

    def put(**facts: str) -> Path:
        folder.mkdir(parents=True, exist_ok=True)
        plan = {"site": "here", "image": "small", "id": "1", "steps": [], "facts": facts}
        (folder / "record.json").write_text(
            json.dumps({"sif": "image.sif", "sif_fingerprint": "", "plan": plan})
        )
        (folder / "image.sif").write_text("no image")
        return folder / "image.sif"

    return put


JOB = ("--project", GOOD, "jobscript", "--site", "here", "--nodes", "1")
END = ("--launcher", "torchrun", "--", "x.py")


def test_the_record_tells(run_cli: Cli, beside: Callable[..., Path]) -> None:
    beside(mpi="openmpi", openmpi="5.0.10", pmi="pmix")
    message = run_cli(*JOB, *END).err
    assert "the image has Open MPI 5.0.10 (build/here/small/record.json): each rank" in message
    beside()
    assert run_cli(*JOB, *END).err == ""


def test_an_image_that_no_build_can_make_is_refused(run_cli: Cli) -> None:
    """Refuse it before the queue: it is not built, nor named by --sif."""
    job = ("jobscript", "--site", "cirrus-epcc", "--image", "pytorch-full", "--nodes", "2")
    refused = run_cli(*job, "--account", "a", "--", "x.py")
    assert (refused.code, refused.out) == (4, "")
    assert "does not go with torch" in refused.err


def test_an_image_of_an_earlier_release_is_inspected(
    run_cli: Cli, beside: Callable[..., Path]
) -> None:
    """Call the MPI unknown if it cannot be inspected, or is of another machine's image."""
    sif = beside(mpi="openmpi", openmpi="5.0.10")
    assert run_cli(*JOB, "--", "x.py").err.startswith(
        "note: the MPI of build/here/small/image.sif (not to be inspected) is not known here"
    )
    (sif.parent / "record.json").unlink()
    assert "(not to be inspected)" in run_cli(*JOB, "--sif", sif, "--", "x.py").err
    elsewhere = ("--sif", "/nowhere.sif", "--elsewhere")
    message = run_cli(*JOB, *elsewhere, "--", "x.py").err
    assert message.startswith(
        "note: the MPI of /nowhere.sif (not on this machine) is not known here"
    )
    message = run_cli(*JOB, "--module", "PyTorch/2", "--", "x.py").err
    assert message.startswith("note: the MPI of the image of module PyTorch/2 is not known here")


def test_the_record_of_another_image_tells_nothing(
    run_cli: Cli, beside: Callable[..., Path]
) -> None:
    other = beside(mpi="openmpi", openmpi="5.0.10", pmi="pmix").with_name("other\n.sif")
    other.write_text("no image")
    message = run_cli(*JOB, "--sif", other, "--", "x.py").err
    assert "other\\n.sif' (not to be inspected) is not known here" in message


def test_an_image_of_this_shell_is_named(
    run_cli: Cli, beside: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    sif = beside()
    monkeypatch.setenv("SIF", "/images/other.sif")
    assert "the job takes SIF='/images/other.sif' of this shell" in run_cli(*JOB, *END).err
    assert run_cli(*JOB, "--sif", sif, *END).err == ""


def test_unreadable_images_are_named(run_cli: Cli) -> None:
    long = "a" * 300
    for option in ("--sif", "--environment"):
        done = run_cli(*JOB, "--tasks-per-node", "1", option, long, "--", "x.py")
        assert (done.code, "cannot be looked at: File name too long" in done.err) == (2, True)


def test_the_plan_tells_the_mpi(real_project: Path, run_cli: Cli) -> None:
    words = ("--site", "local", "--nodes", "1", "--image", "pytorch-horovod")
    done = run_cli("--project", real_project, "jobscript", *words, *END)
    assert "the image has Open MPI 5.0.11 (image 'pytorch-horovod' as planned)" in done.err
