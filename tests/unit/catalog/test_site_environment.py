"""The file site-environment: made from the site, carried by the image, part of its identity."""

import json
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from sifwright.catalog import site_environment
from sifwright.catalog.load_catalog import load_catalog
from sifwright.catalog.model import Catalog, Environment
from sifwright.catalog.script_rules import refuse_text
from sifwright.plan.resolve import resolve
from sifwright.render.definition import definition
from tests.catalogs import REAL
from tests.unit import deffile, hostile
from tests.unit.broken import EXTRA, SITE, append
from tests.unit.conftest import CHECKOUT, MACHINE

SITES = list(REAL.sites)
FOLDER = "/.sifwright/layers/run-scripts"


def test_lumi(real: Catalog) -> None:
    lines = site_environment.render(real.sites["lumi"]).splitlines()
    assert lines[:6] == [
        "# Site lumi. NAME=VALUE, each set only if unset; sections: which launches.",
        "[always]",
        "SIFWRIGHT_SITE=lumi",
        "SIFWRIGHT_VENDOR=amd",
        "SIFWRIGHT_INTERFACE=hsn0",
        "SIFWRIGHT_GPU_VISIBILITY=own",
    ]
    groups = [line for line in lines if line.startswith("[")]
    assert groups == ["[always]", "[one-node]", "[several-nodes]"]
    assert "NCCL_SOCKET_IFNAME=hsn0,hsn1,hsn2,hsn3" in lines[lines.index(groups[2]) :]


def test_facts_that_a_site_has_not_are_left_out(real: Catalog) -> None:
    lines = site_environment.render(real.sites["local"]).splitlines()
    facts = ["SIFWRIGHT_SITE=local", "SIFWRIGHT_VENDOR=cpu"]
    assert lines[1:] == ["[always]", *facts, "[one-node]", "[several-nodes]"]


@pytest.mark.parametrize("site", SITES)
def test_the_image_carries_it(real: Catalog, site: str) -> None:
    plan = resolve(real, site, "", [])
    post = deffile.sections(definition(plan, MACHINE))["post"]
    carried = deffile.here_documents(post)
    assert carried[f"{FOLDER}/{site_environment.FILE}"] == site_environment.render(real.sites[site])
    install = carried[f"{FOLDER}/install.sh"]
    assert '\ncp site-environment "$IMAGE_ROOT/etc/sifwright/site-environment"\n' in install


def _ids(project: Path) -> list[str]:
    return [
        step.id for step in resolve(load_catalog(project / "defs", project), "here", "", []).steps
    ]


@pytest.mark.parametrize(
    ("facts", "changes"),
    [
        ("environment: {always: {A: b}}", True),
        ("environment: {one-node: {A: b}}", True),
        ("environment: {several-nodes: {A: b}}", True),
        ("network: {interface: eth0}", True),
        ("gpu-visibility: all", True),
        ("cache: /scratch", False),
        ("proxies: {http_proxy: x}", False),
    ],
)
def test_step_ids_change_with_it(project: Path, facts: str, changes: bool) -> None:  # noqa: FBT001
    """Change the ids of the layer that carries it and of all later ones, and no other."""
    append(EXTRA, "include: [site-environment]\n")(project / "defs")
    before = _ids(project)
    append(SITE, f"{facts}\n")(project / "defs")
    after = _ids(project)
    assert before[:2] == after[:2]
    assert (before[2] != after[2]) == changes


def test_layers_without_it_do_not_depend_on_the_site(project: Path) -> None:
    before = _ids(project)
    append(SITE, "environment: {always: {A: b}}\nnetwork: {interface: eth0}\n")(project / "defs")
    assert _ids(project) == before


READER = """
import json, sys
from launch import site_environment
for path, one_node in json.loads(sys.argv[1]):
    env = {"SIFWRIGHT_SITE_ENVIRONMENT": path}
    site_environment.apply(env, one_node=one_node)
    print(json.dumps({name: env[name] for name in env if name != "SIFWRIGHT_SITE_ENVIRONMENT"}))
"""


def test_the_run_scripts_read_what_is_written(real: Catalog, tmp_path: Path) -> None:
    """Read by the run scripts' code, for every site and a site of hostile values.

    Engine native and the image agree.
    """
    values = [v for v in hostile.texts(hostile.SEED + 200, 1500) if v and not refuse_text(v)]
    odd = Environment(always={f"E{number}": value for number, value in enumerate(values)})
    sites = [*real.sites.values(), replace(real.sites["local"], name="odd", environment=odd)]
    for site in sites:
        (tmp_path / site.name).write_text(site_environment.render(site))
    asked = [(site, nodes) for site in sites for nodes in (1, 2)]
    words = json.dumps([(str(tmp_path / site.name), nodes == 1) for site, nodes in asked])
    done = subprocess.run(
        [sys.executable, "-c", READER, words],
        cwd=CHECKOUT / "runscripts",
        check=True,
        capture_output=True,
        text=True,
    )
    results = [json.loads(line) for line in done.stdout.splitlines()]
    assert results == [site_environment.variables(site, nodes) for site, nodes in asked]


def test_run_scripts_of_a_base_image_give_way(tmp_path: Path) -> None:
    """Replace them: one base image has them as files and folders, others as links."""
    (tmp_path / "step").mkdir()
    shutil.copytree(CHECKOUT / "runscripts", tmp_path / "step" / "runscripts")
    (tmp_path / "step" / site_environment.FILE).write_text("[always]\n")
    existing = tmp_path / "root" / "runscripts"
    existing.mkdir(parents=True)
    (existing / "launch").symlink_to("/nowhere")
    (existing / "their-own").write_text("kept")
    path = f"{Path(sys.executable).parent}:/usr/bin:/bin"
    for _ in range(2):
        subprocess.run(
            ["/bin/bash", CHECKOUT / "defs" / "layers" / "run-scripts" / "install.sh"],
            cwd=tmp_path / "step",
            env={"PATH": path, "IMAGE_ROOT": str(tmp_path / "root")},
            check=True,
        )
    names = {entry.name for entry in (CHECKOUT / "runscripts").iterdir()}
    assert {entry.name for entry in existing.iterdir()} - {"__pycache__"} == names | {"their-own"}
    assert (existing / "launch" / "ranks.py").is_file()
