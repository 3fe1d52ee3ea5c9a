"""Split a definition file as Apptainer does, and read what its sections carry."""

import re

SECTION = re.compile(r"^\s*%(\w+)")


def sections(text: str) -> dict[str, str]:
    """Return the header under "", then each section's text.

    This follows Apptainer 1.4's scanner. A line whose first word starts with % opens a section,
    wherever it is. A second section of a name is added to the first.
    """
    texts = {"": ""}
    name = ""
    for line in text.split("\n"):
        if match := SECTION.match(line.removesuffix("\r")):
            name = match.group(1)
            texts.setdefault(name, "")
        else:
            texts[name] += line + "\n"
    return texts


def labels(text: str) -> dict[str, str]:
    """Split key and value at the first blank; blanks around them go."""
    lines = (line.strip() for line in sections(text)["labels"].split("\n"))
    words = (line.split(" ", 1) for line in lines if line and not line.startswith("#"))
    return {key: value.strip() for key, value in words}
