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
from tests.conftest import run
from tests.unit import hostile
from tests.unit.broken import EXTRA, SITE, append
from tests.unit.conftest import CHECKOUT


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


READER = """
import json, sys
from launch import site_environment
for path, one_node in json.loads(sys.argv[1]):
    env = {"SIFWRIGHT_SITE_ENVIRONMENT": path}
    site_environment.apply(env, one_node=one_node)
    print(json.dumps({name: env[name] for name in env if name != "SIFWRIGHT_SITE_ENVIRONMENT"}))
"""


def test_the_run_scripts_read_what_is_written(real: Catalog, tmp_path: Path) -> None:
    """Read it for every site and a site of hostile values: engine native and the image agree."""
    values = [v for v in hostile.texts(hostile.SEED + 200, 1500) if v and not refuse_text(v)]
    odd = Environment(always={f"E{number}": value for number, value in enumerate(values)})
    sites = [*real.sites.values(), replace(real.sites["local"], name="odd", environment=odd)]
    for site in sites:
        (tmp_path / site.name).write_text(site_environment.render(site))
    asked = [(site, nodes) for site in sites for nodes in (1, 2)]
    words = json.dumps([(str(tmp_path / site.name), nodes == 1) for site, nodes in asked])
    done = run([sys.executable, "-c", READER, words], cwd=CHECKOUT / "runscripts")
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
