"""What a build is asked for, in short."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from sifwright.build.request import build_options
from sifwright.plan.resolve import resolve
from tests.unit.own_image import with_image

if TYPE_CHECKING:
    from sifwright.catalog.model import Catalog

BASE = ("base-debian", "python-venv")


@pytest.mark.parametrize(
    ("layers", "program"),
    [
        ((*BASE, "pytorch-wheel", "run-scripts"), "conda-python-simple -c 'import torch'"),
        ((*BASE, "run-scripts"), "conda-python-simple --version"),
        ((*BASE, "pytorch-wheel"), "bash"),
    ],
)
def test_the_command_to_try_is_one_that_the_image_has(
    real: Catalog, layers: tuple[str, ...], program: str
) -> None:
    plan = resolve(with_image(real, *layers), "local", "mine", ())
    assert build_options.order(plan, build_options.BuildOptions(layout="flat")).program == program
