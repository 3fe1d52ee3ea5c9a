"""The layer python-packages with a lock: pip takes the locked files, and the build compares."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pip
import pytest

from tests.conftest import ROOT, run
from tests.servers import sha256
from tests.unit.wheels import Index, make_wheel, serve_index

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Iterator

LAYER = ROOT / "defs" / "layers" / "python-packages"


@dataclass(frozen=True, kw_only=True)
class Environment:
    """A virtual environment with pip, and an index that has toy, which needs part, and part."""

    folder: Path
    index: Index

    def install(self, locked: str, requirements: str = "") -> subprocess.CompletedProcess[str]:
        """Run install.sh; by default it installs what `locked` names."""
        files = self.folder / "files"
        (files / "locked.txt").write_text(locked)
        lines = requirements or "\n".join(map(self.hashed, locked.splitlines()))
        (files / "requirements.txt").write_text(lines)
        places = ("PIP_", "PYTHON", "VIRTUAL_ENV", "CONDA")
        env = {key: value for key, value in os.environ.items() if not key.startswith(places)}
        env |= {
            "PATH": f"{self.folder}/venv/bin:/usr/bin:/bin",
            "INSTALL_PREFIX": str(self.folder / "prefix"),
            "PIP_CONFIG_FILE": os.devnull,
            "PIP_INDEX_URL": self.index.url,
            "PIP_NO_CACHE_DIR": "1",
            "CONDA_PREFIX": str(self.folder / "conda"),
        }
        return run(["bash", LAYER / "install.sh"], cwd=self.folder, env=env)

    def hashed(self, line: str) -> str:
        name = line.partition(";")[0].replace("==", "-").strip()
        return f"{line} --hash=sha256:{self.sha256(name)}"

    def sha256(self, name: str) -> str:
        (data,) = (
            body
            for path, body in self.index.files.items()
            if path.endswith(f"/{name}-py3-none-any.whl")
        )
        return sha256(data)


@pytest.fixture
def environment(tmp_path: Path) -> Iterator[Environment]:
    venv_folder = run([sys.executable, "-m", "venv", "--without-pip", tmp_path / "venv"])
    assert venv_folder.returncode == 0, venv_folder.stderr
    (packages,) = (tmp_path / "venv").glob("lib/python3*/site-packages")
    (packages / "pip").symlink_to(Path(pip.__file__).parent)
    # Without this file, the folder would go with its last package, though it also links to pip.
    (packages / "other.py").touch()
    (tmp_path / "files").mkdir()
    (tmp_path / "files/compare_with_lock.py").symlink_to(LAYER / "files/compare_with_lock.py")
    with serve_index() as index:
        for version in ("1.0", "2.0"):
            index.add("toy", version, ("part",))
            index.add("part", version)
        yield Environment(folder=tmp_path, index=index)


def test_the_locked_files_and_no_others(environment: Environment) -> None:
    """Install no other release of part, which toy needs, and which does not matter."""
    done = environment.install('toy==1.0\npart==1.0 ; python_version < "3"\n')
    assert done.returncode == 0, done.stdout + done.stderr
    assert environment.index.wheels == ["toy-1.0-py3-none-any.whl"]
    kept = environment.folder / "prefix/sifwright/python-packages"
    assert (kept / "locked.txt").read_text().startswith("toy==1.0")

    # A package from below in another version is replaced, and named by pip.
    done = environment.install("toy==2.0\npart==2.0\n")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Successfully installed part-2.0 toy-2.0" in done.stdout


def test_another_file_with_the_same_name(environment: Environment) -> None:
    right = environment.hashed("toy==1.0")
    path = "/simple/toy/toy-1.0-py3-none-any.whl"
    environment.index.files["/simple/toy/"] = b'<a href="toy-1.0-py3-none-any.whl">toy</a>'
    environment.index.files[path] = make_wheel("toy", "1.0", ("evil",))
    done = environment.install("toy==1.0\n", right)
    assert done.returncode == 1
    assert "DO NOT MATCH THE HASHES" in done.stderr
    done = environment.install("toy==1.0\n", "toy==1.0")
    assert "Hashes are required in --require-hashes mode" in done.stderr


def test_packages_outside_of_the_lock_are_refused(environment: Environment) -> None:
    """Compare by the build itself, as pip does not."""
    two = f"{environment.hashed('toy==1.0')}\n{environment.hashed('part==1.0')}\n"
    done = environment.install("toy==2.0\nmissing==1.0\nconda a-1-0\n", two)
    assert done.returncode == 1
    assert done.stderr.splitlines()[-5:] == [
        "what is installed is not what the lock has:",
        "missing is missing, the lock has ==1.0",
        "toy is 1.0, the lock has ==2.0",
        "part was None, is 1.0, and is not in the lock",
        "conda: a-1-0 is missing",
    ]
