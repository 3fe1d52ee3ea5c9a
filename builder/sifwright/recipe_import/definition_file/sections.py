"""A definition file as its header and sections, as Apptainer finds them."""

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from sifwright.catalog.schema import did_you_mean
from sifwright.recipe_import.dockerfile import docker_base
from sifwright.recipe_import.draft import Draft, Findings

_SECTION = re.compile(r"\s*%(\w*)(.*)")


@dataclass(frozen=True, kw_only=True, slots=True)
class Section:
    """`line` is that of the name; `text` begins on the next one."""

    name: str
    words: str
    line: int
    text: str

    def lines(self) -> Iterator[tuple[int, str]]:
        """Yield the numbered lines, without comments and blank lines."""
        for number, line in enumerate(self.text.split("\n"), start=self.line + 1):
            if line.strip() and not line.strip().startswith("#"):
                yield number, line.strip()


def header_lines(text: str) -> Iterator[tuple[int, str]]:
    """Yield the lines before the first section, without comments."""
    for number, line in enumerate(text.split("\n"), start=1):
        if _SECTION.fullmatch(line):
            return
        content = line.split("#", 1)[0].strip()
        if content:
            yield number, content


def sections(text: str) -> list[Section]:
    """Return the sections: any line with % as its first printing character opens one."""
    lines = text.split("\n")
    starts = [
        (number, match) for number, line in enumerate(lines) if (match := _SECTION.fullmatch(line))
    ]
    ends = [*(number for number, _ in starts), len(lines)][1:]
    return [
        Section(
            name=match[1].lower(),
            words=match[2].split("#", 1)[0].strip(),
            line=number + 1,
            text="\n".join(lines[number + 1 : end]),
        )
        for (number, match), end in zip(starts, ends, strict=True)
    ]


_JOINED = {"environment", "post", "runscript", "test"}


def joined(listed: list[Section]) -> list[Section]:
    """Return the sections; scripts of one name are one, as for Apptainer, with lines between."""
    by_key: dict[object, Section] = {}
    for section in listed:
        key = section.name if section.name in _JOINED else section.line
        first = by_key.setdefault(key, section)
        if first is not section:
            gap = section.line - first.line - first.text.count("\n")
            text = first.text + "\n" * gap + section.text
            by_key[key] = replace(first, words=section.words or first.words, text=text)
    return list(by_key.values())


# Bootstrap -> the further lines it may have, and whether it needs one of them.
_BOOTSTRAPS = {
    "docker": ("From",),
    "library": ("From",),
    "oras": ("From",),
    "localimage": ("From",),
    "debootstrap": ("OSVersion", "MirrorURL", "Include"),
    "yum": ("OSVersion", "MirrorURL", "Include", "UpdateURL"),
}
_WITH_IMAGE = ("docker", "library", "oras", "localimage")


def start_draft(text: str, folder: Path, findings: Findings) -> Draft:
    """Start a draft from the header; what cannot be carried is among the findings.

    `folder` takes the place of the current folder, from which Apptainer names an image's file.
    """
    values: dict[str, str] = {}
    lines: dict[str, int] = {}
    for number, line in header_lines(text):
        name, colon, value = (part.strip() for part in line.partition(":"))
        name = {"osversion": "OSVersion", "mirrorurl": "MirrorURL", "updateurl": "UpdateURL"}.get(
            name.lower(), name.capitalize()
        )
        if not colon or not value:
            findings.refuse(number, f"{line!a} is no line of a header", "Write 'Name: value'.")
        elif name in values:
            second_stage(number, name, findings)
        values[name], lines[name] = value, number
    kind = values.get("Bootstrap", "").lower()
    first = lines.get("Bootstrap", 1)
    if kind not in _BOOTSTRAPS:
        fix = did_you_mean(kind, _BOOTSTRAPS)
        findings.refuse(first, f"Bootstrap: {kind or 'missing'} cannot be carried", fix)
        return Draft(bootstrap={}, base_line=first, is_live=False)
    _check_header(kind, values, lines, findings)
    image = values.get("From", "")
    values.pop("Stage", None)
    if kind == "localimage" and values.get("From"):
        values["From"] = os.path.normpath(folder.absolute() / values.get("From", ""))
        if values["From"] != image:
            findings.note(lines["From"], f"From: {image} is {values['From']}")
    return Draft(bootstrap=values | {"Bootstrap": kind}, base_line=first, is_live=False)


def second_stage(line: int, name: str, findings: Findings) -> None:
    """Refuse a line that opens another stage."""
    message = f"a second {name}: only one stage can be carried"
    findings.refuse(line, message, "Build what the other stages make in layers.")


def _check_header(
    kind: str, values: dict[str, str], lines: dict[str, int], findings: Findings
) -> None:
    # The name of the only stage, which spython writes, means nothing.
    for name in values.keys() - {"Bootstrap", "Stage", *_BOOTSTRAPS[kind]}:
        message = f"{name}: is not carried for Bootstrap: {kind}"
        findings.refuse(lines[name], message, "Take the line out.")
    image = values.get("From", "")
    if kind in _WITH_IMAGE and not image:
        findings.refuse(lines["Bootstrap"], f"Bootstrap: {kind} without From", "Name the image.")
    elif " " in image or "\t" in image:
        findings.refuse(lines["From"], f"From: {image}: a blank in a name", "Name one image.")
    elif kind == "docker":
        docker_base.check_image(lines["From"], image, findings)
    elif kind in {"library", "oras"}:
        docker_base.check_bash(lines["From"], image, findings)
