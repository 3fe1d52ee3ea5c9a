"""Versions of libfabric and plugin at the sites, and refused pairs with reasons."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from packaging.specifiers import SpecifierSet

from tests.unit.own_image import plan, refused

if TYPE_CHECKING:
    from sifwright.catalog.model import Catalog

TRIXIE = "base-debian.suite=trixie"
CUDA = ("base-debian", "cuda-debian", "python-venv", "build-tools", "libfabric")
ROCM = ("base-debian", "rocm-debian", "python-venv", "build-tools", "libfabric")
PLUGIN = "aws-ofi-nccl"
PLAIN = ("base-debian", "python-venv", "build-tools", "libfabric")
# Site -> libfabric, and the plugin that is known to run with it, and where.
PAIRS = {
    "derecho": ("1.22.0", "1.18.0", "Isambard-AI"),
    "frontier": ("2.3.1", "1.19.2", "Frontier"),
}


@pytest.mark.parametrize("site", PAIRS)
def test_a_pair_that_is_known_to_run_comes_on_request(real: Catalog, site: str) -> None:
    toolkit = CUDA if real.sites[site].vendor == "nvidia" else ROCM
    libfabric, plugin, where = PAIRS[site]
    asked = f"aws-ofi-nccl.version={plugin}"
    proven = plan(real, site, (*toolkit, PLUGIN), TRIXIE, asked)
    assert proven.steps[-1].options["proven"].text == f"{libfabric} ({where})"
    assert real.versions["aws-ofi-nccl"][plugin]["better"] == ("1.20.0",)


def test_the_sources_of_slingshot_are_those_of_cxi_only(real: Catalog) -> None:
    steps = plan(real, "derecho", CUDA, TRIXIE).steps
    assert {source.name for source in steps[-1].sources} == {
        "libfabric",
        "libcxi",
        "cxi-driver",
        "cassini-headers",
    }
    steps = plan(real, "local", PLAIN).steps
    assert [source.name for source in steps[-1].sources] == ["libfabric"]
    assert steps[-1].options["provider"].text == "tcp"


def test_an_unproven_pair_is_taken_and_says_so(real: Catalog) -> None:
    resolved = plan(real, "derecho", (*CUDA, "aws-ofi-nccl"), TRIXIE, "aws-ofi-nccl.version=1.21.1")
    assert resolved.steps[-1].options["proven"].text == "none"


REFUSED = {
    "rocm-plugin-on-cuda": (
        *("derecho", (*CUDA, PLUGIN), ("aws-ofi-nccl.gpu=amd",)),
        "gpu amd does not go with vendor nvidia; .* does not load into NCCL, nor the other way",
    ),
    "plugin-before-rocm": (
        *("frontier", (*ROCM, PLUGIN), ("aws-ofi-nccl.version=1.17.3",)),
        "version 1.17.3 does not go with gpu amd; .* . Nearest version that does: 1.18.0",
    ),
    "plugin-without-interface-for-libfabric-2": (
        *("derecho", (*CUDA, PLUGIN)),
        ("aws-ofi-nccl.version=1.6.0", "libfabric.version=2.3.1"),
        "version 1.6.0 does not go with libfabric 2.3.1; it goes with >=1.11,<2",
    ),
    "cxi-before-it-was-public": (
        *("derecho", CUDA, ("libfabric.version=1.20.1",)),
        "version 1.20.1 does not go with provider cxi; .*1.21.0.*Nearest version that does: 1.21.1",
    ),
    "cxi-without-its-userland": (
        *("derecho", CUDA, ("libfabric.shs=none",)),
        "provider cxi does not go with shs none",
    ),
    "libfabric-of-another-vendor": (
        *("frontier", ROCM, ("libfabric.gpu=nvidia",)),
        "gpu nvidia does not go with vendor amd",
    ),
    "libfabric-unknown": (
        *("derecho", CUDA, ("libfabric.version=9.9.9",)),
        "there is no pin of source 'libfabric' for '9.9.9'",
    ),
    "cuda-on-amd": (
        *("frontier", CUDA, ()),
        "'cuda-debian' does not suit: it is for vendor nvidia, the site has amd",
    ),
    "cuda-of-another-debian": (
        *("derecho", CUDA, ("base-debian.suite=bookworm",)),
        "release trixie does not go with python 3.11; .*base-debian.suite",
    ),
    "nccl-twice": ("derecho", (*CUDA, "nccl"), (), "'cuda-debian' and 'nccl' both provide 'nccl'"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_impossible_pairs_are_refused_with_the_reason(real: Catalog, case: str) -> None:
    site, layers, settings, expected = REFUSED[case]
    message = refused(real, site, layers, TRIXIE, *settings)
    assert re.search(expected, message), message


def test_every_pinned_version_is_in_the_tables(real: Catalog) -> None:
    for name in ("libfabric", "aws-ofi-nccl"):
        source = next(s for s in real.layers[name].sources if s.name == name)
        assert set(source.versions) == set(real.versions[name])


@pytest.mark.parametrize("gpu", ["nvidia", "amd"])
def test_a_releases_own_plugin_goes_with_it(real: Catalog, gpu: str) -> None:
    """Choose by default the plugin that takes this libfabric and these GPUs."""
    rows = {name: row[gpu][0] for name, row in real.versions["libfabric"].items() if gpu in row}
    assert "2.3.1" in rows
    for version, plugin in rows.items():
        row = real.versions["aws-ofi-nccl"][plugin]
        assert SpecifierSet(row["libfabric"][0]).contains(version), version
        assert gpu in row["gpu"], version
