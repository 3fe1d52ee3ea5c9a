"""Job scripts at run time, by the real bash with recorders for launchers and engines.

That Slurm, PBS or Flux take them as they are is for the tests in tests/system/slurm.
"""

from dataclasses import replace
from pathlib import Path

import pytest

from sifwright.catalog.model import Catalog, Modules, Site
from tests.unit.jobs import Bench, Ran

APPTAINER = ("APPTAINER_BINDPATH", "SINGULARITY_BINDPATH")
SUBMITTED = {"SLURM_JOB_ACCOUNT": "project"}


@pytest.fixture
def site(real: Catalog) -> Site:
    return replace(real.sites["lumi"], binds=(), cache="")


def _run(bench: Bench, site: Site, **env: str) -> Ran:
    ran = bench.run(bench.render(site, account="project"), **SUBMITTED, **env)
    assert (ran.code, ran.out, ran.err) == (0, "", ""), "a job says nothing of its own"
    return ran


def _binds(ran: Ran) -> str:
    """Return the engine's list, which is the same under both names."""
    first, second = (ran.env[name] for name in APPTAINER)
    assert first == second
    assert {"APPTAINER_BIND", "SINGULARITY_BIND"}.isdisjoint(ran.env)
    return first


@pytest.mark.parametrize("status", [0, 1, 42, 137, 255])
@pytest.mark.parametrize("launcher", ["srun", "mpirun"])
def test_the_status_of_the_step_is_the_jobs(
    real: Catalog, bench: Bench, launcher: str, status: int
) -> None:
    generic = replace(real.sites["slurm-generic"], modules=Modules(), cache="")
    text = bench.render(generic, ranks_per_node=2, launcher=launcher)
    ran = bench.run(text, launcher=launcher, STATUS=str(status))
    assert (ran.code, ran.out, ran.err) == (status, "", "")


def test_binds_are_those_that_are_there(bench: Bench, site: Site, tmp_path: Path) -> None:
    for name in ("here", "also-here"):
        (tmp_path / name).mkdir()
    paths = [f"{tmp_path}/here", f"{tmp_path}/missing", f"{tmp_path}/also-here:/there"]
    assert _binds(_run(bench, replace(site, binds=tuple(paths)))) == f"{paths[0]},{paths[2]}"
    assert _binds(_run(bench, replace(site, binds=(paths[1],)))) == ""
    assert (
        _binds(_run(bench, replace(site, binds=("$PLACE/here",)), PLACE=str(tmp_path))) == paths[0]
    )


def test_a_missing_variable_of_a_path_ends_the_job(bench: Bench, site: Site) -> None:
    """End it: /scratch/$SLURM_JOB_ACCOUNT without the account would be everybody's folder."""
    text = bench.render(replace(site, cache="/scratch/$NOWHERE"), account="project")
    for env in ({}, {"NOWHERE": ""}):
        ran = bench.run(text, **SUBMITTED, **env)
        assert ran.code != 0
        assert "NOWHERE" in ran.err
        assert ran.argv == []


@pytest.mark.parametrize("name", ["APPTAINER_BIND", "SINGULARITY_BIND", *APPTAINER])
def test_binds_of_the_user_stay(bench: Bench, site: Site, name: str) -> None:
    """Keep them in any variable, and before those of the site."""
    site = replace(site, binds=("/usr", "/tmp:/opt/tmp"))
    assert _binds(_run(bench, site, **{name: "/etc:/mnt:ro,/var"})) == (
        "/etc:/mnt:ro,/var,/usr,/tmp:/opt/tmp"
    )
    assert _binds(_run(bench, site, **{name: "/mine:/usr,/opt/tmp"})) == "/mine:/usr,/opt/tmp"


def test_a_path_with_a_comma_is_not_bound(bench: Bench, site: Site, tmp_path: Path) -> None:
    """Skip it: Apptainer 1.4.5 reads it as two sources, and ends for the second."""
    (tmp_path / "a,b").mkdir()
    ran = _run(bench, replace(site, binds=("$PLACE", "/usr")), PLACE=f"{tmp_path}/a,b")
    assert _binds(ran) == "/usr"


def test_caches_are_off_the_home_directory(bench: Bench, site: Site, tmp_path: Path) -> None:
    cache = tmp_path / "scratch" / "ada" / "cache"
    ran = _run(bench, replace(site, cache="$PLACE/scratch/$USER/cache"), PLACE=str(tmp_path))
    assert cache.is_dir()
    own = {name: value for name, value in ran.env.items() if value.startswith(str(cache))}
    assert own == {
        "XDG_CACHE_HOME": f"{cache}",
        "TORCH_HOME": f"{cache}/torch",
        "HF_HOME": f"{cache}/huggingface",
        "APPTAINER_CACHEDIR": f"{cache}/apptainer",
        "SINGULARITY_CACHEDIR": f"{cache}/apptainer",
    }


