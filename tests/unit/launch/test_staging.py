"""Jobs that start from the disks of their nodes: `sifwright stage` and `jobscript --stage`."""

import os
import re
import signal
import stat
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from sifwright.catalog.model import Catalog, Modules, Site
from sifwright.launch import staging
from sifwright.system import processes
from tests.conftest import DEFAULT_SIGNALS
from tests.unit.conftest import CHECKOUT, Cli, program
from tests.unit.jobs import Bench, directives

# Ends at SIGTERM, and shows whether its copy is there; or else at the end of its input.
# SIGINT is shown only, unless it is ignored.
ENDS = """
import os, signal, sys
def end(*_):
    os.write(1, b"%d" % os.path.exists(sys.prefix + "/bin/tool"))
    os._exit(44)
signal.signal(signal.SIGTERM, end)
if signal.getsignal(signal.SIGINT) == signal.default_int_handler:
    signal.signal(signal.SIGINT, lambda *_: os.write(1, b"interrupted\\n"))
os.write(1, b"ready\\n")
sys.stdin.read()
"""
# Program that prints the folder of the ranks' Python, and the first line of a script there.
SHOW = "import sys; print(sys.prefix, open(sys.prefix + '/bin/tool').readline().strip())"


@pytest.fixture
def environment(tmp_path: Path) -> Path:
    """Make a virtual environment with a script and a file that is no text."""
    folder = tmp_path / "an+environment.of-ours"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    (folder / "bin/tool").write_text(f"#!{folder}/bin/python\n")
    (folder / "library.so").write_bytes(b"\0" + os.fsencode(folder) + b"/lib\0\xff")
    (folder / "neighbour").write_text(f"{folder}-2\n")
    os.mkfifo(folder / "pipe")  # to open it would wait for ever
    return folder


def _job(run_cli: Cli, environment: Path, program: str = SHOW) -> str:
    words = ("--site", "local", "--nodes", "1", "--environment", environment, "--stage")
    done = run_cli("--project", CHECKOUT, "jobscript", *words, "--", "-c", program)
    assert done.code == 0, done.err
    return done.out


def _run(text: str, stage: Path, **more: str) -> subprocess.CompletedProcess[str]:
    env = {"PATH": "/usr/bin:/bin", "SIFWRIGHT_STAGE_DIR": str(stage), **more}
    command = [program("bash"), "/dev/stdin"]
    return subprocess.run(
        command, input=text, env=env, check=False, text=True, capture_output=True, timeout=240
    )


def _why(done: subprocess.CompletedProcess[str], environment: Path) -> str:
    """Return why the ranks of a job started from where their environment is."""
    assert (done.returncode, done.stdout.split()[0]) == (0, str(environment))
    (line,) = done.stderr.splitlines()
    assert line.startswith(f"job: {environment} was not copied to the nodes")
    return line


@pytest.fixture
def stage() -> Iterator[Path]:
    """Make a node's disk, whose path is shorter than that of the environment."""
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        yield Path(folder)


def test_it_starts_from_the_copy_and_leaves_nothing(
    run_cli: Cli, environment: Path, stage: Path, tmp_path: Path
) -> None:
    link = tmp_path / "current"
    link.symlink_to(environment.name)
    assert run_cli("stage", link).code == 0
    for folder in (tmp_path / "temporary", environment / "lib/__pycache__"):
        folder.mkdir()
    for name in ("tool.pyc", "tool.nbi"):
        (environment / "lib/__pycache__" / name).touch()
    done = _run(_job(run_cli, link), stage, TMPDIR=str(tmp_path / "temporary"))
    assert (done.returncode, done.stderr) == (0, "")
    assert list((tmp_path / "temporary").iterdir()) == []
    prefix, first = done.stdout.split()
    assert prefix.startswith(f"{stage}/sw-")
    assert (first, len(prefix)) == (f"#!{prefix}/bin/python", len(str(environment)))
    assert not Path(prefix).parent.exists()
    assert (environment / "bin/tool").read_text() == f"#!{environment}/bin/python\n"


def test_paths_are_replaced_in_programs_and_whole_only(
    environment: Path, stage: Path, run_cli: Cli
) -> None:
    staging.pack_environment(environment)
    text = _job(run_cli, environment).replace("per_node rm -rf", "echo")
    prefix = Path(_run(text, stage).stdout.split()[0])
    assert (prefix / "library.so").read_bytes() == b"\0" + os.fsencode(prefix) + b"/lib\0\xff"
    assert (prefix / "neighbour").read_text() == f"{environment}-2\n"


