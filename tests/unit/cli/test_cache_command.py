"""`sifwright cache`: what is there, whether it is whole, and making room."""

from __future__ import annotations

import json
import os
import re
import sys
import time
from datetime import datetime
from typing import TYPE_CHECKING

import pytest

from sifwright.cli.commands.cache import size
from sifwright.errors import UsageError
from sifwright.make_image.cache import leases
from sifwright.make_image.cache.store import Store
from sifwright.make_image.downloads.fetch_file import CONTENT, open_store
from tests.conftest import run
from tests.unit.stores import PACKED, add, contents, key_of, spoil

if TYPE_CHECKING:
    import subprocess
    from pathlib import Path

    from sifwright.make_image.cache.store import CacheEntry
    from tests.unit.conftest import Cli

KEYS = [key_of(number) for number in range(3)]
SIZE = sum(map(len, contents(KEYS[0]).values()))


@pytest.fixture
def empty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Store:
    monkeypatch.setenv("SIFWRIGHT_CACHE", str(tmp_path / "my cache"))
    return Store.open()


@pytest.fixture
def store(empty: Store) -> Store:
    """Make three entries: made a day ago, used an hour, two and three hours ago."""
    for hours, key in enumerate(KEYS, 1):
        layer = "[red]base[/]" if hours == 1 else "python"
        entry = add(empty, key, layer=layer, made="2020-01-01T00:00:00+00:00")
        used = time.time() - 3600 * hours
        os.utime(entry.file("manifest.json"), (used, used))
    return empty


def test_list(store: Store, run_cli: Cli) -> None:
    result = run_cli("cache", "list")
    assert (result.code, result.err) == (0, "")
    head, *lines, total = result.out.splitlines()
    assert re.split(r"  +", head) == ["what", "made for", "size", "age", "last used", "key"]
    assert total == f"3 steps (7.9 kB) in {store.root.parent}"
    cells = [re.split(r"  +", line) for line in lines]
    assert [line[-1] for line in cells] == [key[:12] for key in KEYS]
    assert cells[0][:3] == ["[red]base[/]", "here/small", "2.6 kB"]
    assert re.fullmatch(r"\d{4,} d", cells[0][3])
    assert [line[4] for line in cells] == ["1 h ago", "2 h ago", "3 h ago"]


# Root may write what nobody has the right to, but not on what is mounted for reading only.
_READ_ONLY = """
mount --bind "$1" "$1"; mount -o remount,bind,ro "$1"
! touch "$1/x" 2>/dev/null; "${@:2}"
"""


@pytest.mark.all
@pytest.mark.skipif(os.geteuid() != 0, reason="mounts a folder for reading only")
def test_a_cache_that_cannot_be_written(store: Store) -> None:
    folder = store.root.parent
    words = (sys.executable, "-m", "sifwright", "cache")

    def ask(*more: str) -> subprocess.CompletedProcess[str]:
        alone = ("unshare", "--mount", "bash", "-euc", _READ_ONLY, "-", folder)
        return run([*alone, *words, *more])

    listed = ask("list", "--json")
    assert (listed.returncode, listed.stderr) == (0, "")
    assert [step["key"] for step in json.loads(listed.stdout)["steps"]] == KEYS
    verified = ask("verify")
    assert (verified.returncode, verified.stderr) == (0, "")
    pruned = ask("prune", "--keep-size", "0")
    assert pruned.returncode == 5
    assert "Read-only file system" in pruned.stderr


