"""Processors that this machine can emulate, and their registration with Linux."""

import os
from pathlib import Path

import pytest

from sifwright.catalog.model import Catalog, LayerFile
from sifwright.cli.options import emulation
from sifwright.errors import BuildError, UsageError
from sifwright.host.emulation import binfmt, emulate
from sifwright.make_image.test_image.check_processor import refuse_other_processor
from sifwright.plan.resolve import resolve
from sifwright.system import ids
from sifwright.system.progress import Progress
from tests.unit.sifs import squashfs_of, write_sif

# Entry that Linux 6.18 showed after the line of `binfmt.line` was written.
ENTRY = """\
enabled
interpreter /usr/bin/qemu-aarch64-static
flags: OCF
offset 0
magic 7f454c460201010000000000000000000200b700
mask ffffffffffffff00fffffffffffffffffeffffff
"""
STATIC, DYNAMIC = b"\x7fELF static", b"\x7fELF /lib64/ld-linux-x86-64.so.2"


def test_the_line_for_the_kernel() -> None:
    fields = binfmt.line("aarch64", "/opt/qemu").decode().split(":")
    magic, mask = (bytes.fromhex(field.replace("\\x", "")) for field in fields[4:6])
    assert f"magic {magic.hex()}\nmask {mask.hex()}\n" in ENTRY
    assert fields[1:4] == ["sifwright-aarch64", "M", ""]
    assert fields[6:] == ["/opt/qemu", "OCF"]


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        (ENTRY, True),
        (ENTRY.replace("enabled", "disabled"), False),
        (ENTRY.replace("OCF", "OC"), False),
        (ENTRY.replace("0200b7", "02003e"), False),
    ],
)
def test_an_emulator_of_the_machine(
    entry: str, expected: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Require the flag F: without it, a container would need the emulator in its own tree."""
    (tmp_path / "qemu-aarch64").write_text(entry)
    (tmp_path / "status").write_text("enabled\n")
    monkeypatch.setattr(binfmt, "REGISTER", tmp_path)
    assert binfmt.registers("aarch64") is expected


@pytest.fixture
def qemu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Put a static emulator on the PATH of an x86_64 machine of today."""
    program = tmp_path / "qemu-aarch64-static"
    program.write_bytes(STATIC)
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(emulate, "search_path", lambda: str(tmp_path))
    monkeypatch.setattr(binfmt, "search_path", lambda: str(tmp_path))
    monkeypatch.setattr(binfmt, "kernel", lambda: (6, 12))
    monkeypatch.setattr(ids, "needs_fakeroot", lambda: True)
    monkeypatch.setenv("SIFWRIGHT_IDS", "many")
    return program


def test_needs_of_emulation(qemu: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert emulate.problem("aarch64") == ""
    monkeypatch.setattr(ids, "needs_fakeroot", lambda: False)
    assert emulate.problem("aarch64").endswith("build as an ordinary user")
    monkeypatch.setattr(ids, "needs_fakeroot", lambda: True)
    monkeypatch.setenv("SIFWRIGHT_IDS", "one")
    assert emulate.problem("aarch64") == "it takes subordinate ids"
    monkeypatch.setattr(binfmt, "kernel", lambda: (6, 6))
    assert emulate.problem("aarch64").endswith(
        "no binfmt_misc in user namespaces; 6.7 is the first"
    )
    qemu.write_bytes(DYNAMIC)
    assert emulate.problem("aarch64").startswith("no static qemu-aarch64 is installed")


@pytest.mark.usefixtures("qemu")
def test_layers_that_compile_are_refused(real: Catalog, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "uname", lambda: type("U", (), {"machine": "x86_64"}))
    plan = resolve(real, "isambard-ai", "pytorch", [])
    with pytest.raises(UsageError) as caught:
        emulation.start(plan, Progress(), compilers=False)
    text = str(caught.value)
    assert "layer 'libfabric': it compiles, which takes hours emulated" in text
    assert "Add --emulate-compilers, or build on a machine with aarch64 processors." in text
    assert "pytorch-wheel" not in text


def test_each_image_of_a_command_has_its_processor(
    real: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Start the program again for the first image; the second is for this machine's processor."""
    for name, value in emulate.environment("aarch64").items():
        monkeypatch.setenv(name, value)
    plan = resolve(real, "local", "pytorch", [])
    emulation.start(plan, Progress(), compilers=False)
    assert os.environ["SIFWRIGHT_DEBIAN_ARCHITECTURE"] == "amd64"


def test_files_of_another_processor(tmp_path: Path) -> None:
    """Take a file for GPUs (e_machine 190) and a cut file for no programs of a processor."""
    head = b"\x7fELF\x02\x01\x01" + bytes(9) + b"\x03\x00"
    files = {
        "ours": head + b"\xb7\0",
        "foreign": head + b"\x3e\0",
        "gpu": head + b"\xbe\0",
        "cut": head,
    }
    data = squashfs_of(*(LayerFile(path=f"/{name}", data=text) for name, text in files.items()))
    sif = tmp_path / "image.sif"
    write_sif(sif, data)
    with pytest.raises(BuildError) as caught:
        refuse_other_processor(sif, "aarch64")
    assert [problem.what for problem in caught.value.problems] == [
        "is for x86_64 processors, the site has aarch64"
    ]
    assert caught.value.problems[0].where == "layer 'system': '/foreign'"
    with pytest.raises(BuildError, match="is for aarch64 processors"):
        refuse_other_processor(sif, "x86_64")
