"""`list sites` as a table, and what `show` says of sites, images and layers."""

import json
import os
import pty
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from sifwright.catalog.site_contradictions import default_partition
from sifwright.report import show
from tests.catalogs import REAL
from tests.unit.broken import IMAGE, SITE, append, replace
from tests.unit.conftest import CHECKOUT, Cli

SITES = list(REAL.sites)


@pytest.mark.parametrize("site", SITES)
def test_a_site_of_ours_says_where_its_facts_are_from(site: str) -> None:
    """Require a reason for each variable, set or not."""
    facts = REAL.sites[site]
    assert facts.sources or site == "local"
    for group, values in facts.environment.groups.items():
        assert set(values) == set(facts.environment.reasons[group])
    reasons = [x for group in facts.environment.reasons.values() for x in group.values()]
    for reason in (*reasons, *facts.environment.not_set.values()):
        assert reason.why
        assert not reason.why.endswith(".")
    assert all(text.endswith(".") for text in (*facts.limits, *facts.unverified))


@pytest.mark.parametrize("site", [name for name in SITES if name not in {"local", "slurm-generic"}])
def test_a_site_of_ours_says_where_images_are_built(site: str, run_cli: Cli) -> None:
    """Show the source as well; the two others are no real machine."""
    facts = REAL.sites[site].builds
    assert facts is not None
    assert not facts.why.endswith(".")
    shown = " ".join(run_cli("show", "site", site).out.split())
    assert f"{facts.why} read in {facts.source}" in shown


@pytest.mark.parametrize("site", [name for name in SITES if name != "local"])
def test_images_of_a_site_start_with_every_engine(site: str) -> None:
    """Avoid zstd, which Apptainer before 1.4.0 and SingularityCE call corrupted."""
    facts = REAL.sites[site]
    assert (facts.compression, facts.layout) == ("gzip", "flat")


@pytest.mark.parametrize("site", SITES)
def test_a_site_of_ours_lists_where_jobs_go(site: str) -> None:
    facts = REAL.sites[site]
    default = facts.job.directives.get(default_partition(facts))
    assert default in facts.partitions if default else not facts.partitions


@pytest.mark.parametrize("site", SITES)
def test_everything_of_a_site_is_shown(site: str) -> None:
    """Print every fact that is text or a list of texts."""
    text = "\n".join(show.show_lines(REAL, "site", site))
    document = show.show_document(REAL, "site", site)
    hidden = {"container_program"} if "container" not in REAL.sites[site].run_in else set()
    hidden |= {"options", "compression", "run_in", "gpu_visibility", "vendor", "job", "launch"}
    for key, value in document.items():
        if key not in hidden and value and isinstance(value, str) and value != "none":
            assert value in text or value == "local", key
        if key not in hidden and isinstance(value, list | tuple):
            assert all(item in text for item in value), key
    environment = REAL.sites[site].environment
    for values in environment.groups.values():
        assert all(f"  {name}={value}\n" in f"{text}\n" for name, value in values.items())
    for reasons in (*environment.reasons.values(), environment.not_set):
        assert all(x.why in text and x.source in text for x in reasons.values())


def test_variables_of_the_hosts_mpi(run_cli: Cli) -> None:
    lines = run_cli("show", "site", "derecho").out.splitlines()
    start = lines.index("environment with the host's MPI (jobscript --run-in host, --host-mpi)")
    shown = lines[start : start + 8]
    assert "  MPICH_GPU_SUPPORT_ENABLED=1" in shown
    assert "environment with the host's MPI (jobscript --host-mpi)" in shown
    host = REAL.sites["derecho"].host_mpi
    assert host is not None
    for name, value in host.environment.items():
        assert f"  {name}={value}" in lines
        assert f"      {host.reasons[name].why}" in lines
    assert any(host.source in line for line in lines)


def test_lumi(run_cli: Cli) -> None:
    """Print lines that docs/reference/sites.md leaves out."""
    lines = run_cli("show", "site", "lumi").out.splitlines()
    wanted = [
        "  layout              flat, gzip",
        "  run with            singularity (singularity-ce)",
        "limits",
    ]
    assert [line for line in wanted if line not in lines] == []
    # A heading without anything below it is left out.
    assert "limits" not in run_cli("show", "site", "slurm-generic").out.splitlines()


MASKS = {"0xfe": "1-7", "0x1": "0", "0x5": "0,2", "0xff00000000000000": "56-63", "0xb": "0-1,3"}


@pytest.mark.parametrize("mask", MASKS)
def test_cpus_of_masks(project: Path, run_cli: Cli, mask: str) -> None:
    replace(SITE, "vendor: cpu", "vendor: amd")(project / "defs")
    append(SITE, f'node: {{gpus: 1, cpu-masks: ["{mask}"]}}\n')(project / "defs")
    lines = run_cli("--project", project, "show", "site", "here").out.splitlines()
    assert f"  CPUs of rank 0      {MASKS[mask]} ({mask})" in lines


def test_a_site_as_data(run_cli: Cli) -> None:
    data = json.loads(run_cli("show", "site", "frontier", "--json").out)
    assert data["partitions"]["batch"] == "production"
    assert data["environment"]["several_nodes"] == {"NCCL_NET": "OFI"}
    reason = data["environment"]["reasons"]["several-nodes"]["NCCL_NET"]
    assert reason["why"].startswith("stops where the plugin is missing")
    assert (data["mpi"], data["mpi_version"]) == ("cray-mpich", "9.1.0")


