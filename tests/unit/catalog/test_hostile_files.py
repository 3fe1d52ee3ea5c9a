"""R8 for files: any bytes under any name arrive as they are, or the catalog refuses them."""

import re
import subprocess
from contextlib import nullcontext
from pathlib import Path

import pytest

from sifwright.catalog.load_catalog import load_catalog
from sifwright.catalog.script_rules import BUILD_ARGUMENT, SECTION, refuse_text
from sifwright.errors import CatalogError
from sifwright.plan.resolve import resolve
from sifwright.render import shell
from sifwright.render.definition import definition
from tests.unit import deffile, hostile
from tests.unit.conftest import MACHINE, SHELLS, Shells, program

pytestmark = pytest.mark.all

FILES = 2000


def test_files(tmp_path: Path) -> None:
    """Carry any bytes, under any name that the catalog accepts; the mode too."""
    names = [name for name in map(_file_name, hostile.texts(hostile.SEED + 4, FILES)) if name]
    assert len(names) > 0.7 * FILES
    files = dict(zip(names, hostile.contents(hostile.SEED + 5, len(names)), strict=False))
    for number, name in enumerate(SHELLS):
        some = dict(list(files.items())[number :: len(SHELLS)])
        _check_files(tmp_path / f"it's $(here) {number}", some, program(name))
    assert len(list(tmp_path.iterdir())) == len(SHELLS), "a name or content has run something"


def _file_name(text: str) -> str:
    """Return a name of that text, or nothing if the catalog refuses it."""
    name = f"x{text.replace('/', '_')}".encode(errors="replace")[:200].decode(errors="ignore")
    return "" if refuse_text(text) else name


def _check_files(folder: Path, files: dict[str, bytes], dialect: str) -> None:
    folder.mkdir()
    script = "".join(
        shell.write_file(f"{folder}/{name}", data, executable=len(data) % 2 == 0)
        for name, data in files.items()
    )
    assert SECTION.search(script) is None
    assert BUILD_ARGUMENT.search(script) is None
    subprocess.run([dialect, "-e"], input=script.encode(), check=True, cwd=folder.parent)
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == files
    for name, data in files.items():
        assert (folder / name).stat().st_mode & 0o777 == (0o644 if len(data) % 2 else 0o755)


def test_large_files(project: Path, shells: Shells, tmp_path: Path) -> None:
    """Try files that take several sections of the definition file."""
    data = {"text": b"0123456\n" * 20_000, "noise": bytes(range(256)) * 500, "line": b"x" * 70_000}
    for name, content in data.items():
        (project / "defs/layers/tool/files" / name).write_bytes(content)
    plan = resolve(load_catalog(project / "defs", project), "here", "", [])
    post = deffile.sections(definition(plan, MACHINE))["post"]
    for name, content in data.items():
        pattern = rf"^(?:cat|base64 -d) >>?\S*/{name} <<'(\w+)'\n.*?^\1$"
        pieces = [match[0] for match in re.finditer(pattern, post, re.MULTILINE | re.DOTALL)]
        assert len(pieces) > 1
        script = "\n".join(pieces).replace("/.sifwright/layers/tool/files", str(tmp_path))
        assert shells.run("dash", f"{script}\n") == b""
        assert (tmp_path / name).read_bytes() == content


def test_names_of_files_through_the_catalog(project: Path) -> None:
    names = [
        f"x{text}".replace("/", "_") for text in hostile.texts(hostile.SEED + 6, 300, share=0.6)
    ]
    for name in names:
        path = project / "defs/layers/tool/files" / name
        try:
            path.touch()
        except (UnicodeEncodeError, ValueError, OSError):
            continue  # no file can have this name
        message = refuse_text(name)
        with pytest.raises(CatalogError, match="Rename") if message else nullcontext():
            load_catalog(project / "defs", project)
        path.unlink()
