"""R8 for job scripts: a value is refused, or comes out of the real bash byte for byte.

Every script is run: its launcher records what it is given, and the folder it runs in stays empty.
"""

import re
import shlex
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from sifwright.catalog import schema, yaml_file
from sifwright.catalog.model import Catalog, Environment, Modules, Site
from sifwright.catalog.script_rules import refuse_text
from sifwright.errors import CatalogError, UsageError
from sifwright.render import shell
from tests.unit import hostile
from tests.unit.conftest import Shells, program
from tests.unit.jobs import Bench, directives, script_arguments

SEED, BATCH = hostile.SEED + 100, 50
ARGUMENTS, SITE_VALUES, WORDS, PATHS, FACTS = 7000, 2000, 1000, 300, 1500
LAUNCHERS = {"srun": "slurm-generic", "mpiexec": "derecho", "flux": "el-capitan", "": "local"}
# Characters that no program can be given, however they are quoted.
IMPOSSIBLE = re.compile("[\0\ud800-\udc7f\udd00-\udfff]")


def test_there_are_enough_values() -> None:
    assert ARGUMENTS + SITE_VALUES + WORDS + PATHS + FACTS >= 10_000


@pytest.fixture
def site(real: Catalog) -> Site:
    return _bare(real.sites["slurm-generic"])


def _bare(site: Site) -> Site:
    """Return the job without files that would make folders here."""
    return replace(site, cache="", modules=Modules(), binds=(), run_in=("container", "host"))


def _asked(site: Site) -> dict[str, object]:
    nodes = 1 if site.scheduler == "local" else 2
    account = "project" if site.job.needs_account else ""
    return {"nodes": nodes, "ranks_per_node": 4, "account": account}


def _batches(values: Sequence[str]) -> Iterator[list[str]]:
    for start in range(0, len(values), BATCH):
        yield list(values[start : start + BATCH])


