"""The beginning of a Dockerfile: directives, arguments before FROM, and FROM."""

import re

from sifwright.catalog.schema import did_you_mean
from sifwright.recipe_import import shell_words
from sifwright.recipe_import.dockerfile.instructions import Instruction, directives
from sifwright.recipe_import.dockerfile.refusals import KNOWN
from sifwright.recipe_import.draft import Draft, Findings

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


def _check_directive(line: int, name: str, value: str, findings: Findings) -> None:
    if name == "escape" and value != "\\":
        findings.refuse(line, f"# escape={value}", "Use backslashes, and take the line out.")
    if name == "syntax" and not _FRONTEND.fullmatch(value):
        message = f"# syntax={value}: another language than Dockerfiles have"
        findings.refuse(line, message, "Take the line out if it is a Dockerfile.")


def check_lines(text: str, findings: Findings) -> None:
    """Refuse parser directives, and lines that builders before BuildKit join in another way."""
    for number, name, value in directives(text):
        _check_directive(number, name, value, findings)
    for number, line in enumerate(text.split("\n"), start=1):
        if _DOUBTFUL.search(line) and not line.lstrip().startswith("#"):
            message = (
                "two backslashes at the end of a line, which not all builders read as one thing"
            )
            findings.refuse(number, message, "Write it in one line.")


def read_base(listed: list[Instruction], findings: Findings) -> tuple[Draft, list[Instruction]]:
    """Return the beginning of a draft, and the instructions after FROM."""
    _check_names(listed, findings)
    places = [number for number, item in enumerate(listed) if item.name == "FROM"]
    if not places:
        first = listed[0].line if listed else 1
        findings.refuse(first, "no FROM", "Name the image that it starts from.")
        return Draft(bootstrap={}, base_line=first, is_live=True), []
    for number in places[1:]:
        message = "a second FROM: only one stage can be carried"
        fix = "Write a layer for what the other stages build, or start from an image that has it."
        findings.refuse(listed[number].line, message, fix)
    start = listed[places[0]]
    image = _image(start, arguments(listed), findings)
    header = {"Bootstrap": "docker", "From": image}
    # Of several stages nothing more is said: their files are not where they seem to be.
    rest = listed[places[0] + 1 : places[1] if len(places) > 1 else None]
    return Draft(bootstrap=header, base_line=start.line, is_live=True), rest


def arguments(listed: list[Instruction]) -> dict[str, str]:
    """Return the arguments before FROM with their defaults, without unreadable ones."""
    values: dict[str, str] = {}
    for item in listed:
        if item.name == "FROM":
            break
        for word in item.text.split() if item.name == "ARG" else ():
            name, given, raw = word.partition("=")
            try:
                values |= {name: shell_words.expand(raw, values.get)} if given else {}
            except shell_words.WordError:
                continue
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


def _image(item: Instruction, known: dict[str, str], findings: Findings) -> str:
    """Return the image of FROM; '' if it is refused, so that it is not inspected."""
    before = len(findings.problems)
    platform = dict(item.flags).get("platform", _PLATFORM)
    if platform != _PLATFORM or len(item.flags) != ("platform" in dict(item.flags)):
        message = f"FROM with {' '.join(f'--{n}={v}' for n, v in item.flags)}"
        findings.refuse(item.line, message, f"Only --platform={_PLATFORM} is known here.")
    parts = item.text.split()
    if len(parts) != 1 and not (len(parts) == 3 and parts[1].lower() == "as"):  # noqa: PLR2004
        findings.refuse(
            item.line, f"FROM {item.text!a}", "Write FROM IMAGE, or FROM IMAGE AS NAME."
        )
        return ""
    try:
        image = shell_words.expand(parts[0], known.get)
    except shell_words.WordError as error:
        findings.refuse(item.line, f"FROM: {error}", "Give the ARG a value before FROM.")
        return ""
    check_image(item.line, image, findings)
    return image if len(findings.problems) == before else ""


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
