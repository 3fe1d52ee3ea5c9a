"""A conda environment in an image, from a channel and an installer of Miniforge on loopback."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import yaml

from sifwright.catalog import mirrors
from tests.checkouts import copy_project, write_image
from tests.conftest import ROOT, run, sifwright
from tests.network import write_mirrors
from tests.servers import serve_folder
from tests.system import conda_channel

CHANNEL = "https://conda.example/forge"
RELEASES = "https://github.com/conda-forge/miniforge/releases/download/"
# The Python of bookworm, to which that of the channel links.
PYTHON = "3.11"
CONDA = {"layer": "conda", "options": {"channel": CHANNEL, "python": PYTHON}}
LAYERS = ("base-debian", "build-tools", CONDA, "pytorch-wheel", "run-scripts")
SHOW = "import os, sys, torch; print(torch.ones(2).sum(), sys.prefix, os.environ['CONDA_PREFIX'])"
ENVIRONMENT = "/opt/conda/envs/pytorch"


def write_installer(folder: Path) -> Path:
    """Write the installer of each release and processor of the layer."""
    layer = ROOT / "defs/layers/conda"
    client = (layer / "files/rattler_client.py").read_text()
    text = (Path(__file__).parent / "miniforge.sh").read_text().replace("@CLIENT@\n", client)
    for pin in yaml.safe_load((layer / "pins.yaml").read_text()).values():
        for version in pin["versions"]:
            file = folder / pin["archive"].format(version=version).removeprefix(RELEASES)
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)
    return folder


@pytest.mark.build
@pytest.mark.builds("conda", by="make test-all", depth="ran on CPUs", stand_in=True)
def test_torch_in_an_environment(engine: str, tmp_path: Path) -> None:
    project = copy_project(tmp_path / "project")
    write_image(project, "conda", LAYERS)
    conda_channel.make_channel(tmp_path / "channel", Path("/usr/bin"), PYTHON)
    with serve_folder(tmp_path / "channel") as url:
        archives = {RELEASES: f"{write_installer(tmp_path / 'releases')}/"}
        file = write_mirrors(tmp_path / "mirrors.yaml", archives=archives, conda={CHANNEL: url})
        env = os.environ | {mirrors.VARIABLE: str(file)}
        words = ["--project", project, "build", "local", "conda", "--output", tmp_path / "build"]
        done = sifwright(*words, env=env)
    assert done.returncode == 0, done.stdout + done.stderr
    image = tmp_path / "build/local/conda/image.sif"
    inside = [engine, "--quiet", "exec", "--containall", "--no-home", image]
    shown = run([*inside, "conda-python-simple", "-c", SHOW])
    assert shown.stdout.split() == ["tensor(2.)", ENVIRONMENT, ENVIRONMENT], shown.stderr
    # The environment names the public channel and no file of the image names the mirror.
    script = f"grep -c '^{CHANNEL}/' /opt/conda/explicit.txt; grep -rl {url} /opt /etc || echo none"
    assert run([*inside, "sh", "-c", script]).stdout.split() == ["2", "none"]