def test_sections_that_are_empty_have_no_title(project: Path, run_cli: Cli) -> None:
    out = run_cli("--project", project, "show", "site", "here").out
    assert re.findall(r"^[a-z].*", out, re.MULTILINE) == [
        "here: A machine to test with",
        *("nodes", "jobs", "images"),
    ]


def test_the_table_of_sites_is_whole_lines_in_a_pipe(project: Path, run_cli: Cli) -> None:
    long = "A machine " + "to test with " * 30 + "at last"
    replace(SITE, "A machine to test with", long)(project / "defs")
    lines = run_cli("--project", project, "list", "sites").out.splitlines()
    head = "site GPUs per node scheduler fabric image what it is"
    assert " ".join(lines[0].split()) == head
    assert lines[1].split()[:6] == ["here", "cpu", "-", "local", "-", "small"]
    assert lines[1].endswith(long)
    assert len(lines) == 2


def test_a_row_for_every_site(run_cli: Cli) -> None:
    rows = {line.split()[0]: line for line in run_cli("list", "sites").out.splitlines()[1:]}
    assert list(rows) == SITES
    assert rows["el-capitan"].split()[4] == "flux"


def test_json_of_the_list_is_as_it_was(run_cli: Cli) -> None:
    document = json.loads(run_cli("list", "sites", "--json").out)
    assert document == {"sites": {name: REAL.sites[name].description for name in SITES}}


def test_the_table_fits_a_terminal(clean_environment: Mapping[str, str]) -> None:
    """Wrap only the last column."""
    terminal, child_end = pty.openpty()
    command = [sys.executable, "-m", "sifwright", "--project", str(CHECKOUT), "list", "sites"]
    env = {**clean_environment, "TERM": "xterm", "COLUMNS": "110"}
    subprocess.run(command, env=env, check=True, stdout=child_end)
    os.close(child_end)
    lines = re.sub(r"\x1b\[[0-9;]*m", "", os.read(terminal, 1 << 16).decode()).splitlines()
    os.close(terminal)
    assert max(map(len, lines)) <= 110
    assert len(lines) > len(SITES) + 1
    assert sum(line.startswith(tuple(SITES)) for line in lines) == len(SITES)


def test_an_image(project: Path, run_cli: Cli) -> None:
    out = run_cli("--project", project, "show", "image", "small").out
    assert out.splitlines() == [
        "small: A small image",
        "",
        "layers, in order",
        "  base                    A base",
        "  tool                    A tool",
        "      text = from the image",
        "  extra                   More than the tool",
        "",
        "at sites",
        "  here",
    ]


def test_places_of_an_image_that_depend_on_the_site(project: Path, run_cli: Cli) -> None:
    entries = (
        "  - one-of: [base, other-base]\n"
        "  - {layer: tool, optional: true}\n"
        "  - {layer: extra, optional: true, for: {vendor: [amd, nvidia], fabric: [slingshot]}}\n"
    )
    text = f"description: A small image\nlayers:\n{entries}"
    (project / "defs" / IMAGE).write_text(text)
    lines = run_cli("--project", project, "show", "image", "small").out.splitlines()
    narrowed = "for vendor amd or nvidia, fabric slingshot; left out where it does not suit"
    assert lines[3:6] == [
        "  base or other-base      A base (the first that suits the site)",
        "  tool                    A tool (left out where it does not suit)",
        f"  extra                   More than the tool ({narrowed})",
    ]


def test_where_an_image_cannot_be_had(project: Path, run_cli: Cli) -> None:
    replace(SITE, "vendor: cpu", "vendor: nvidia")(project / "defs")
    out = run_cli("--project", project, "show", "image", "small").out
    why = "wheel cpu does not go with vendor nvidia; it goes with cpu"
    assert out.endswith(f"\nat sites\n  none\n\nnot at\n  here              {why}\n")
    data = json.loads(run_cli("--project", project, "show", "image", "small", "--json").out)
    assert data["sites"] == {"here": why}
    assert [layer["choices"] for layer in data["layers"]] == [["base"], ["tool"], ["extra"]]


def test_a_layer(run_cli: Cli) -> None:
    lines = run_cli("show", "layer", "base-debian").out.splitlines()
    assert lines[0] == "base-debian: A small Debian system, made with debootstrap"
    assert "  provides          base, apt" in lines
    index = lines.index("  suite = bookworm")
    assert lines[index + 1 : index + 3] == [
        "      Code name of the Debian release",
        "      one of: bookworm, trixie",
    ]


def test_a_layer_as_data(run_cli: Cli) -> None:
    data = json.loads(run_cli("show", "layer", "base-debian", "--json").out)
    assert data["options"]["suite"]["enum"] == ["bookworm", "trixie"]
    assert not {"install", "test", "files"} & set(data)


def test_every_layer_and_image_can_be_shown() -> None:
    names = [("layer", name) for name in REAL.layers] + [("image", name) for name in REAL.images]
    for kind, name in names:
        assert next(show.show_lines(REAL, kind, name)).startswith(f"{name}: ")
        assert all(
            line.isprintable()
            for text in show.show_lines(REAL, kind, name)
            for line in text.splitlines()
        )
        assert json.dumps(show.show_document(REAL, kind, name))
