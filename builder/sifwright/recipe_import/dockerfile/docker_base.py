"""The beginning of a Dockerfile: directives, arguments before FROM, and FROM."""

import contextlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise, takewhile

from sifwright.catalog.schema import did_you_mean
from sifwright.recipe_import import shell_words
from sifwright.recipe_import.dockerfile.instructions import Instruction, directives
from sifwright.recipe_import.dockerfile.refusals import KNOWN
from sifwright.recipe_import.draft import Draft, Findings, Wanted

BUILDER_ARGUMENTS = {
    *("TARGETPLATFORM", "TARGETOS", "TARGETARCH", "TARGETVARIANT"),
    *("BUILDPLATFORM", "BUILDOS", "BUILDARCH", "BUILDVARIANT"),
}
# Docker's own reader of Dockerfiles in all its versions; what only some of them read is refused
# where it stands.
_FRONTEND = re.compile(r"(docker\.io/)?docker/dockerfile(-upstream)?([:@]\S*)?")
# Further words that are no instructions are counted: most are lines of one text.
_SHOWN_NAMES = 5
_DOUBTFUL = re.compile(r"\\\\[ \t]*\r?$")
_PLATFORM = "linux/amd64"
_IMAGE = re.compile(r"[a-z0-9][A-Za-z0-9._/:-]*(@sha256:[0-9a-f]{64})?")
_WITHOUT_BASH = re.compile(
    r"(^|/)(alpine|busybox|distroless|static|wolfi-base)\b|[:-]alpine|busybox"
)


def check_lines(text: str, findings: Findings) -> None:
    """Refuse parser directives, and lines that builders before BuildKit join in another way."""
    for number, name, value in directives(text):
        if name == "escape" and value != "\\":
            findings.refuse(number, f"# escape={value}", "Use backslashes, and take the line out.")
        if name == "syntax" and not _FRONTEND.fullmatch(value):
            message = f"# syntax={value}: another language than Dockerfiles have"
            findings.refuse(number, message, "Take the line out if it is a Dockerfile.")
    for number, line in enumerate(text.split("\n"), start=1):
        if _DOUBTFUL.search(line) and not line.lstrip().startswith("#"):
            message = (
                "two backslashes at the end of a line, which not all builders read as one thing"
            )
            findings.refuse(number, message, "Write it in one line.")


def read_base(
    listed: list[Instruction], wanted: Wanted, findings: Findings
) -> tuple[Draft, list[Instruction]]:
    """Return the beginning of a draft, and the instructions of the last stage and of its parents.

    The FROM of each parent stays among them, as it begins another ENTRYPOINT and CMD.
    """
    _check_names(listed, findings)
    known = arguments(listed, wanted, findings)
    every = _stages(listed, known, findings)
    stages = _chain(every, wanted.target)
    if not stages:
        first = listed[0].line if listed else 1
        message = f"no stage {wanted.target}" if wanted.target else "no FROM"
        findings.refuse(first, message, "Name the image that it starts from.")
        return Draft(bootstrap={}, base_line=first, is_live=True), []
    for stage in every.values():
        if stage not in stages:
            text = f"stage {stage.name} is left out: {stages[-1].name} does not start from it"
            findings.note(stage.items[0].line, text)
    image = _image(stages, findings)
    header = {"Bootstrap": "docker", "From": image}
    rest = [item for stage in stages for item in stage.items][1:]
    return Draft(bootstrap=header, base_line=stages[0].items[0].line, is_live=True), rest


@dataclass(frozen=True, kw_only=True, slots=True)
class _Stage:
    """`items` begins with FROM; `image` is its word, which may be the name of an earlier stage."""

    image: str
    name: str
    items: list[Instruction]


def _stages(
    listed: list[Instruction], known: Mapping[str, str], findings: Findings
) -> dict[str, _Stage]:
    """Return the stages by name, in their order; a stage without a name has its number."""
    starts = [number for number, item in enumerate(listed) if item.name == "FROM"]
    stages: dict[str, _Stage] = {}
    for number, (start, end) in enumerate(pairwise([*starts, len(listed)])):
        image, _, name = [*listed[start].text.split(), *("?", "", "")][:3]
        with contextlib.suppress(shell_words.WordError):
            image = shell_words.expand(image, known.get)
        name = name.lower() or str(number)
        if name in stages:
            findings.refuse(listed[start].line, f"a second stage {name}", "Rename one of them.")
        stages[name] = _Stage(image=image, name=name, items=listed[start:end])
    return stages


