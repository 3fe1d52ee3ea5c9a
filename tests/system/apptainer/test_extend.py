"""`sifwright extend` with the real image: packages on top, their test, and an edit of the file."""

from __future__ import annotations

import hashlib
import json
import os
import secrets
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from sifwright.host.network import pip_settings
from tests.conftest import run, sifwright
from tests.system.apptainer.toys import succeeded
from tests.unit.wheels import Index, serve_index

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Iterator
    from pathlib import Path

KEPT = "/opt/sifwright/python-packages"


@dataclass(frozen=True, kw_only=True)
class Bench:
    folder: Path
    index: Index

    @property
    def sif(self) -> Path:
        return self.folder / "local" / "mine" / "image.sif"

    def extend(
        self, text: str, *words: str, name: str = "r.txt"
    ) -> subprocess.CompletedProcess[str]:
        file = self.folder / name
        file.write_text(text)
        others = pip_settings.settings().get("extra-index-url", "")
        env = {**os.environ, "PIP_EXTRA_INDEX_URL": f"{others} {self.index.url}".strip()}
        option = "--requirements" if name == "r.txt" else "--lock"
        options = ("--name", "mine", "--output", self.folder, option, file)
        return sifwright("extend", "local", *options, *words, env=env)

    def sha256(self, name: str) -> str:
        (data,) = (body for path, body in self.index.files.items() if path.endswith(f"/{name}"))
        return hashlib.sha256(data).hexdigest()

    def execute(self, engine: str, *command: str) -> str:
        flags = ["--containall", "--no-home"]
        return succeeded(run([engine, "--quiet", "exec", *flags, self.sif, *command])).stdout


@pytest.fixture
def bench(image: Path, tmp_path: Path) -> Iterator[Bench]:
    """Extend on the steps of the image of site local, which are cached by then."""
    assert image.exists()
    with serve_index() as index:
        yield Bench(folder=tmp_path, index=index)


@pytest.mark.build
@pytest.mark.builds("python-packages", by="make test-all", depth="ran on CPUs")
def test_packages_on_top(bench: Bench, engine: str) -> None:
    for version in ("1.0", "2.0"):
        bench.index.add("toy", version, ("part<9",))
        bench.index.add("part", version)
    (bench.folder / "held.txt").write_text("part<2\n")
    built = succeeded(bench.extend("toy==1.0\n-c held.txt\n"))
    assert "test python-packages     done" in built.stdout
    versions = "import toy, part, torch; print(toy.version, part.version, torch.__version__)"
    assert bench.execute(engine, "python", "-c", versions) == "1.0 1.0 2.13.0+cpu\n"
    record = json.loads(bench.sif.with_name("record.json").read_text())
    assert record["plan"]["image"] == "mine"

    # A line more runs one step and one test; with a hash, all are compared.
    # The random word makes it new to the cache, also after an earlier run of this test.
    again = f"--only-binary=never-{secrets.token_hex(8)}\n" + "".join(
        f"{name}==2.0 --hash=sha256:{bench.sha256(f'{name}-2.0-py3-none-any.whl')}\n"
        for name in ("toy", "part")
    )
    plan = bench.extend(again, "--dry-run").stdout
    assert "1 of 6 steps will run" in plan
    assert "files/requirements.txt: " in plan
    built = succeeded(bench.extend(again, "--tests", "untested"))
    assert "requirements.txt: - toy==1.0\n" in built.stdout
    assert "test python-packages     done" in built.stdout
    assert "test torch-extras" not in built.stdout
    assert bench.execute(engine, "python", "-c", versions) == "2.0 2.0 2.13.0+cpu\n"
    assert bench.execute(engine, "cat", f"{KEPT}/requirements.txt") == again

    built = bench.extend(f"toy==2.0 --hash=sha256:{'0' * 64}\n", "--tests", "untested")
    assert built.returncode == 6
    assert "DO NOT MATCH THE HASHES" in built.stdout + built.stderr
    assert bench.execute(engine, "python", "-c", versions) == "2.0 2.0 2.13.0+cpu\n"


@pytest.mark.build
def test_exactly_what_is_locked(bench: Bench, engine: str) -> None:
    """Install from the addresses in the lock; the image's torch stays."""
    name = bench.index.add("toy", "1.0")
    text = 'lock-version = "1.0"\ncreated-by = "test"\n'
    for package, version, wheel, sha256 in (
        ("torch", "2.13.0", "torch-2.13.0-py3-none-any.whl", "0" * 64),
        ("toy", "1.0", name, bench.sha256(name)),
    ):
        url = f"{bench.index.url}/{package}/{wheel}"
        text += f'[[packages]]\nname = "{package}"\nversion = "{version}"\nindex = "{url}"\n'
        text += f'wheels = [{{ url = "{url}", hashes = {{ sha256 = "{sha256}" }} }}]\n'
    built = succeeded(bench.extend(text, "--tests", "untested", name="pylock.toml"))
    assert "the image keeps its own torch 2.13.0+cpu" in built.stdout
    assert bench.execute(engine, "cat", f"{KEPT}/locked.txt") == "toy==1.0\n"
    versions = "import toy, torch; print(toy.version, torch.__version__)"
    assert bench.execute(engine, "python", "-c", versions) == "1.0 2.13.0+cpu\n"


@pytest.mark.build
def test_a_package_in_conflict_with_others(bench: Bench) -> None:
    """Require an older sympy than torch needs."""
    bench.index.add("sympy", "1.0")
    built = bench.extend("sympy==1.0\n", "--tests", "untested")
    assert built.returncode == 7, built.stdout + built.stderr
    assert "has requirement sympy" in built.stderr
    assert not bench.sif.exists()
