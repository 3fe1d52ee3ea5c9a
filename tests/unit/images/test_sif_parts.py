"""Packed text of a SIF from a registry, read with distrust."""

from __future__ import annotations

import lzma
from typing import TYPE_CHECKING

import pytest

from sifwright.images.contents.image_tree import BadImage
from sifwright.images.transfer import sif_parts
from tests.unit.two_layers import two_layers

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def test_the_text_around_partitions_is_packed(tmp_path: Path) -> None:
    sif = two_layers(tmp_path / "x.sif", definition=b"a line\n" * 60_000)
    header, *partitions = sif_parts.parts(sif)
    assert header.size < header.span.size / 20
    assert sif_parts.unpacked(header.packed) == sif.read_bytes()[: header.span.size]
    assert [part.packed for part in partitions] == [b"", b""]


@pytest.mark.parametrize(
    ("pack", "why"),
    [
        (lambda: b"this is no xz", "is no xz"),
        (lambda: lzma.compress(b"text")[:-1], "is cut off"),
        (lambda: lzma.compress(bytes(65 << 20), preset=0), "has more than 64 MiB"),
    ],
)
def test_other_bytes_than_a_packed_part_are_refused(pack: Callable[[], bytes], why: str) -> None:
    with pytest.raises(BadImage, match=why):
        sif_parts.unpacked(pack())
