"""The wheel of a lock file that is fetched: the one that the image's pip would take."""

from __future__ import annotations

import json

import pytest
from packaging.pylock import PylockValidationError

from sifwright.make_image.downloads import resolve_wheels as wheels

DIGEST = "a" * 64
SERVER = "https://files.example/toy/"
OLD = "toy-1.0-cp311-cp311-manylinux_2_17_x86_64.manylinux2014_x86_64.whl"
NEW = "toy-1.0-cp311-cp311-manylinux_2_27_x86_64.manylinux_2_28_x86_64.whl"
NEWER = "toy-1.0-cp311-cp311-manylinux_2_34_x86_64.whl"
OTHER = "toy-1.0-cp312-cp312-manylinux_2_28_x86_64.whl"
MUSL = "toy-1.0-cp311-cp311-musllinux_1_2_x86_64.whl"
ARM = "toy-1.0-cp311-cp311-manylinux_2_17_aarch64.manylinux2014_aarch64.whl"
STABLE = "toy-1.0-cp39-abi3-manylinux1_x86_64.whl"
PURE = "toy-1.0-py3-none-any.whl"


def lock(*names: str, url: str = SERVER, digest: str = DIGEST) -> str:
    """Write a lock of one package; JSON's strings and lists are TOML's."""
    entries = [
        f'{{ url = {json.dumps(url + name)}, hashes = {{ sha256 = "{digest}" }} }}'
        for name in names
    ]
    packages = f'[[packages]]\nname = "toy"\nwheels = [{", ".join(entries)}]\n'
    return f'lock-version = "1.0"\ncreated-by = "uv"\n{packages}'


def taken(text: str, python: str = "3.11", processor: str = "x86_64") -> str:
    return " ".join(wheel.name for wheel in wheels.read(text, python, processor).wheels)


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        ((PURE, OLD, NEW, NEWER, OTHER, MUSL, ARM, STABLE), NEW),
        ((PURE, STABLE, OLD), OLD),
        ((PURE, STABLE), STABLE),
        ((MUSL, PURE), PURE),
        ((NEWER, OTHER, MUSL, ARM), ""),
    ],
)
def test_the_one_that_fits_best(names: tuple[str, ...], expected: str) -> None:
    for order in (names, names[::-1]):
        result = wheels.read(lock(*order), "3.11", "x86_64")
        assert " ".join(wheel.name for wheel in result.wheels) == expected
        assert result.whole == bool(expected)


def test_another_processor_and_python() -> None:
    names = (OLD, OTHER, ARM)
    assert taken(lock(*names), processor="aarch64") == ARM
    assert taken(lock(*names), python="3.12") == OTHER


def test_facts_of_a_wheel() -> None:
    name = "toy-1.0+cpu-py3-none-any.whl"
    (result,) = wheels.read(lock(name.replace("+", "%2B")), "3.11", "x86_64").wheels
    url = SERVER + name.replace("+", "%2B")
    assert result == wheels.Wheel(package="toy", name=name, url=url, sha256=DIGEST)


@pytest.mark.parametrize("name", [f"..%2F..%2F{PURE}", "toy.zip", f"{PURE}%2F..%2Fother"])
def test_a_name_leads_nowhere_else(name: str) -> None:
    with pytest.raises(PylockValidationError, match="Invalid wheel filename"):
        wheels.read(lock(name), "3.11", "x86_64")


def test_wheels_that_are_not_fetched() -> None:
    """Skip files in a folder of this machine, and files without a sha256 to check."""
    local = wheels.read(lock(PURE, url="file:///wheels/"), "3.11", "x86_64")
    assert (local.wheels, local.whole) == ((), True)
    unknown = wheels.read(lock(PURE, digest="md5"), "3.11", "x86_64")
    assert (unknown.wheels, unknown.whole) == ((), False)
