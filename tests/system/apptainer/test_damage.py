"""Every cached file harmed in every way: what is damaged never gets into an image."""

from __future__ import annotations

import itertools
import shutil
from typing import TYPE_CHECKING, NamedTuple

import pytest

from sifwright.make_image.cache import manifest
from sifwright.make_image.pack_layers.pack import LISTING, SQUASHFS
from tests.system.apptainer.toys import make_toy, succeeded
from tests.system.apptainer.trials import LAYERS, Trial, copied, spoil

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.build

HARMS = ("cut", "flip", "empty", "remove", "folder")
FILES = (SQUASHFS, LISTING, manifest.NAME)


class Case(NamedTuple):
    layer: str
    file: str
    harm: str


ALL = [Case(*words) for words in itertools.product(LAYERS, FILES, HARMS)]
# Each file of each step once, and each harm about twice.
FEW = [ALL[first + first // len(HARMS) % len(HARMS)] for first in range(0, len(ALL), len(HARMS))]
CASES = [
    pytest.param(case, marks=() if case in FEW else pytest.mark.slow, id="-".join(case))
    for case in ALL
]


@pytest.fixture(scope="module")
def trial(tiny_base: Path, tmp_path_factory: pytest.TempPathFactory) -> Trial:
    """Return a trial at a site where all steps are cached."""
    folder = tmp_path_factory.mktemp("damage")
    trial = Trial.of(make_toy(folder / "project", tiny_base), folder)
    assert trial.site.build("--layout", "layered").returncode == 0
    return trial


@pytest.mark.parametrize("layout", ["layered", pytest.param("flat", marks=pytest.mark.slow)])
@pytest.mark.parametrize("case", CASES)
def test_damaged_results_are_made_again(
    trial: Trial, tmp_path: Path, case: Case, layout: str
) -> None:
    site = copied(trial.site, tmp_path)
    entries = {entry.manifest["layer"]: entry for entry in site.store.entries()}
    spoil(entries[case.layer].file(case.file), case.harm)
    assert [bad.key for bad in site.store.verify()] == [entries[case.layer].key]
    is_needed = case.file != LISTING
    if case.file == LISTING and case.layer != LAYERS[-1]:
        # Only steps above it read it.
        shutil.rmtree(entries[LAYERS[-1]].folder)
        is_needed = True
    succeeded(site.build("--force", "--layout", layout))
    assert site.store.verify() == [] or not is_needed
    trial.assert_right(site)