def _chain(stages: dict[str, _Stage], target: str) -> list[_Stage]:
    """Return a stage, the last one if none is named, behind the stages that it starts from."""
    names = list(stages)
    name = target.lower() or (names[-1] if names else "")
    if name not in stages:
        return []
    earlier = {other: stages[other] for other in names[: names.index(name)]}
    return [*_chain(earlier, stages[name].image or "?"), stages[name]]


def arguments(listed: list[Instruction], wanted: Wanted, findings: Findings) -> dict[str, str]:
    """Return the arguments before FROM with their values, without unreadable ones."""
    values: dict[str, str] = {}
    for item in takewhile(lambda item: item.name != "FROM", listed):
        for word in item.text.split() if item.name == "ARG" else ():
            name, given, raw = word.partition("=")
            if name in wanted.arguments:
                values[name] = wanted.arguments[name]
            elif given:
                with contextlib.suppress(shell_words.WordError):
                    value = shell_words.expand(raw, values.get)
                    values[name] = findings.count(item.line, value)
    return values


def _check_names(listed: list[Instruction], findings: Findings) -> None:
    unknown = [item for item in listed if item.name not in KNOWN]
    for item in unknown[:_SHOWN_NAMES]:
        message = f"{item.name[:40]!a} is no instruction of Dockerfiles"
        findings.refuse(item.line, message, did_you_mean(item.name, sorted(KNOWN)))
    if others := unknown[_SHOWN_NAMES:]:
        message = f"{len(others)} more lines begin with no instruction of Dockerfiles"
        findings.refuse(others[0].line, message, "Mend the first of them, and try again.")
    if listed and listed[0].name in KNOWN - {"ARG", "FROM"}:
        findings.refuse(listed[0].line, f"{listed[0].name} before FROM", "Put it behind FROM.")


def _image(stages: list[_Stage], findings: Findings) -> str:
    """Return the image of the first FROM; '' if one is refused, so that it is not inspected."""
    before = len(findings.problems)
    for item in (stage.items[0] for stage in stages):
        _check_from(item, findings)
    line, image = stages[0].items[0].line, stages[0].image
    if "$" in image:
        fix = "Give the value before FROM, or with --build-arg NAME=VALUE."
        findings.refuse(line, f"FROM: the value of {image} is not in the recipe", fix)
    elif len(findings.problems) == before:
        check_image(line, image, findings)
    return image if len(findings.problems) == before else ""


def _check_from(item: Instruction, findings: Findings) -> None:
    platform = dict(item.flags).get("platform", _PLATFORM)
    if platform != _PLATFORM or len(item.flags) != ("platform" in dict(item.flags)):
        message = f"FROM with {' '.join(f'--{n}={v}' for n, v in item.flags)}"
        findings.refuse(item.line, message, f"Only --platform={_PLATFORM} is known here.")
    parts = item.text.split()
    if len(parts) != 1 and not (len(parts) == 3 and parts[1].lower() == "as"):  # noqa: PLR2004
        fix = "Write FROM IMAGE, or FROM IMAGE AS NAME."
        findings.refuse(item.line, f"FROM {item.text!a}", fix)


def check_image(line: int, image: str, findings: Findings) -> None:
    if image == "scratch":
        findings.refuse(line, "FROM scratch has no system to run steps in", "Start from an image.")
    elif not _IMAGE.fullmatch(image):
        findings.refuse(line, f"FROM {image!a} is not the name of an image", "As in debian:12.")
    elif check_bash(line, image, findings) and "@" not in image:
        text = f"FROM {image} has no digest, so it is another image tomorrow"
        findings.note(line, f"{text}: skopeo inspect docker://{image}")


def check_bash(line: int, image: str, findings: Findings) -> bool:
    """Refuse an image that has no bash by its name, from any registry."""
    if not _WITHOUT_BASH.search(image):
        return True
    message = f"FROM {image}: such images have no bash, which runs the steps"
    findings.refuse(line, message, "Start from Debian, Ubuntu, Rocky Linux or the like.")
    return False
