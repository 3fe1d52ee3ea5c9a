"""Refused constructs of Dockerfiles, with reasons: docs/reference/recipe-constructs.md."""

import re

from sifwright.recipe_import import shell_words
from sifwright.recipe_import.dockerfile.instructions import Instruction
from sifwright.recipe_import.draft import Findings

# Instruction -> what is said of it, and what to do.
REFUSED = {
    "ONBUILD": ("ONBUILD is for images built on this one", "Leave it out."),
}
KNOWN = {
    *("ADD", "ARG", "CMD", "COPY", "ENTRYPOINT", "ENV", "EXPOSE", "FROM", "HEALTHCHECK", "LABEL"),
    *("MAINTAINER", "ONBUILD", "RUN", "SHELL", "STOPSIGNAL", "USER", "VOLUME", "WORKDIR"),
}
# The shell's own '[' has a blank behind it, and no words with commas.
_LIST = re.compile(r"""\[(?:[^\s\[]|\s*(?:"[^"]*"|'[^']*')\s*,)""")
_HEREDOC = re.compile(r"""(?<!<)<<-?\s*["']?[A-Za-z_]""")
_OWN = {"root", "0", "root:root", "0:0"}
_FLAGS = {
    "RUN": {
        "network": "steps have the network of the machine",
        "security": "steps have no more rights than their user",
    },
    "COPY": {
        "from": "it takes files of another stage or image",
        "parents": "it keeps the folders of its sources",
        "exclude": "it leaves files out",
    },
    "ADD": {"keep-git-dir": "it clones a repository", "exclude": "it leaves files out"},
}
_FIXES = {
    "from": "Build it with docker, and start from that (docs/how-to/base-image.md)."
    " Apptainer 1.5 makes a SIF of the recipe: apptainer build IMAGE.sif buildkit:FOLDER.",
}


def refused_flags(item: Instruction, findings: Findings) -> bool:
    """Return whether an instruction has a refused form, and add it to the findings."""
    before = len(findings.problems)
    for name, value in item.flags:
        _flag(item, name, value, findings)
    if item.name in {"RUN", "COPY", "ADD"} and (why := _doubtful(item)):
        message = f"{item.name} with a here-document (<<) {why}"
        findings.refuse(item.line, message, "Put the text into a file, and COPY it.")
    if not item.text:
        findings.refuse(item.line, f"{item.name} of nothing", "Complete it, or take it out.")
    if item.name == "RUN" and _LIST.match(item.text) and shell_words.json_words(item.text) is None:
        message = "RUN [ … is not a list of words in double quotes, so a shell would run '['"
        findings.refuse(item.line, message, "Mend the quotes.")
    return len(findings.problems) > before


def _doubtful(item: Instruction) -> str:
    """Say why here-documents cannot be carried; '' if they can, or if there are none."""
    if len(_HEREDOC.findall(item.text)) != len(item.documents):
        return "that has no end, or is no word of its own"
    if item.documents and item.name != "RUN":
        if len(item.documents) > 1 or len(item.text.split()) != 2:  # noqa: PLR2004  # and a target
            return "beside another source"
        if item.documents[0].is_expanded:
            return "in which the builder fills in values: quote its name, as in <<'EOF'"
    return ""


def _flag(item: Instruction, name: str, value: str, findings: Findings) -> None:
    flag = f"{item.name} --{name}"
    if name in _FLAGS.get(item.name, {}):
        why = _FLAGS[item.name][name]
        fix = _FIXES.get(name, "Take the flag out.")
        findings.refuse(item.line, f"{flag}: {why}", fix)
    elif name == "chown" and value not in _OWN:
        message = f"{flag}={value}: files of an image belong to root here"
        findings.refuse(item.line, message, "Change the owner in a RUN, if it matters.")
    elif name == "chmod" and not re.fullmatch(r"[0-7]{3,4}", value):
        findings.refuse(item.line, f"{flag}={value}", "Give the mode as a number, such as 755.")
    elif name not in {"chown", "chmod", "link", "checksum", "platform"} and flag != "RUN --mount":
        findings.refuse(item.line, f"{flag} is not known here", "Take the flag out.")