def test_everybody_in_the_folder_reads_the_archive(environment: Path, run_cli: Cli) -> None:
    before = os.umask(0o077)
    try:
        assert run_cli("stage", environment).code == 0
    finally:
        os.umask(before)
    modes = {stat.S_IMODE((environment / name).stat().st_mode) for name in staging.PACKED}
    assert modes == {0o644}


def test_a_file_that_is_written_meanwhile_is_noticed(
    environment: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Write it before tar ends, which may have read it."""
    capture = processes.capture

    def run(command: Sequence[str], timeout: float) -> subprocess.CompletedProcess[str]:
        done = capture(command, timeout=timeout)
        if command[0] == "tar":
            end = Path(command[2].partition("=")[2]).stat().st_mtime_ns
            os.utime(environment / "neighbour", ns=(end, end))
        return done

    monkeypatch.setattr(processes, "capture", run)
    staging.pack_environment(environment)
    assert staging.is_stale(environment)


@pytest.mark.parametrize("fault", ["damaged", "long", "absent", "old"])
def test_uncopied_files_are_named_and_read_in_place(
    run_cli: Cli, environment: Path, stage: Path, tmp_path: Path, fault: str
) -> None:
    archive = staging.pack_environment(environment)
    text = _job(run_cli, environment)
    if fault == "damaged":
        with archive.open("ab") as stream:
            stream.write(b"more")
        os.utime(archive, (0, 0))
    elif fault == "long":
        stage = tmp_path / ("x" * 99)
        stage.mkdir()
    elif fault == "old":  # without a fingerprint of the names
        fingerprint = environment / staging.PACKED[1]
        fingerprint.write_bytes(b"".join(fingerprint.read_bytes().splitlines(keepends=True)[:3]))
    else:
        archive.unlink()
    assert _why(_run(text, stage), environment).endswith(")")  # the reason
    assert not list(stage.glob("sw-*-*/e*"))


@pytest.mark.parametrize("name", ["a&b", "a;b", "a|b", "a b", "it's"])
def test_a_disk_with_characters_of_the_shell(
    run_cli: Cli, environment: Path, stage: Path, name: str
) -> None:
    """Start as without --stage, caches included: scripts of a copy cannot have such a path."""
    staging.pack_environment(environment)
    program = "import os, sys; print(sys.prefix, [x for x in os.environ.values() if '/sw-' in x])"
    done = _run(_job(run_cli, environment, program), stage / name)
    assert f"not '{stage}/{name}/sw-" in _why(done, environment)
    assert done.stdout == f"{environment} []\n"


def _add(environment: Path) -> None:
    (environment / "new").touch()
    os.utime(environment / "new", (1, 1))


CHANGES: dict[str, Callable[[Path], object]] = {
    "deletion": lambda environment: (environment / "neighbour").unlink(),
    "rename": lambda environment: (environment / "neighbour").rename(environment / "other"),
    "addition": _add,
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_changed_environment_is_noticed(
    run_cli: Cli, environment: Path, stage: Path, change: str
) -> None:
    """Refuse it when the script is written; later, start from where it is."""
    staging.pack_environment(environment)
    text = _job(run_cli, environment)
    CHANGES[change](environment)
    assert staging.is_stale(environment)
    why = _why(_run(text, stage), environment)
    assert "it has changed since its archive was written" in why


@contextmanager
def _running(text: str, stage: Path) -> Iterator[subprocess.Popen[str]]:
    """Start a job, whose input ends with the block."""
    script = stage / "job.sh"
    script.write_text(text)
    env = {"PATH": "/usr/bin:/bin", "SIFWRIGHT_STAGE_DIR": str(stage)}
    pipe = subprocess.PIPE
    with subprocess.Popen(
        [*DEFAULT_SIGNALS, program("bash"), str(script)],
        env=env,
        text=True,
        stdin=pipe,
        stdout=pipe,
        stderr=pipe,
        process_group=0,
    ) as process:
        yield process


def test_a_signal_ends_the_ranks_before_their_files(
    run_cli: Cli, environment: Path, stage: Path
) -> None:
    """Leave another program of the job's shell alone."""
    staging.pack_environment(environment)
    other = "tail --pid=$$ --follow /dev/null >/dev/null &"
    text = _job(run_cli, environment, ENDS).replace("\nranks=", f"\n{other}\nranks=", 1)
    with _running(text, stage) as job:
        assert job.stdout
        assert job.stdout.readline() == "ready\n"
        job.terminate()
        assert job.wait(240) == 44
        assert job.communicate()[0] == "1"
    assert not list(stage.glob("sw-*"))


def test_ctrl_c_reaches_the_ranks_as_it_is(run_cli: Cli, environment: Path, stage: Path) -> None:
    """Send SIGINT to all processes, as a terminal does, and nothing else after it."""
    staging.pack_environment(environment)
    text = _job(run_cli, environment, ENDS).replace("\nranks=", "\nset -x\nranks=", 1)
    with _running(text, stage) as job:
        assert job.stdout
        assert job.stderr
        assert job.stdout.readline() == "ready\n"
        os.killpg(job.pid, signal.SIGINT)
        assert job.stdout.readline() == "interrupted\n"
        lines = iter(job.stderr.readline, "")
        assert any("+ end_ranks INT" in line for line in lines)
        assert any("+ wait " in line for line in lines)
        assert job.communicate()[0] == ""
        assert job.returncode == 0


def test_a_signal_before_there_are_ranks(run_cli: Cli, environment: Path, stage: Path) -> None:
    archive = staging.pack_environment(environment)
    text = _job(run_cli, environment)
    archive.unlink()
    os.mkfifo(archive)
    archive.with_name(f"{archive.name}.sha256").touch()
    with _running(text, stage) as job:
        with archive.open("wb"):  # waits for the job to read the archive
            job.terminate()
        assert (job.wait(240), job.communicate()[0]) == (143, "")
    assert not list(stage.glob("sw-*"))


def test_an_archive_must_be_there_and_of_now(run_cli: Cli, environment: Path) -> None:
    words = ("--site", "local", "--nodes", "1", "--environment", environment, "--stage")
    command = ("--project", CHECKOUT, "jobscript", *words, "--", "train.py")
    assert f"Write it: sifwright stage {environment}" in run_cli(*command).err
    archive = staging.pack_environment(environment)
    assert run_cli(*command).code == 0
    os.utime(archive, (1, 1))
    assert "has changed since its archive was written" in run_cli(*command).err
    environment.rename(environment.with_name("moved"))
    done = run_cli("stage", environment.with_name("moved"))
    assert (done.code, "it was moved" in done.err) == (2, True)


@pytest.fixture
def site(real: Catalog) -> Site:
    generic = real.sites["slurm-generic"]
    return replace(generic, scheduler="local", launcher="local", cache="", modules=Modules())


def test_an_image_and_squashed_packages(tmp_path: Path, site: Site, run_cli: Cli) -> None:
    bench, packages = Bench(tmp_path), tmp_path / "a:b,c.squashfs"
    packages.touch()
    assert run_cli("stage", bench.sif).code == 0
    text = bench.render(site, nodes=1, ranks_per_node=1, stage=True)
    binds = f"{tmp_path}:/data,{tmp_path}/a\\:b\\,c.squashfs:/user-software:ro,image-src=/"
    stage = tmp_path / "disk"
    stage.mkdir()
    settings = {"SIFWRIGHT_STAGE_DIR": str(stage), "APPTAINER_BINDPATH": f"{tmp_path}:/data"}
    settings["APPTAINER_BIND"] = binds
    ran = bench.run(text, launcher="apptainer", **settings)
    assert (ran.code, ran.err) == (0, "")
    assert any(word.startswith(f"{stage}/sw-") and word.endswith("/image.sif") for word in ran.argv)
    staged = rf"{stage}/sw-\d+-\d+/1.squashfs:/user-software:ro,image-src=/"
    assert re.fullmatch(f"{tmp_path}:/data,{staged}", ran.env["APPTAINER_BINDPATH"])
    assert list(stage.iterdir()) == []


def test_frontier_has_its_disk_on_some_nodes_only(real: Catalog, tmp_path: Path) -> None:
    asked = {"account": "a", "constraint": "big", "stage": True}
    text = Bench(tmp_path).render(real.sites["frontier"], **asked)
    assert directives(text)["constraint"] == "nvme&big"
    assert "\n  sbcast --force" in text