@pytest.mark.parametrize("launcher", LAUNCHERS)
def test_script_arguments(real: Catalog, bench: Bench, launcher: str, portion: float) -> None:
    """Carry every text that a program can get, line breaks included."""
    site = _bare(real.sites[LAUNCHERS[launcher]])
    seed = SEED + list(LAUNCHERS).index(launcher)
    values = hostile.texts(seed, int(ARGUMENTS * portion) // len(LAUNCHERS), share=0.4)
    good = [value for value in values if not IMPOSSIBLE.search(value)]
    assert len(good) > 0.9 * len(values)
    for batch in _batches(good):
        text = bench.render(site, "train.py", *batch, **_asked(site))
        ran = bench.run(text, launcher=launcher or site.container_program)
        assert (ran.code, ran.out, ran.err) == (0, "", "")
        assert script_arguments(ran.argv)[-len(batch) :] == batch


def test_arguments_that_no_program_can_be_given(bench: Bench, site: Site) -> None:
    values = hostile.texts(SEED + 4, 3000, share=1)
    bad = [value for value in values if IMPOSSIBLE.search(value)]
    assert len(bad) > 100
    for value in bad:
        with pytest.raises(UsageError, match="holds a NUL or half a character"):
            bench.render(site, "train.py", value, **_asked(site))


def test_no_line_of_an_argument_is_a_directive(bench: Bench, real: Catalog) -> None:
    """Avoid `flux:` in the whole script: `flux batch` looks for it even inside of quotes."""
    site = _bare(real.sites["el-capitan"])
    nasty = ["flux: -N9", "#flux: x", "\n# flux: -N9\n", "x\nflux:", "#SBATCH -N9", "\n#PBS -q x"]
    text = bench.render(site, *nasty, **_asked(site))
    matching_lines = [line for line in text.splitlines() if re.match(r"[^\w]*(flux|FLUX):", line)]
    first = text.splitlines()[1 : len(matching_lines) + 1]
    assert matching_lines == first
    assert len(matching_lines) > 3


def test_values_of_a_site(site: Site, bench: Bench) -> None:
    """Export its environment and proxies on the host; schemas refuse the others."""
    values = [v for v in hostile.texts(SEED + 5, SITE_VALUES) if v and not refuse_text(v)]
    assert len(values) > 0.7 * SITE_VALUES
    for batch in _batches(values):
        wanted = {f"E{number}": value for number, value in enumerate(batch)}
        half = len(batch) // 2
        first, second = dict(list(wanted.items())[:half]), dict(list(wanted.items())[half:])
        spoilt = replace(site, environment=Environment(several_nodes=first), proxies=second)
        ran = bench.run(bench.render(spoilt, **_asked(site), environment=str(bench.venv)))
        assert (ran.code, ran.err) == (0, "")
        assert {name: ran.env[name] for name in wanted} == wanted


@pytest.mark.parametrize(
    "option", ["account", "name", "time", "signal", "partition", "qos", "constraint", "job_output"]
)
def test_words_of_directives(bench: Bench, site: Site, option: str) -> None:
    """Refuse them, or carry them by a line that sbatch reads as one word."""
    likely = ["ada", "x-1.2+3@y_4", "-x", "01:00:00", "1:00:00", "USR1@120", "B:TERM@5", "USR1@x"]
    likely += ["a&b", "[a|b]", "logs/%x-%j.out", "$HOME/x", "~/x", "a b", "a#b"]
    values = [v for v in hostile.texts(SEED + 6, WORDS // 4) if v] + likely
    key = {"name": "job-name", "job_output": "output"}.get(option, option)
    accepted = 0
    for value in values:
        try:
            text = bench.render(site, **{**_asked(site), option: value})
        except UsageError:
            continue
        accepted += 1
        assert directives(text)[key] == value
        assert shlex.split(f"--{key}={value}", comments=True) == [f"--{key}={value}"]
        assert "#" not in value
    assert accepted


def test_paths_of_images(bench: Bench, site: Site) -> None:
    texts = hostile.texts(SEED + 7, PATHS // 2, share=0.4)
    names = {text.replace("/", "_")[:60] for text in texts if not IMPOSSIBLE.search(text)}
    for name in sorted(names - {"", ".", ".."}):
        sif = f"{bench.sif.parent}/{name}"
        Path(sif).touch()
        ran = bench.run(bench.render(site, **_asked(site), sif=sif))
        assert (ran.code, ran.err) == (0, "")
        assert ran.argv[-3:] == [sif, "conda-python-distributed", "train.py"]
        Path(sif).unlink()


def test_paths_of_virtual_environments(bench: Bench, site: Site) -> None:
    """Refuse paths that would be split or matched: run scripts expand `$WITH_CONDA` unquoted."""
    accepted = 0
    for text in hostile.texts(SEED + 8, PATHS // 2, share=0.4):
        venv = f"{bench.venv}/x{text.replace('/', '_')[:60]}"
        try:
            rendered = bench.render(site, **_asked(site), environment=venv)
        except UsageError:
            continue
        accepted += 1
        (Path(venv) / "bin").mkdir(parents=True, exist_ok=True)
        (Path(venv) / "bin/activate").write_text("echo activated\n")
        ran = bench.run(rendered)
        assert (ran.code, ran.err) == (0, "")
        activate = [program("bash"), "-c", "$WITH_CONDA"]
        done = subprocess.run(
            activate, env=ran.env, check=True, capture_output=True, cwd=bench.empty
        )
        assert (done.stdout, done.stderr) == (b"activated\n", b"")
    assert accepted > PATHS // 10


def _schema_takes(data: Mapping[str, object]) -> bool:
    good = "description: x\nvendor: cpu\nscheduler: slurm\nlauncher: srun\nimage: x\n"
    text = good + yaml.safe_dump(dict(data), default_style='"', allow_unicode=True)
    try:
        document = yaml_file.parse_yaml(text.encode(errors="surrogatepass"), "x.yaml")
    except CatalogError:
        return False
    return not list(schema.check_document(document, "site", "x.yaml"))


def test_paths_of_a_site(shells: Shells) -> None:
    """Expand a path of the schema in its variables and in nothing else."""
    parts = ["/x", "/scratch/$USER", "$USER", "$HOME/y-1", "/a.b_c+d=e"]
    values = [part + text for text in hostile.texts(SEED + 9, FACTS // 3) for part in parts[:1]]
    good = [value for value in values + parts if _schema_takes({"cache": value})]
    assert len(good) > 50
    words = " ".join(map(shell.path, good))
    before = {"USER": "$(touch x)", "HOME": "`touch x` *"}
    names = set(re.findall(r"\$([A-Za-z_]\w*)", "".join(good))) - {"USER", "HOME"}
    before |= dict.fromkeys(names, "v")
    output = shells.run("bash", f"env printf '%s\\0' {words}\n", **before).decode()
    wanted = [
        re.sub(r"\$([A-Za-z_]\w*)", lambda expected: before[expected[1]], text) for text in good
    ]
    assert output.split("\0")[:-1] == wanted


@pytest.mark.parametrize("key", ["directives", "module"])
def test_words_of_a_site(key: str, bench: Bench, site: Site) -> None:
    values = [text for text in hostile.texts(SEED + 10, FACTS // 3) if text] + [
        "gpu&hbm80g",
        "a/1.2",
    ]
    accepted = 0
    for value in values:
        if key == "directives" and _schema_takes({"job": {"directives": {"qos": value}}}):
            job = replace(site.job, directives={"qos": value})
            text = bench.render(replace(site, job=job), **_asked(site))
            assert directives(text)["qos"] == value
            # Slurm's own rules: blanks, quotes, backslashes and '#' are what it does not copy.
            assert not re.search(r"[\s'\"\\#]", value)
            accepted += 1
        if key == "module" and _schema_takes({"modules": {"container": [value]}}):
            loaded = replace(site, modules=Modules(container=(value,)))
            assert bench.run(bench.render(loaded, **_asked(site))).modules == [
                f"module load {value}"
            ]
            accepted += 1
    assert accepted
