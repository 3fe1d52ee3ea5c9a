"""Squashfs files joined without unpacking: what mksquashfs, unsquashfs and Linux think of them."""

from __future__ import annotations

import os
import random
from typing import TYPE_CHECKING

import pytest

from sifwright.images.sif.copy_data import Range
from sifwright.images.squashfs.join_layers import compression, join
from sifwright.images.squashfs.structures import SUPERBLOCK_BYTES, BadSquashfs
from sifwright.make_image.pack_layers.pack import squash_command
from tests.conftest import run
from tests.system.apptainer.squashed import described, loop, mounted, packed
from tests.system.apptainer.steps import write_joined
from tests.system.apptainer.trees import nested

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="makes devices and owners")

# More names than one block of metadata has room for. More inodes than the difference between two
# entries of a directory may be. Files of every size that is packed in another form.
LOWER = """
mkdir -p many deep/er gone same with
seq -f many/a-rather-long-name-of-a-file-%05g 3000 | xargs touch
seq -f deep/er/%05g 40000 | xargs touch
printf one >deep/zzz; printf x >gone/x
head -c 131072 /dev/urandom >block; head -c 131073 /dev/urandom >block-and-byte
head -c 300000 /dev/urandom >same/1; cp same/1 same/2; head -c 5000 same/1 >tail
truncate -s 1M hole; printf end >>hole; : >empty
seq 100000 >text; ln text link; ln -s text symlink; ln -s "$(printf %04000d 0)" far
mkfifo pipe; mknod null c 1 3; mknod loop b 7 700; chown 1000:70000 text pipe; chmod 6711 block
setcap cap_net_raw+ep block
python3 -c '
import os
os.setxattr("with", "user.note", b"1" * 2000)
os.setxattr("tail", "user.note", b"1" * 2000)
os.setxattr("symlink", "trusted.x", b"2", follow_symlinks=False)'
"""
UPPER = """
mkdir many deep with block; printf new >many/a-rather-long-name-of-a-file-01500; touch many/z
mknod many/a-rather-long-name-of-a-file-00001 c 0 0; mknod gone c 0 0; mknod same c 0 0
printf in >block/in; printf file >empty; mknod link c 0 0; chmod 700 deep
head -c 200000 /dev/urandom >random; printf tail >tiny
"""


