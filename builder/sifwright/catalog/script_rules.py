"""Refuse scripts and values that a definition file cannot carry."""

import re
from collections.abc import Iterator

from sifwright.errors import Problem, quoted

DELIMITER = "SIFWRIGHT_EOF"
# Apptainer reads sections of a definition file up to 64 KiB, and a section holds many values.
MAX_TEXT = 4096
# In Apptainer 1.4.5, any line with % as its first printing character starts a section. This holds
# in here-documents as well. {{ name }} is replaced as a build argument, line breaks included.
SECTION = re.compile(r"^[^\S\n]*%", re.MULTILINE)
BUILD_ARGUMENT = re.compile(r"\{\{\s*\w+\s*\}\}")
_STRICT = re.compile(r"^set -euo pipefail\r?$", re.MULTILINE)


def script_problems(data: bytes, file: str) -> Iterator[Problem]:
    """Yield what is wrong with the text of install.sh or test.sh."""
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        yield Problem(where=file, what=f"not UTF-8 text (byte {error.start})", fix="Save as UTF-8.")
        return
    for pattern, message, fix in HAZARDS:
        for match in pattern.finditer(text):
            line = text.count("\n", 0, match.start()) + 1
            yield Problem(where=f"{file}:{line}", what=message, fix=fix)
    if not _STRICT.search(text):
        fix = "Put 'set -euo pipefail' on a line of its own near the top."
        yield Problem(where=file, what="the script does not stop at its first error", fix=fix)
    if not text.endswith("\n"):
        message = "the last line has no end"
        yield Problem(where=file, what=message, fix="End the file with a newline.")


def refuse_text(value: str) -> Problem | None:
    """Say why a value cannot stand in a line of a definition file, or nothing if it can."""
    # A line break could open a section of the definition file, even if quoted for the shell.
    if not value.isprintable():
        message = f"{quoted(value)} holds a line break or another character that cannot be printed"
        return Problem(what=message, fix="Use one line of printable text.")
    if BUILD_ARGUMENT.search(value):
        message = f"{quoted(value)} holds {{{{ }}}}, which Apptainer replaces as a build argument"
        return Problem(what=message, fix="Leave the double braces out.")
    if len(value) > MAX_TEXT:
        message = f"{quoted(value)} is longer than {MAX_TEXT} characters"
        return Problem(what=message, fix="Put it into a file of the layer.")
    return None


# Patterns of text that a definition file would change, each with message and fix.
HAZARDS = (
    (
        SECTION,
        "a line that starts with '%' opens a section of the definition file",
        "Put something before the '%', for example printf '%s' with the text as an argument.",
    ),
    (
        BUILD_ARGUMENT,
        "Apptainer replaces {{ name }} in a definition file",
        "Write the braces apart, for example '{''{ name }}', or put the text into files/.",
    ),
    (
        re.compile(rf"^{DELIMITER}$", re.MULTILINE),
        f"a line '{DELIMITER}' ends the here-document that carries the script",
        "Use another word.",
    ),
    (
        re.compile(r"[\r\x00].*", re.DOTALL),  # to the end: one finding for the whole file
        "a carriage return or NUL byte",
        "Save the script with Unix line ends.",
    ),
)