def test_nothing_is_made_to_list_nothing(
    run_cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SIFWRIGHT_CACHE", str(tmp_path / "none"))
    assert run_cli("cache", "list").out == f"0 steps (0 bytes) in {tmp_path}/none\n"
    assert not (tmp_path / "none").exists()


def is_ago(text: str, seconds: float) -> bool:
    return abs(time.time() - seconds - datetime.fromisoformat(text).timestamp()) < 600


def test_list_as_json(store: Store, run_cli: Cli) -> None:
    document = json.loads(run_cli("cache", "list", "--json").out)
    assert document["folder"] == str(store.root.parent)
    assert document["bytes"] == 3 * SIZE
    step = document["steps"][1]
    assert is_ago(step.pop("used"), 7200)
    assert step == {
        "layer": "python",
        "site": "here",
        "image": "small",
        "made": "2020-01-01T00:00:00+00:00",
        "bytes": SIZE,
        "key": KEYS[1],
    }


REMOVE = "'sifwright cache prune --keep-size 0' removes all results."


def test_verify(store: Store, run_cli: Cli) -> None:
    result = run_cli("cache", "verify")
    assert (result.code, result.out, result.err) == (0, "3 steps read, 0 damaged\n", "")
    assert json.loads(run_cli("cache", "verify", "--json").out) == {"bad": []}
    path = store.root / "entries" / KEYS[1] / PACKED
    spoil(path, path.read_bytes()[::-1])
    result = run_cli("cache", "verify")
    assert (result.code, result.out) == (7, "3 steps read, 1 damaged\n")
    reason = f"{PACKED} has other bytes than were stored"
    assert result.err == (
        f"sifwright: step {KEYS[1]}: {reason}\n"
        f"    The next build that needs it drops it and runs the step again; {REMOVE}\n"
    )
    result = run_cli("cache", "verify", "--json")
    bad = [{"kind": "step", "key": KEYS[1], "reason": reason}]
    assert (result.code, json.loads(result.out)["bad"]) == (7, bad)


def test_prune(store: Store, run_cli: Cli) -> None:
    words = ("cache", "prune", "--keep-size", "3k")
    output = run_cli(*words, "--dry-run").out
    assert output.endswith("2 steps (5.3 kB) would be removed, 2.6 kB kept\n")
    assert [line.split()[-1] for line in output.splitlines()[1:3]] == [KEYS[2][:12], KEYS[1][:12]]
    assert len(store.entries()) == 3
    assert run_cli(*words).out == output.replace("would be removed", "removed")
    assert [entry.key for entry in store.entries()] == KEYS[:1]
    assert run_cli(*words).out == "0 steps (0 bytes) removed, 2.6 kB kept\n"


def test_prune_says_what_is_in_use(store: Store, run_cli: Cli) -> None:
    with leases.lease(store, KEYS[1:]):
        output = run_cli("cache", "prune", "--keep-size", "0").out.splitlines()[-1]
        data = json.loads(run_cli("cache", "prune", "--keep-size", "0", "--json").out)
    expected = "1 step (2.6 kB) removed, 5.3 kB kept, of which in use: 2 steps (5.3 kB)"
    assert output == expected
    assert [entry["key"] for entry in data["in_use"]] == [KEYS[2], KEYS[1]]
    assert (data["removed"], data["kept_bytes"], data["dry_run"]) == ([], 2 * SIZE, False)


@pytest.fixture
def download(store: Store) -> CacheEntry:
    """Make a download beside the steps, used an hour and a half ago."""
    downloads = open_store()
    with downloads.folder() as folder:
        (folder / CONTENT).write_bytes(b"x" * 1000)
        entry, _ = downloads.put(key_of("wheel"), folder, {"name": "toy-1.0-py3-none-any.whl"})
    used = time.time() - 5400
    os.utime(entry.file("manifest.json"), (used, used))
    assert downloads.root.parent == store.root.parent
    return entry


def test_downloads_are_listed_and_counted(download: CacheEntry, run_cli: Cli) -> None:
    _, first, second, *_, total = run_cli("cache", "list").out.splitlines()
    assert re.split(r"  +", first)[-1] == KEYS[0][:12]
    cells = re.split(r"  +", second)
    assert (cells[:3], cells[-1]) == (
        ["toy-1.0-py3-none-any.whl", "any image", "1.0 kB"],
        download.key[:12],
    )
    assert total.startswith("3 steps and 1 download (8.9 kB) in ")
    document = json.loads(run_cli("cache", "list", "--json").out)
    assert document["bytes"] == 3 * SIZE + 1000
    (result,) = document["downloads"]
    assert is_ago(result.pop("used"), 5400)
    assert is_ago(result.pop("made"), 0)
    name = "toy-1.0-py3-none-any.whl"
    assert result == {"name": name, "bytes": 1000, "key": download.key}


def test_downloads_are_verified(download: CacheEntry, run_cli: Cli) -> None:
    spoil(download.file(CONTENT), b"y" * 1000)
    result = run_cli("cache", "verify")
    assert (result.code, result.out) == (7, "3 steps and 1 download read, 1 damaged\n")
    assert result.err == (
        f"sifwright: download {download.key}: {CONTENT} has other bytes than were stored\n"
        f"    The next build that needs it drops it and downloads it again; {REMOVE}\n"
    )


def test_the_least_recently_used_of_both_goes_first(download: CacheEntry, run_cli: Cli) -> None:
    words = ("cache", "prune", "--keep-size", str(SIZE + 500))
    output = run_cli(*words, "--dry-run").out.splitlines()
    order = [KEYS[2][:12], KEYS[1][:12], download.key[:12]]
    assert [line.split()[-1] for line in output[1:-1]] == order
    assert output[-1] == "2 steps and 1 download (6.3 kB) would be removed, 2.6 kB kept"
    assert open_store().peek(download.key)
    with leases.lease(open_store(), [download.key]):
        assert "in use: 1 download (1.0 kB)" in run_cli(*words).out
    assert open_store().peek(download.key)
    run_cli("cache", "prune", "--keep-size", "0")
    assert open_store().peek(download.key) is None


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("prune",), "cache prune needs --keep-size"),
        (("list", "--keep-size", "1G"), "go with cache prune only"),
        (("verify", "--dry-run"), "go with cache prune only"),
        (("prune", "--keep-size", "much"), "'much' is no size"),
        (("prune", "--keep-size=-1G"), "'-1G' is no size"),
    ],
)
def test_refused_words(empty: Store, run_cli: Cli, words: tuple[str, ...], message: str) -> None:
    result = run_cli("cache", *words)
    assert (result.code, result.out) == (2, "")
    assert message in result.err.splitlines()[0]
    assert result.err.splitlines()[1].startswith("    ")
    assert empty.entries() == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0", 0),
        ("4096", 4096),
        ("500M", 500_000_000),
        ("50G", 50_000_000_000),
        ("50GB", 50_000_000_000),
        ("50g", 50_000_000_000),
        ("50GiB", 50 << 30),
        ("1.5T", 1_500_000_000_000),
        ("0.1K", 100),
        ("2Ki", 2048),
        ("12B", 12),
    ],
)
def test_sizes(text: str, expected: int) -> None:
    assert size(text) == expected


@pytest.mark.parametrize(
    "text", ["", "G", "1 G", "-1", "1.G", ".5G", "1e9", "5X", "1iB", "²G", "1G\n", "9" * 99, "nan"]
)
def test_refused_sizes(text: str) -> None:
    with pytest.raises(UsageError, match="is no size"):
        size(text)
