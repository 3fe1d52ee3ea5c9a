"""What a person reads of an image's facts."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sifwright.imagesource.command import lines
from tests.containers.toys import FACTS

FIRST, SECOND = FACTS.pythons
BASES = {
    "musl": (replace(FACTS, libc="musl 1.2.5"), "no wheels of torch for musl"),
    "no Python": (replace(FACTS, pythons=()), "it has no Python"),
    "no torch": (
        replace(FACTS, pythons=(replace(FIRST, torch=None),)),
        "uses /opt/conda/bin/python 3.12, and installs torch",
    ),
    "torch in the second": (
        replace(FACTS, pythons=(replace(FIRST, torch=None), SECOND)),
        "uses /usr/bin/python3 3.11 and its torch 2.7.1",
    ),
}


@pytest.mark.parametrize("case", BASES)
def test_what_it_means_as_a_base(case: str) -> None:
    facts, said = BASES[case]
    assert [*lines(facts)][-1].endswith(said)


def test_nothing_of_an_image_controls_the_terminal() -> None:
    hostile = replace(FACTS, source="x", os="\x1b[31mred", labels={"a\nb": "c\nimage  fake"})
    found = [*lines(hostile)]
    assert all(line.isprintable() for line in found)
    assert sum(line.startswith("image") for line in found) == 1