def test_caches_of_the_user_stay(bench: Bench, site: Site, tmp_path: Path) -> None:
    mine = {"TORCH_HOME": "/mine/t", "HF_HOME": "/mine/h", "SINGULARITY_CACHEDIR": "/mine/s"}
    ran = _run(bench, replace(site, cache=f"{tmp_path}/cache"), **mine)
    assert {name: ran.env[name] for name in mine} == mine
    assert ran.env["APPTAINER_CACHEDIR"] == "/mine/s"


def test_the_image_of_the_environment_comes_first(bench: Bench, site: Site) -> None:
    assert str(bench.sif) in _run(bench, site).argv
    assert "/etc/hostname" in _run(bench, site, SIF="/etc/hostname").argv
    named = bench.render(site, account="project", sif=str(bench.sif))
    assert str(bench.sif) in bench.run(named, SIF="/etc/hostname").argv


def test_an_image_that_is_not_there(bench: Bench, site: Site) -> None:
    ran = bench.run(bench.render(site, account="project", sif="nowhere.sif"))
    assert (ran.code, ran.out, ran.argv) == (66, "", [])
    assert ran.err == "job: there is no image 'nowhere.sif': name it in SIF\n"


def test_native_sets_what_an_image_carries(bench: Bench, real: Catalog) -> None:
    """Set it only where it is unset, and for the number of nodes the job has."""
    frontier = replace(real.sites["frontier"], cache="", modules=Modules())
    asked = {"account": "project", "environment": str(bench.venv)}
    ran = bench.run(
        bench.render(frontier, **asked), NCCL_CROSS_NIC="0", HSA_FORCE_FINE_GRAIN_PCIE=""
    )
    wanted = {"NCCL_NET": "OFI", "NCCL_CROSS_NIC": "0", "HSA_FORCE_FINE_GRAIN_PCIE": ""}
    wanted |= {
        "SIFWRIGHT_SITE": "frontier",
        "SIFWRIGHT_VENDOR": "amd",
        "SIFWRIGHT_INTERFACE": "hsn0",
    }
    assert {name: ran.env[name] for name in wanted} == wanted
    first = bench.run(bench.render(frontier, nodes=1, **asked))
    assert first.env["NCCL_NET"] == "Socket"
    assert first.argv[-2:] == [f"{bench.nasty}/conda-python-distributed", "train.py"]
    assert first.env["WITH_CONDA"] == f"source {bench.venv}/bin/activate"


def test_a_module_that_cannot_be_loaded_ends_the_job(
    bench: Bench, real: Catalog, tmp_path: Path
) -> None:
    """Let the code of modules read unset variables; the site names the file with `module`."""
    site = replace(real.sites["derecho"], cache="", binds=())
    init = tmp_path / "modules.sh"
    init.write_text("module() { echo $UNSET_VARIABLE; return 3; }\n")
    broken = replace(site, modules=replace(site.modules, init=str(init)))
    text = bench.render(broken, account="project")
    ran = bench.run(text, launcher="mpiexec", **{"BASH_FUNC_module%%": ""})
    assert (ran.code, ran.argv) == (3, [])


def test_the_library_path_of_modules(bench: Bench, real: Catalog) -> None:
    site = replace(real.sites["frontier"], cache="")
    text = bench.render(site, account="project", environment=str(bench.venv))
    for before, wanted in (("", "/cray"), ("/mine", "/cray:/mine")):
        ran = bench.run(text, CRAY_LD_LIBRARY_PATH="/cray", LD_LIBRARY_PATH=before)
        assert ran.env["LD_LIBRARY_PATH"] == wanted


@pytest.mark.parametrize("launcher", ["", "torchrun"])
def test_arguments_reach_the_ranks_unexpanded(bench: Bench, site: Site, launcher: str) -> None:
    """Leave MASTER_ADDR to the ranks: the job has none."""
    arguments = ("t.py", "--master_addr=$MASTER_ADDR")
    text = bench.render(
        site, *arguments, account="project", launcher=launcher, expand_variables=True
    )
    ran = bench.run(text, **SUBMITTED)
    assert tuple(ran.argv[-3:]) == ("--expand-variables", *arguments)


def test_variables_of_another_job_do_not_reach_srun(bench: Bench, site: Site) -> None:
    """Keep variables that a directive of the script sets: they are its own."""
    names = "GPUS_PER_TASK NTASKS_PER_GPU MEM_PER_GPU GPUS CPUS_PER_GPU GRES STEP_GRES"
    names += " DISTRIBUTION MEM_PER_CPU CPU_BIND"
    others = {f"SLURM_{name}": "1" for name in names.split()}
    mine = {"SLURM_GPUS_PER_NODE": "8", "SLURM_MEM_PER_NODE": "491520", "SLURM_NTASKS": "16"}
    ran = _run(bench, site, **others, **mine)
    assert others.keys().isdisjoint(ran.env)
    assert mine.items() <= ran.env.items()
    text = bench.render(site, account="project", directives=("m=cyclic",))
    ran = bench.run(text, SLURM_DISTRIBUTION="cyclic", **SUBMITTED)
    assert ran.env["SLURM_DISTRIBUTION"] == "cyclic"


