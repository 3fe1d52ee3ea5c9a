"""SIF headers, descriptors and layouts: what is written is read again, the rest is refused."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from sifwright.errors import PlanError
from sifwright.images.sif import layout
from sifwright.images.sif.format import (
    ARCHITECTURES,
    DESCRIPTOR,
    HEADER,
    MAXIMUM_DESCRIPTORS,
    NO_TIME,
    Descriptor,
    Header,
    descriptors,
)

if TYPE_CHECKING:
    from collections.abc import Callable

NUMBERS = some.integers(-(2**63), 2**63 - 1)
SMALL = some.integers(0, 2**28 - 1)
HEADERS = some.builds(
    Header,
    launch=some.binary(max_size=31).map(lambda text: text.rstrip(b"\0")),
    arch=some.sampled_from(list(ARCHITECTURES.values())),
    id=some.binary(min_size=16, max_size=16),
    **dict.fromkeys(("created", "modified", "free", "data_offset", "data_size"), NUMBERS),
    total=some.integers(0, MAXIMUM_DESCRIPTORS),
    table_offset=some.integers(HEADER.size, 2**63 - 1),
    table_size=some.integers(MAXIMUM_DESCRIPTORS * DESCRIPTOR.size, 2**63 - 1),
)
DESCRIPTORS = some.builds(
    Descriptor,
    data_type=some.integers(-(2**31), 2**31 - 1),
    **dict.fromkeys(("id", "group"), SMALL),
    link=some.integers(0, 2**32 - 1),
    **dict.fromkeys(("offset", "size", "padded_size"), NUMBERS),
    **dict.fromkeys(("created", "modified", "uid", "gid"), NUMBERS),
    name=some.binary(max_size=128).map(
        lambda name: name.rstrip(b"\0").decode(errors="surrogateescape")
    ),
    extra=some.binary(max_size=384).map(lambda extra: extra.rstrip(b"\0")),
)
GOOD = Header(
    arch=b"02\0", free=1, total=48, table_offset=4096, table_size=28080, data_offset=9, data_size=9
)


@given(HEADERS)
def test_a_header_is_read_as_it_was_written(header: Header) -> None:
    assert len(header.packed()) == 128
    assert Header.parse(header.packed()) == header


@given(DESCRIPTORS)
def test_a_descriptor_is_read_as_it_was_written(descriptor: Descriptor) -> None:
    assert len(descriptor.packed()) == 585
    assert Descriptor.parse(descriptor.packed()) == descriptor


def test_architectures_are_those_of_the_go_library() -> None:
    """Compare with its arch.go; 'sif add --help' numbers them the same."""
    known = {"386": "01", "amd64": "02", "arm64": "04", "ppc64le": "06", "mips64le": "10"}
    known |= {"s390x": "11", "riscv64": "12", "loong64": "13"}
    assert {name: ARCHITECTURES[name] for name in known} == {
        name: f"{number}\0".encode() for name, number in known.items()
    }


def refusal(read: Callable[[], object]) -> str:
    """Return the message about refused bytes; nothing if they are accepted."""
    try:
        read()
    except ValueError as error:
        return str(error)
    return ""


@given(some.binary(max_size=200), some.integers(0, 128))
def test_any_bytes_are_a_header_or_refused_in_words(noise: bytes, kept: int) -> None:
    message = refusal(lambda: Header.parse(GOOD.packed()[:kept] + noise))
    assert not message or message.startswith(("has ", "is ", "speaks "))


@given(some.binary(max_size=3 * DESCRIPTOR.size), some.integers(-1, 2**63))
def test_any_bytes_are_objects_or_refused_in_words(table: bytes, size: int) -> None:
    message = refusal(lambda: descriptors(table, size))
    assert not message or message.startswith(("has object", "is cut off: object"))


@given(DESCRIPTORS, some.integers(0, 2**63 - 1))
def test_an_object_outside_the_file_is_refused(descriptor: Descriptor, size: int) -> None:
    inside = HEADER.size <= descriptor.offset <= descriptor.end <= size
    assert inside == (refusal(lambda: descriptors(descriptor.packed(), size)) == "")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"total": -1}, "speaks in its header of -1 objects"),
        ({"total": 2**62}, f"speaks in its header of {2**62} objects"),
        ({"table_offset": 0}, "has its list of objects where it cannot be"),
        ({"table_offset": -4096}, "has its list of objects where it cannot be"),
        ({"table_size": 28079}, "has its list of objects where it cannot be"),
    ],
)
def test_a_hostile_header_is_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=f"^{message}$"):
        Header.parse(dataclasses.replace(GOOD, **change).packed())


def test_another_version_is_refused() -> None:
    with pytest.raises(ValueError, match=r"is a SIF of version b'02\\x00'; 01 is known"):
        Header.parse(GOOD.packed().replace(b"01\0", b"02\0", 1))


SIZES = some.lists(some.integers(0, 2**45), max_size=layout.MAXIMUM_OVERLAYS)


@settings(max_examples=30)
@given(some.integers(0, 2**20), some.integers(0, 2**20), SIZES)
def test_objects_follow_each_other_aligned(text: int, json: int, sizes: list[int]) -> None:
    """Align them also beyond 4 GB, and for more than the usual 48."""
    parts = [
        layout.partition(size, f"layer-{number}", "amd64", is_system=number == 0)
        for number, size in enumerate([4096, *sizes])
    ]
    plan = layout.layout([layout.definition(text), layout.metadata(json), *parts], "amd64")
    header = Header.parse(plan.head)
    assert header.data_offset == len(plan.head)
    assert header.data_offset + header.data_size == plan.descriptors[-1].end
    assert header.total - header.free == len(plan.descriptors)
    assert (header.total == 48) == (len(plan.descriptors) <= 40)
    table = plan.head[header.table_offset :][: header.table_size]
    assert descriptors(table, plan.descriptors[-1].end) == plan.descriptors
    end = header.data_offset
    for number, descriptor in enumerate(plan.descriptors, start=1):
        assert (descriptor.id, descriptor.group, descriptor.created, descriptor.modified) == (
            number,
            1,
            NO_TIME,
            NO_TIME,
        )
        assert descriptor.offset == (end if number <= 2 else end + -end % 4096)
        assert descriptor.padded_size == descriptor.end - end
        end = descriptor.end


def test_signatures_have_room_in_every_image() -> None:
    for count in (1, 40, 41, 60, layout.MAXIMUM_OVERLAYS + 1):
        part = layout.partition(4096, "", "amd64", is_system=False)
        header = Header.parse(layout.layout([part] * count, "amd64").head)
        assert header.free >= 8


def test_a_name_that_does_not_fit_is_refused() -> None:
    assert layout.partition(1, "ö" * 64, "amd64", is_system=True).name == "ö" * 64
    with pytest.raises(PlanError, match="a name of 130 bytes; a SIF has room for 128"):
        layout.partition(1, "ö" * 65, "amd64", is_system=True)


def test_more_layers_than_can_be_mounted_are_refused() -> None:
    part = layout.partition(4096, "", "amd64", is_system=False)
    with pytest.raises(PlanError, match="66 layers; a layered SIF can have 65"):
        layout.layout([part] * 66, "amd64")
