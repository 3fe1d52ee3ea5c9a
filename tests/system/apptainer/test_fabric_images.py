"""libfabric with the provider cxi and the network plugin, compiled against real NCCL and RCCL.

Debian's own CUDA and ROCm stand for the vendors'. The tests are skipped if a source does not
answer: of libfabric, Slingshot's userland or the plugin. SIFWRIGHT_MIRRORS may lead to copies.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.conftest import ROOT
from tests.system.apptainer.toys import make_toy, succeeded
from tests.system.fabric.images import STACKS, Stack, build, make_project, missing_sources, prove

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.slow, pytest.mark.build]
TOOLKITS = {
    "cuda": (
        pytest.mark.builds("cuda-debian", by="make test-slow", depth="compiled", vendor="nvidia"),
        pytest.mark.builds(
            "libfabric", "aws-ofi-nccl", by="make test-slow", depth="imported", vendor="nvidia"
        ),
    ),
    "rocm": (
        pytest.mark.builds("rocm-debian", by="make test-slow", depth="compiled", vendor="amd"),
        pytest.mark.builds(
            "libfabric", "aws-ofi-nccl", by="make test-slow", depth="imported", vendor="amd"
        ),
    ),
}

PREFIX = "/opt/aws-ofi-nccl/lib"
SYSTEM = "/usr/lib/x86_64-linux-gnu"
# Letters of the proof -> what is done to the image, and a word that the proof must say of it.
SPOILT = {
    "a": ("rm -f {library}*", "no {kind} in the image"),
    "b": ("rm {prefix}/{plugin}", "which does not load"),
    "b-other": ("cp {prefix}/{plugin} {system}/; rm {prefix}/{plugin}", "not the plugin in"),
    "c": (f"rm {SYSTEM}/libhwloc.so.15", "libhwloc.so.15 => not found"),
    "d": ("cc -shared -o {prefix}/{plugin} -xc /dev/null", "exports none"),
    "e": (r"sed -i 's/\x00cxi\x00/\x00cxy\x00/g' /opt/libfabric/lib/libfabric.so.1", "not cxi"),
    "e-memory": ("rm /opt/libfabric/lib/lib{runtime}.so {system}/lib{runtime}.so", "GPU memory"),
}


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if missing := missing_sources():
        pytest.skip(f"{missing} does not answer; SIFWRIGHT_MIRRORS names no copy")
    return make_project(tmp_path_factory.mktemp("fabric"))


@pytest.fixture(
    scope="module", params=[pytest.param(name, marks=mark) for name, mark in TOOLKITS.items()]
)
def stack(request: pytest.FixtureRequest) -> Stack:
    return STACKS[request.param]


@pytest.fixture(scope="module")
def image(engine: str, project: Path, stack: Stack) -> Path:
    """Build the stack's image; its build runs the proof, and fails with it."""
    assert engine
    succeeded(build(project, stack, project / "build"))
    return project / "build" / stack.site / stack.image / "image.sif"


def test_the_plugin_is_proved(engine: str, image: Path, stack: Stack) -> None:
    done = succeeded(prove(engine, image))
    assert f"(a) the loader gives {stack.library}" in done.stdout
    assert f"(b) it looks for {stack.plugin} and gets {PREFIX}/{stack.plugin}" in done.stdout
    assert "BROKEN" not in done.stdout
    assert {line.split()[1] for line in done.stdout.splitlines() if line.startswith("ok")} == {
        f"({letter})" for letter in "abcde"
    }


@pytest.mark.parametrize("case", SPOILT)
def test_a_broken_image_fails(engine: str, image: Path, stack: Stack, case: str) -> None:
    spoil, expected = SPOILT[case]
    words = {
        "library": stack.library,
        "plugin": stack.plugin,
        "prefix": PREFIX,
        "system": SYSTEM,
        "runtime": "cudart" if stack.gpu == "nvidia" else "hsa-runtime64",
        "kind": "NCCL" if stack.gpu == "nvidia" else "RCCL",
    }
    done = prove(engine, image, spoil.format(**words))
    assert done.returncode == 1, done.stdout + done.stderr
    wrong = [line for line in done.stdout.splitlines() if line.startswith(f"BROKEN ({case[0]})")]
    assert any(expected.format(**words) in line for line in wrong), done.stdout


def test_a_site_that_names_another_plugin(engine: str, image: Path) -> None:
    done = prove(engine, image, NCCL_NET_PLUGIN="spectrum-x")
    assert done.returncode == 1, done.stdout + done.stderr
    assert "BROKEN (b) it looks for " in done.stdout
    assert "spectrum-x" in done.stdout


@pytest.mark.parametrize("stack", ["rocm"], indirect=True)  # the smaller one to pack again
def test_a_broken_plugin_fails_the_build(image: Path, stack: Stack, tmp_path: Path) -> None:
    values = {"gpu": stack.gpu, "provider": "cxi", "version": "", "proven": ""}
    header = {
        name: {"type": "string", "description": "as the layer's", "default": value}
        for name, value in values.items()
    }
    toy = make_toy(tmp_path / "project", image)
    test = (ROOT / "defs" / "layers" / "aws-ofi-nccl" / "test.sh").read_text()
    spoil = f"rm {PREFIX}/{stack.plugin}\n"
    toy.layer("spoilt", spoil, test=test, header={"options": header})
    toy.image("spoilt")
    done = toy.build()
    assert done.returncode == 7, done.stdout + done.stderr
    assert (
        f"BROKEN (b) it looks for {stack.plugin}, which does not load" in done.stdout + done.stderr
    )
    assert not toy.sif.exists()