def test_ports_are_reserved_where_the_site_can(bench: Bench, site: Site) -> None:
    """Pass a number: without one, srun reserves no port."""
    assert not [word for word in _run(bench, site).argv if "resv" in word]
    reserving = replace(site, job=replace(site.job, resv_ports=True))
    assert "--resv-ports=2" in _run(bench, reserving).argv


def test_mpirun_is_told_the_whole_environment(bench: Bench, real: Catalog) -> None:
    generic = replace(real.sites["slurm-generic"], modules=Modules(), cache="")
    text = bench.render(generic, ranks_per_node=2, launcher="mpirun")
    ran = bench.run(text, launcher="mpirun", SLURM_JOB_ID="7", NCCL_DEBUG="INFO", ODD="a b\nc")
    start = ran.argv.index("-x")
    named = ran.argv[start + 1 : ran.argv.index("apptainer") : 2]
    assert set(ran.argv[start : ran.argv.index("apptainer") : 2]) == {"-x"}
    assert {"PATH", "USER", "NCCL_DEBUG", "ODD", *APPTAINER} <= set(named)
    assert {"SLURM_JOB_ID", "PWD", "SHLVL", "_"}.isdisjoint(named)
    assert ran.argv[:7] == ["-np", "4", "--bind-to", "none", "--map-by", "ppr:2:node", "-x"]


def test_flux_sends_a_signal_to_the_script_too(bench: Bench, real: Catalog) -> None:
    """Wait for the ranks, rather than end before they have saved their work."""
    text = bench.render(real.sites["el-capitan"], signal="USR1@60", environment=str(bench.venv))
    (bench.bin / "flux").write_text('#!/bin/bash\nkill -USR1 "$PPID"\nsleep 0.2\nexit 7\n')
    assert bench.run(text, launcher="flux", SIFWRIGHT_MASTER_HOST="preset").code == 7


@pytest.mark.parametrize(
    ("preset", "expected"), [({}, "el1"), ({"SIFWRIGHT_MASTER_HOST": "mine"}, "mine")]
)
def test_flux_is_asked_for_the_host_of_rank_0(
    bench: Bench, real: Catalog, preset: dict[str, str], expected: str
) -> None:
    """Ask flux-hostlist(1): Flux names it to no task."""
    text = bench.render(real.sites["el-capitan"], environment=str(bench.venv))
    answer = '[[ "$*" != "hostlist --nth=0 instance" ]] || { echo el1; exit; }'
    recorder = (bench.bin / "flux").read_text()
    (bench.bin / "flux").write_text(recorder.replace("\n", f"\n{answer}\n", 1))
    assert bench.run(text, launcher="flux", **preset).env["SIFWRIGHT_MASTER_HOST"] == expected


@pytest.mark.parametrize(
    ("preset", "expected"), [({}, "deg1.example.org"), ({"SIFWRIGHT_MASTER_HOST": "mine"}, "mine")]
)
def test_pbs_names_the_host_of_rank_0(
    bench: Bench, real: Catalog, preset: dict[str, str], expected: str
) -> None:
    """Pass the name, so that the container need not see the node file."""
    site = replace(real.sites["derecho"], cache="", modules=Modules())
    text = bench.render(site, account="project")
    assert bench.run(text, launcher="mpiexec", **preset).env["SIFWRIGHT_MASTER_HOST"] == expected


def test_pbs_binds_no_list_of_nodes(bench: Bench, real: Catalog) -> None:
    """Drop a bind of a module: other nodes of the job may lack the file."""
    site = replace(real.sites["derecho"], cache="", modules=Modules())
    nodes = bench.nasty / "nodes"
    nodes.write_text("deg1\n")
    binds = f"{nodes}:{nodes},/var:/var"
    preset = {"APPTAINER_BINDPATH": binds, "PBS_NODEFILE": str(nodes)}
    ran = bench.run(bench.render(site, account="project"), launcher="mpiexec", **preset)
    assert ran.env["APPTAINER_BINDPATH"].split(",")[0] == "/var:/var"
    assert str(nodes) not in ran.env["APPTAINER_BINDPATH"]


def test_pbs_starts_where_it_was_submitted(bench: Bench, real: Catalog) -> None:
    site = replace(real.sites["derecho"], cache="", modules=Modules())
    ran = bench.run(bench.render(site, account="project"), launcher="mpiexec", PBS_O_WORKDIR="/usr")
    assert ran.env["PWD"] == "/usr"  # noqa: S105  # the folder, no password


def test_an_image_that_podman_does_not_have_ends_the_job(real: Catalog, bench: Bench) -> None:
    """End it before any rank asks the registry `localhost`."""
    podman = bench.bin / "podman"
    podman.write_text("#!/bin/bash\n[[ ${!#} == *:here ]]\n")
    podman.chmod(0o755)
    site = replace(real.sites["slurm-generic"], container_product="podman", modules=Modules())
    site = replace(site, cache="")
    for image, code in {"localhost/x:here": 0, "localhost/x:absent": 66, "other/x:1": 0}.items():
        ran = bench.run(bench.render(site, ranks_per_node=2, sif=image))
        assert (ran.code, bool(ran.argv)) == (code, code == 0), ran.err
        assert ("podman load" in ran.err) == bool(code)
