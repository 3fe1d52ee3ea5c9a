"""Split a definition file as Apptainer does, and read what its sections carry."""

import re

SECTION = re.compile(r"^\s*%(\w+)")


def sections(text: str) -> dict[str, str]:
    """The header under "", then each section's text.

    As Apptainer 1.4's scanner: a line whose first word starts with % opens a section, wherever it
    stands; a second section of a name is added to the first.
    """
    found = {"": ""}
    name = ""
    for line in text.split("\n"):
        if match := SECTION.match(line.removesuffix("\r")):
            name = match.group(1)
            found.setdefault(name, "")
        else:
            found[name] += line + "\n"
    return found


def labels(text: str) -> dict[str, str]:
    """Key and value are parted by the first blank; blanks around them go."""
    lines = (line.strip() for line in sections(text)["labels"].split("\n"))
    words = (line.split(" ", 1) for line in lines if line and not line.startswith("#"))
    return {key: value.strip() for key, value in words}


def here_documents(script: str) -> dict[str, str]:
    """Path and text of all files that a script writes as plain text."""
    pattern = r"^cat >(\S+) <<'SIFWRIGHT_EOF'\n(.*?)^SIFWRIGHT_EOF$"
    return dict(re.findall(pattern, script, re.MULTILINE | re.DOTALL))
