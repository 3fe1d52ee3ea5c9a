"""Variables of the caller that enter the real image, row by row of run-scripts.md.

The rows of MPI are the tests of its layers, and that of PBS is the module's.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.conftest import run

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.image
SIMPLE, DISTRIBUTED = "conda-python-simple", "conda-python-distributed"
WORKER = """
import multiprocessing.connection as c, os, torch
class Numbers(torch.utils.data.Dataset):
    def __len__(self): return 2
    def __getitem__(self, number): return torch.tensor(number)
loaded = torch.utils.data.DataLoader(Numbers(), num_workers=1, multiprocessing_context="fork")
print(sum(map(int, loaded)), len(c.arbitrary_address("AF_UNIX")) < 108)
"""
CONTEXT = "import ssl; print(ssl.create_default_context().cert_store_stats()['x509_ca'] > 0)"


@dataclass(frozen=True, kw_only=True)
class Row:
    """A command in the container, its output, and the one line of the run script."""

    code: str
    output: str
    line: str = ""
    env: dict[str, str] = field(default_factory=dict)
    before: str = ""  # in the container, in bash
    script: str = SIMPLE
    status: int = 0


# `{work}` is the bound folder of the test, which `folder` fills.
ROWS = {
    "BASH_ENV": Row(
        env={"BASH_ENV": "{work}/startup"}, code="import os; print(os.getcwd())", output="{work}"
    ),
    "functions": Row(env={"BASH_FUNC_hash%%": "() { exit 3; }"}, code="print(1)", output="1"),
    "PYTHONPATH": Row(
        env={"PYTHONPATH": "{work}/host/lib/python3.11/site-packages:{work}/mine"},
        code="import numpy, mine; print(numpy.__file__.startswith('/opt/venv/'), mine.name)",
        output="True mine",
        line="dropped: '{work}/host/lib/python3.11/site-packages'",
    ),
    "home": Row(
        env={"PYTHONUSERBASE": "{work}/host"},
        code="import site, sys; print(site.ENABLE_USER_SITE, sys.flags.no_user_site)",
        output="False 1",
    ),
    "environment": Row(
        before="python -m venv --without-pip {work}/x; source {work}/x/bin/activate; ",
        code="import sys; print(sys.prefix)",
        output="/opt/venv",
        line="the active environment '{work}/x' is not used",
    ),
    "another WITH_CONDA": Row(
        before="python -m venv --without-pip {work}/x; "
        "export WITH_CONDA='source {work}/x/bin/activate'; ",
        code="import sys; print(sys.prefix)",
        output="{work}/x",
    ),
    "torch": Row(
        before="mkdir -p /user-software/venv/pytorch/bin; cd /user-software/venv/pytorch; "
        "ln -s $(readlink -f /opt/venv/bin/python) bin/python; "
        "mkdir -p lib/python3.11/site-packages/torch-99.dist-info; "
        "echo torch==2.13.0+cpu >constraints.txt; ",
        code="print(1)",
        output="1",
        line="have torch 99 instead of the image's torch==2.13.0+cpu",
    ),
    "certificates": Row(
        env={"SSL_CERT_FILE": "/no/ca.pem", "REQUESTS_CA_BUNDLE": "/no/ca.pem"},
        code=CONTEXT,
        output="True",
        line="SSL_CERT_FILE='/no/ca.pem', REQUESTS_CA_BUNDLE='/no/ca.pem'. Bind the path",
    ),
    "TMPDIR missing": Row(
        env={"TMPDIR": "/no/folder"},
        code="import os, tempfile; print('TMPDIR' in os.environ, tempfile.gettempdir())",
        output="False /tmp",
        line="TMPDIR='/no/folder'",
    ),
    "TMPDIR long": Row(env={"TMPDIR": "{work}/" + "x" * 119}, code=WORKER, output="1 True"),
    "TMPDIR read-only": Row(
        env={"TMPDIR": "/opt"},
        script=DISTRIBUTED,
        code="print(1)",
        output="",
        line="TMPDIR='/opt' cannot be written on",
        status=78,
    ),
    "extensions": Row(
        env={"TMPDIR": "{work}"},
        code="import os; print(os.environ['TORCH_EXTENSIONS_DIR'].rpartition('-')[0])",
        output=f"{{work}}/sifwright-compiled-{os.getuid()}",
    ),
    "MIG": Row(
        env={"CUDA_VISIBLE_DEVICES": "MIG-a,MIG-b", "SIFWRIGHT_VENDOR": "nvidia"},
        script=f"{DISTRIBUTED} --nproc-per-node 2",
        code="print(1)",
        output="",
        line="CUDA_VISIBLE_DEVICES='MIG-a,MIG-b'",
        status=78,
    ),
    "command": Row(
        script=f"{DISTRIBUTED} --nproc-per-node 2",
        code="import os; os.write(1, os.environ['WORLD_SIZE'].encode())",
        output="22",
    ),
}


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    numpy = tmp_path / "host" / "lib" / "python3.11" / "site-packages" / "numpy.py"
    numpy.parent.mkdir(parents=True)
    numpy.touch()
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "mine.py").write_text("name = 'mine'\n")
    (tmp_path / "startup").write_text("cd /; python() { exit 3; }\n")
    (tmp_path / ("x" * 119)).mkdir()
    (tmp_path / "software").mkdir()
    yield tmp_path
    for link in Path(f"/tmp/sifwright-short-{os.getuid()}").glob("*"):
        if link.readlink().is_relative_to(tmp_path):
            link.unlink()


@pytest.mark.parametrize("row", ROWS.values(), ids=ROWS)
def test_each_variable_is_decided(image: Path, engine: str, folder: Path, row: Row) -> None:
    def filled(text: str) -> str:
        return text.replace("{work}", str(folder))

    binds = ["--bind", str(folder), "--bind", f"{folder}/software:/user-software"]
    command = filled(row.before) + f'cd {folder}; exec {row.script} -c "$1"'
    words = [engine, "--quiet", "exec", "--no-home", *binds, str(image)]
    env = {name: filled(value) for name, value in row.env.items()}
    env |= {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    done = run([*words, "bash", "-p", "-c", command, "-", row.code], env=env)
    assert (done.returncode, done.stdout.strip()) == (row.status, filled(row.output)), done.stderr
    lines = done.stderr.splitlines()
    assert len(lines) == bool(row.line), done.stderr
    assert filled(row.line) in "".join(lines)