@pytest.fixture(scope="module", params=["zstd", "gzip"])
def layers(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder = tmp_path_factory.mktemp(request.param)
    return [
        packed(folder, script, name, request.param)
        for name, script in {"lower": LOWER, "upper": UPPER}.items()
    ]


def test_linux_sees_what_an_overlay_of_the_layers_shows(layers: list[Path], tmp_path: Path) -> None:
    joined = tmp_path / "joined.sqfs"
    write_joined(layers, joined)
    lower, upper = layers
    with loop(lower, tmp_path / "1") as folder, loop(upper, tmp_path / "2") as two:
        option = f"lowerdir={two}:{folder}"
        with mounted(tmp_path / "o", "-t", "overlay", "-o", option, "overlay") as stack:
            expected = described(stack)
    with loop(joined, tmp_path / "j") as tree:
        result = described(tree)
        assert (tree / "text").lstat().st_nlink == 1
        # Linux goes by the index here, one name after the other would be found without it.
        assert (tree / "many" / "a-rather-long-name-of-a-file-02999").exists()
        assert not (tree / "many" / "a-rather-long-name-of-a-file-00001").exists()
        assert sum(1 for _ in (tree / "deep" / "er").iterdir()) == 40000
    assert result == expected
    assert len(result) > 43_000


def test_one_layer_joined_is_itself(layers: list[Path], tmp_path: Path) -> None:
    """Keep hard links, store equal files once, and need no more bytes than mksquashfs."""
    write_joined(layers[:1], joined := tmp_path / "joined.sqfs")
    with loop(layers[0], tmp_path / "1") as before, loop(joined, tmp_path / "2") as after:
        assert described(after) == described(before)
        assert (after / "text").lstat().st_nlink == (before / "text").lstat().st_nlink == 2
        assert (after / "text").samefile(after / "link")
        assert (after / "hole").lstat().st_blocks == (before / "hole").lstat().st_blocks
    assert joined.stat().st_size < 1.01 * layers[0].stat().st_size
    assert compression(_whole(joined)) == compression(_whole(layers[0]))


def test_fuse_reads_it(engine: str, layers: list[Path], tmp_path: Path) -> None:
    """Mount by squashfuse, by which ordinary users run images."""
    assert engine
    write_joined(layers, joined := tmp_path / "joined.sqfs")
    folder = tmp_path / "mnt"
    folder.mkdir()
    assert run(["squashfuse", joined, folder]).returncode == 0
    try:
        for number in (2, 1500, 2999):
            assert (folder / f"many/a-rather-long-name-of-a-file-{number:05}").exists()
        assert not (folder / "gone").exists()
        assert (folder / "text").read_text().splitlines()[-1] == "100000"
    finally:
        assert run(["fusermount", "-u", folder]).returncode == 0


def test_removed_files_take_no_room(tmp_path: Path) -> None:
    lower = packed(tmp_path, "head -c 2000000 /dev/urandom >a; seq 9 >b", "lower", "zstd")
    upper = packed(tmp_path, "mknod a c 0 0", "upper", "zstd")
    write_joined([lower, upper], joined := tmp_path / "joined.sqfs")
    assert joined.stat().st_size < 10_000


def test_layers_of_another_kind_are_refused(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("no squashfs" * 20)
    with pytest.raises(BadSquashfs, match=r"is no squashfs 4\.0"):
        join([_whole(tmp_path / "text")])
    noted = packed(
        tmp_path,
        """mkdir x; python3 -c 'import os; os.setxattr("x", "trusted.overlay.opaque", b"y")'""",
        "noted",
        "gzip",
    )
    with pytest.raises(BadSquashfs, match="notes of an overlay driver"):
        join([_whole(noted)])


def test_directories_too_deep_are_said_to_be(tmp_path: Path) -> None:
    deep = packed(tmp_path, f'python3 -c "{nested(1100)}"', "deep", "gzip")
    with pytest.raises(BadSquashfs, match="too deep"):
        join([_whole(deep)])
    # pytest's own way of removing folders calls itself for each of them.
    assert run(["rm", "-r", tmp_path / "deep"]).returncode == 0


@pytest.mark.parametrize("options", [(), ("-noI", "-noX")], ids=["packed", "plain"])
def test_damage_is_said_or_does_no_harm(tmp_path: Path, options: tuple[str, ...]) -> None:
    """Try 1000 flips and cuts in a layer: no other error, no endless loop.

    In metadata that is not packed, numbers come out wrong that zlib would not let through.
    """
    script = "mkdir -p a/b; seq 20000 >a/text; seq 5 >a/b/c; ln a/text x; ln -s x y; mkfifo z"
    whole = packed(tmp_path, script, "layer", "gzip")
    assert run([*squash_command(whole, "gzip"), *options], cwd=tmp_path / "layer").returncode == 0
    data = whole.read_bytes()
    chance, refused = random.Random(1), 0  # noqa: S311
    metadata = [*range(SUPERBLOCK_BYTES), *range(int.from_bytes(data[64:72], "little"), len(data))]
    damaged = tmp_path / "damaged.sqfs"
    for number in range(1000):
        copy = bytearray(data)
        for _ in range(chance.randint(1, 3)):
            copy[chance.choice(metadata)] ^= 1 << chance.randrange(8)
        damaged.write_bytes(copy[: chance.choice(metadata)] if number % 4 == 0 else copy)
        try:
            join([_whole(damaged)])
        except BadSquashfs:
            refused += 1
    assert refused > 300


def _whole(path: Path) -> Range:
    return Range(path=path, size=path.stat().st_size)
