"""`sifwright diff` of real SIFs: every kind of name and of difference, layers, damage."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from sifwright.images.contents.layer_stack import LayerStack
from sifwright.images.sif import write_sif
from sifwright.images.sif.write_sif import Contents, Partition
from tests.conftest import sifwright
from tests.system.apptainer.sifs import pack

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Collection, Sequence

pytestmark = pytest.mark.skipif(not shutil.which("mksquashfs"), reason="needs squashfs-tools")

PLAN = {
    "site": "here",
    "image": "small",
    "id": "1" * 64,
    "facts": {},
    "steps": [{"layer": "base", "id": "1" * 64, "options": {}, "sources": []}],
}
EVIL = b"evil\n\x1b[2J\xff name\\ R 1 644 0 0 9 9"
METADATA = "opt/lib/python3/site-packages/torch-2.dist-info/METADATA"
STATUS = "Package: bash\nStatus: install ok installed\nArchitecture: all\nVersion: {}\n"


def tree(folder: Path) -> Path:
    """Make a tree with each kind of path and name."""
    for name in ("opt/sifwright", "var/lib/dpkg", METADATA.rpartition("/")[0]):
        (folder / name).mkdir(parents=True)
    (folder / "opt/sifwright/plan.json").write_text(json.dumps(PLAN))
    (folder / "var/lib/dpkg/status").write_text(STATUS.format(5))
    (folder / METADATA).write_text("Name: torch\nVersion: 2\n")
    (folder / "same").write_text("same")
    (folder / "name").write_text("one")
    os.link(folder / "name", folder / "other name")
    (folder / "link").symlink_to("tar get")
    Path(os.fsdecode(os.fsencode(folder) + b"/" + EVIL)).write_text("evil")
    return folder


def write(target: Path, *parts: Partition) -> Path:
    target.unlink(missing_ok=True)
    write_sif.write(target, Contents(partitions=parts, definition=b"Bootstrap: x\n", arch="amd64"))
    return target


def diff(*arguments: object, **options: object) -> subprocess.CompletedProcess[str]:
    done = sifwright("diff", *arguments, **options)
    assert "Traceback" not in done.stderr
    return done


@pytest.fixture
def old(tmp_path: Path) -> Path:
    return write(tmp_path / "old.sif", pack(tree(tmp_path / "old"), is_system=True))


@pytest.fixture
def changed(tmp_path: Path) -> Path:
    """Make the folder of a second tree, to be changed."""
    return tree(tmp_path / "new")


def compared(old: Path, changed: Path) -> dict[str, dict[str, list[str]]]:
    """Return the changes between the old image and the tree now, by state and path."""
    new = write(changed.with_suffix(".sif"), pack(changed, is_system=True))
    done = diff(old, new, "--json")
    assert done.returncode == 1, done.stderr
    files = json.loads(done.stdout)["files"]
    return {
        state: {entry["path"]: entry.get("what", []) for entry in files[state]["largest"]}
        for state in ("added", "removed", "changed")
    }


def test_the_same_tree_packed_twice(old: Path, changed: Path) -> None:
    for path in changed.rglob("*"):
        os.utime(path, (5, 5), follow_symlinks=False)
    new = write(changed.with_suffix(".sif"), pack(changed, is_system=True))
    assert new.read_bytes() != old.read_bytes()
    done = diff(old, new)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines()[-1] == "no differences"


def test_every_kind_of_difference(old: Path, changed: Path) -> None:
    (changed / "same").write_text("SAME")
    (changed / "name").write_text("two")
    (changed / "name").chmod(0o4750)
    (changed / "link").unlink()
    (changed / "link").symlink_to("other\nnew target")
    (changed / "added \N{SNOWMAN}").write_text("new")
    Path(os.fsdecode(os.fsencode(changed) + b"/" + EVIL)).unlink()
    result = compared(old, changed)
    assert result["changed"] == {
        "link": ["target tar get -> other\\nnew target"],
        "name": ["mode 644 -> 4750", "contents"],
        "other name": ["mode 644 -> 4750", "contents"],
        "same": ["contents"],
    }
    assert list(result["added"]) == ["added \N{SNOWMAN}"]
    assert list(result["removed"]) == ["evil\\n\\x1b[2J\\xff name\\\\ R 1 644 0 0 9 9"]


def test_lines_of_packages_and_of_a_name_that_wants_to_be_more(old: Path, changed: Path) -> None:
    Path(os.fsdecode(os.fsencode(changed) + b"/" + EVIL)).write_text("EVIL")
    (changed / METADATA).write_text("Name: torch\nVersion: 3\n")
    (changed / "var/lib/dpkg/status").write_text(STATUS.format(5) + "\n")
    done = diff(old, write(changed.with_suffix(".sif"), pack(changed, is_system=True)))
    assert done.returncode == 1
    assert "\x1b" not in done.stdout
    lines = done.stdout.splitlines()
    assert lines[lines.index("packages: 1 changed") + 1] == "  ~ python torch 2 -> 3"
    assert "  ~ /evil\\n\\x1b[2J\\xff name\\\\ R 1 644 0 0 9 9 (4 bytes): contents" in lines


@pytest.fixture
def layered(tmp_path: Path) -> list[Path]:
    """Make two layered images with the same base and other layers over it."""
    base = pack(tree(tmp_path / "base"), is_system=True)
    results = []
    for number in (1, 2):
        top = tmp_path / f"{number}" / "top"
        (top / "opt/sifwright").mkdir(parents=True)
        own = {**PLAN, "id": f"top {number}"}
        (top / "opt/sifwright/plan.json").write_text(json.dumps(own))
        (top / "opt" / "thing").write_text(f"thing {number}")
        os.mknod(top / "same", 0o20644, os.makedev(0, 0))
        results.append(write(tmp_path / f"layered{number}.sif", base, pack(top)))
    return results


def test_layers(layered: Sequence[Path], old: Path) -> None:
    document = json.loads(diff(*layered, "--json").stdout)
    assert document["files"]["layers"] == {"top": {"added": 0, "removed": 0, "changed": 2}}
    assert [entry["path"] for entry in document["files"]["changed"]["largest"]] == [
        "opt/sifwright/plan.json",
        "opt/thing",
    ]
    assert [document[side]["plan"] for side in ("old", "new")] == ["top 1", "top 2"]
    assert [len(entry["layers"]) for entry in document["sizes"]] == [2, 2]
    done = diff(old, layered[0], "--json")
    document = json.loads(done.stdout)["files"]
    assert [entry["path"] for entry in document["removed"]["largest"]] == ["same"]
    assert [entry["path"] for entry in document["added"]["largest"]] == ["opt/thing"]
    assert document["changed"]["count"] == 1


def test_equal_layers_are_not_read(
    layered: Sequence[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    from sifwright.report.diff import trees  # noqa: PLC0415

    asked: list[Collection[bytes]] = []
    real = LayerStack.digests

    def digests(stack: LayerStack, paths: Collection[bytes]) -> dict[bytes, str]:
        asked.append(paths)
        return real(stack, paths)

    monkeypatch.setattr(LayerStack, "digests", digests)
    stacks = [LayerStack.of(path) for path in layered]
    assert trees.files_that_differ(stacks[0], stacks[1]) == {
        b"opt/thing",
        b"opt/sifwright/plan.json",
    }
    assert asked == [{b"opt/thing", b"opt/sifwright/plan.json"}] * 2
    assert trees.files_that_differ(stacks[0], stacks[0]) == set()
    assert len(asked) == 2


def test_against_a_plan(old: Path, tmp_path: Path) -> None:
    other = {**PLAN, "steps": [*PLAN["steps"], {"layer": "more", "id": "2", "options": {}}]}
    (tmp_path / "plan.json").write_text(json.dumps(other))
    done = diff(old, tmp_path / "plan.json")
    assert done.returncode == 1
    assert done.stdout.splitlines()[2:] == ["+ layer more", "they differ"]


def test_an_image_of_others(old: Path, changed: Path) -> None:
    (changed / "opt/sifwright/plan.json").write_text("{")
    new = write(changed.with_suffix(".sif"), pack(changed, is_system=True))
    done = diff(old, new)
    assert (done.returncode, done.stderr) == (1, "")
    assert "note: " in done.stdout
    assert "is no image of sifwright" in done.stdout
    assert "files: 1 changed" in done.stdout
