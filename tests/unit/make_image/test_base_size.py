"""The size of a base that the user names is its own, not that of the largest."""

import os
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from sifwright.make_image.check_machine.base_size import sized
from sifwright.make_image.resolve_request.base_image import BaseImage, base_image_of
from sifwright.plan.model import Plan
from sifwright.plan.resolve import resolve
from tests.catalogs import REAL
from tests.registries import Registry, running
from tests.unit.mirror_files import MirrorsFile

SLIM = "docker://python:3.12-slim-bookworm"
LAYER = os.urandom(2_000_000)


@pytest.fixture
def plan() -> Plan:
    return resolve(REAL, "local", "base-image", [f"base-image.from={SLIM}"])


def _megabytes(plan: Plan) -> int:
    return sized(plan, base_image_of(plan)).steps[0].layer.disk_mb


def test_a_manifest_says_it(plan: Plan, mirrors_file: MirrorsFile) -> None:
    with running(Registry()) as registry:
        processor = {"x86_64": "amd64", "aarch64": "arm64"}[plan.site.processor]
        registry.push("library/python", "3.12-slim-bookworm", LAYER, processor=processor)
        mirrors_file.write(f"oci:\n  docker.io: {registry.url}\n")
        assert _megabytes(plan) == 7


def test_a_registry_that_does_not_answer_leaves_the_layers_number(
    plan: Plan, mirrors_file: MirrorsFile
) -> None:
    mirrors_file.write("oci:\n  docker.io: http://127.0.0.1:9\n")
    assert _megabytes(plan) == plan.steps[0].layer.disk_mb == 40_000


def test_a_file_says_it(plan: Plan, tmp_path: Path) -> None:
    (tmp_path / "base.sif").write_bytes(LAYER)
    base = SimpleNamespace(reference=None, file=tmp_path / "base.sif", kind="localimage")
    assert sized(plan, cast("BaseImage", base)).steps[0].layer.disk_mb == 7


def test_the_number_of_a_fixed_base_stays() -> None:
    plan = resolve(REAL, "local", "pytorch", [])
    assert sized(plan, base_image_of(plan)) is plan
