"""Files in an image's folder: of one build, or the next build notices."""

from __future__ import annotations

import errno
import itertools
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest

from sifwright.make_image.publish_image.publish import publish_sif
from sifwright.make_image.resolve_request.image_folder import ImageFolder
from tests.unit.sifs import write_sif
from tests.unit.two_layers import flip

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from sifwright.plan.model import Plan

# Two of the folder recipe/, one of each file and of the link.
RENAMES = 6
NAMES = ("recipe/image.def", "plan.json", "image.sif")


class Killed(BaseException):
    """The end by a signal: nothing catches it."""


def die() -> None:
    raise Killed


@pytest.fixture(autouse=True)
def _no_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SIFWRIGHT_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def output(tmp_path: Path) -> ImageFolder:
    folder = tmp_path / "out"
    folder.mkdir()
    return ImageFolder(folder=folder, name="image")


def test_the_values_of_a_matrix_are_in_the_tag(tmp_path: Path) -> None:
    folder = ImageFolder(folder=tmp_path / "a@b" / "pytorch@2.13.0+cpu@11", name="pytorch")
    assert folder.of_engine("local").tag == "sifwright/pytorch:local-2.13.0_cpu-11"


def wanted(build: str) -> dict[str, str]:
    return {"definition_sha256": build}


def text(name: str, build: str) -> str:
    """Return the texts of a build; its plan is the first letter."""
    return f"{name} of {build if name.endswith('sif') else build[0]}"


def publish(output: ImageFolder, build: str, folder: Path) -> None:
    """Publish as the build that owns this private folder."""
    (folder / "recipe").mkdir(parents=True)
    for name in set(NAMES) - {"image.sif"}:
        (folder / name).write_text(text(name, build))
    plan = cast("Plan", SimpleNamespace(id=build[0] * 64))
    digest = write_sif(folder / "image.sif", text("image.sif", build).encode())
    publish_sif(output, plan, folder, {**wanted(build), "sif_fingerprint": digest})


def is_whole(output: ImageFolder, build: str) -> bool:
    return all(text(name, build).encode() in (output.folder / name).read_bytes() for name in NAMES)


def assert_one_stands(output: ImageFolder, builds: Sequence[str]) -> None:
    current = [build for build in builds if output.is_current(wanted(build))]
    assert [is_whole(output, build) for build in current] == [True]


def before(rename: int, action: Callable[[], None], monkeypatch: pytest.MonkeyPatch) -> None:
    """Call `action` once, before the rename of this number."""
    numbers = itertools.count()
    for name, real in (("replace", Path.replace), ("rename", Path.rename)):

        def counted(self: Path, target: Path, real: Callable[..., Path] = real) -> Path:
            if next(numbers) == rename:
                action()
            return real(self, target)

        monkeypatch.setattr(Path, name, counted)


@pytest.mark.parametrize("other", ["b", "a-layered"])
@pytest.mark.parametrize("rename", range(RENAMES + 1))
def test_a_publishing_that_was_killed_is_noticed(
    output: ImageFolder, monkeypatch: pytest.MonkeyPatch, rename: int, other: str
) -> None:
    publish(output, "a", output.folder / "1")
    with monkeypatch.context() as patch:
        before(rename, die, patch)
        if rename < RENAMES:
            with pytest.raises(Killed):
                publish(output, other, output.folder / "2")
        else:
            publish(output, other, output.folder / "2")
    current = [build for build in ("a", other) if output.is_current(wanted(build))]
    assert all(is_whole(output, build) for build in current)
    if rename in {0, RENAMES}:
        assert current == [other if rename else "a"]
    # The edit is taken back.
    publish(output, "a", output.folder / "3")
    assert output.is_current(wanted("a"))
    assert is_whole(output, "a")


@pytest.mark.parametrize("rename", range(RENAMES))
def test_leftovers_of_a_kill_are_in_the_private_folder(
    output: ImageFolder, monkeypatch: pytest.MonkeyPatch, rename: int
) -> None:
    """Write only there: later builds find and remove these folders."""
    publish(output, "a", output.folder / "1")
    published = {path.name for path in output.folder.iterdir()}
    seen: set[str] = set()
    before(rename, lambda: seen.update(path.name for path in output.folder.iterdir()), monkeypatch)
    publish(output, "a-layered", output.folder / "2")
    assert seen
    assert seen <= published | {"2"}


@pytest.mark.parametrize("name", ["recipe/image.def", "plan.json", "image.sif"])
@pytest.mark.parametrize("harm", [lambda path: path.write_text("x"), Path.unlink])
def test_a_file_that_somebody_changed_is_noticed(
    output: ImageFolder, name: str, harm: Callable[[Path], Any]
) -> None:
    publish(output, "a", output.folder / "1")
    assert output.is_current(wanted("a"))
    assert output.damage() == ""
    harm(output.folder / name)
    assert not output.is_current(wanted("a"))
    assert "cannot be" in output.damage() or "of another build" in output.damage()


def test_each_flipped_bit_of_the_record_is_noticed(output: ImageFolder) -> None:
    publish(output, "a", output.folder / "1")
    data = output.record.read_bytes()
    for index in range(len(data)):
        output.record.write_bytes(data[:index] + bytes([data[index] ^ 1]) + data[index + 1 :])
        assert not output.is_current(wanted("a")), index
    output.record.write_bytes(data.replace(b"definition", b"explanation"))
    assert output.damage() == "record.json is not as the build wrote it"


def test_an_image_with_another_byte_is_said_to_be_another(output: ImageFolder) -> None:
    assert output.damage() == ""
    publish(output, "a", output.folder / "1")
    flip(output.link, -1)
    assert output.damage() == "the image is not the one that was built"


def test_a_signature_is_of_the_image_beside_it(output: ImageFolder) -> None:
    signed = output.folder / "1" / output.signature.name
    signed.parent.mkdir()
    signed.write_text("of a")
    publish(output, "a", signed.parent)
    assert output.signature.read_text() == "of a"
    publish(output, "b", output.folder / "2")
    assert not output.signature.exists()


def test_without_hard_links_it_is_put_there_once(
    output: ImageFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.EOPNOTSUPP, "Operation not supported")

    monkeypatch.setattr(Path, "hardlink_to", refuse)
    publish(output, "a", output.folder / "1")
    assert output.is_current(wanted("a"))
    assert [path.name for path in (output.folder / "1").iterdir()] == ["recipe"]


# The layout of a-layered is another one, the plan and so the name of the SIF is not.
@pytest.mark.parametrize("other", ["b", "a-layered"])
@pytest.mark.parametrize("rename", range(RENAMES))
def test_another_build_between_any_two_renames(
    output: ImageFolder, monkeypatch: pytest.MonkeyPatch, rename: int, other: str
) -> None:
    before(rename, lambda: publish(output, other, output.folder / "2"), monkeypatch)
    publish(output, "a", output.folder / "1")
    assert_one_stands(output, ("a", other))
