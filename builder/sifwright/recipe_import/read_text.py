"""Read a recipe's file, or refuse it: it may be anything."""

from pathlib import Path

from sifwright.errors import UsageError
from sifwright.system import small_file

MAX_BYTES = 1 << 20
_FIX = "Name a Dockerfile or a definition file."


def read_recipe_text(path: Path) -> str:
    """Return the text, with Unix line ends; raises `UsageError` with file and line."""
    data = _bytes(path)
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        message = "not UTF-8 text"
        raise UsageError.of(message, where=f"{path}:{line}", fix="Save it as UTF-8.") from None
    if not text.strip():
        raise UsageError.of("an empty file", where=str(path), fix=_FIX)
    for number, content in enumerate(text.split("\n"), start=1):
        _refuse_control(f"{path}:{number}", content)
    return text


def _bytes(path: Path) -> bytes:
    try:
        return small_file.read_bytes(path, MAX_BYTES)
    except small_file.NotSmallError as error:
        raise UsageError.of(error.strerror, where=str(path), fix=_FIX) from None
    except OSError as error:
        message = f"cannot be read: {error.strerror}"
        raise UsageError.of(message, where=str(path), fix=_FIX) from None
    except ValueError:
        # The name has a NUL byte.
        raise UsageError.of("not the name of a file", where=ascii(str(path)), fix=_FIX) from None


def _refuse_control(where: str, line: str) -> None:
    # A carriage return ends lines of files from Windows; Docker takes them so.
    text = line.removesuffix("\r").replace("\t", " ")
    character = next((c for c in text if not c.isprintable() and not c.isspace()), "")
    if character or any(c in text for c in "\r\v\f\x1c\x1d\x1e\x85\u2028\u2029"):
        message = (
            f"a character that cannot be printed: {(character or 'a line end of another kind')!a}"
        )
        fix = "Take it out: what a reader does not see may be run."
        raise UsageError.of(message, where=where, fix=fix)
