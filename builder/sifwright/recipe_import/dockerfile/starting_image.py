"""The base image of a Dockerfile, and its effects on the instructions that follow."""

from collections.abc import Callable

from sifwright.errors import SifwrightError
from sifwright.images.contents.image_tree import BadImage
from sifwright.images.model import NoSuchImage, OtherProcessor, SourceError, Start
from sifwright.images.sources import parse_name
from sifwright.recipe_import.draft import Findings

# A function for an image's settings; None if it is not asked. Raises `SourceError`.
Look = Callable[[str], Start | None]

_PROCESSOR = "x86_64"
DEFAULT_SHELL = ("/bin/sh", "-c")
_BLIND = "RUN starts in / as root, with /bin/sh"


def ask_nothing(_: str) -> None:
    return None


def ask_registry(image: str) -> Start:
    """Ask its registry, through the mirrors file and with the login."""
    from sifwright.images.sources import registry_image  # noqa: PLC0415  # most commands need no ssl

    try:
        return registry_image.start(parse_name.parse(f"docker://{image}"), _PROCESSOR)
    except NoSuchImage:
        raise
    except SifwrightError as error:
        problem = error.problems[0]
        fix = f"{problem.fix} With --offline it is imported without asking: {_BLIND}.".strip()
        raise SourceError.of(problem.what, where=problem.where, fix=fix) from None
    except OtherProcessor as error:
        raise SourceError.of(str(error), fix="Name an image for this processor.") from None
    except BadImage as error:
        raise SourceError.of(str(error), fix=error.fix or "Name another image.") from None


def base_config(line: int, image: str, look: Look, findings: Findings) -> Start | None:
    """Return the configuration of the base image; None if it is not inspected.

    An image that does not answer is refused, and so are settings that no layer can have.
    """
    try:
        config = look(image)
    except SourceError as error:
        for problem in error.problems:
            where = f"{problem.where}: " if problem.where else ""
            findings.refuse(line, f"FROM {image}: {where}{problem.what}", problem.fix)
        # So that what would follow from it is not said as well.
        return Start()
    if config is None:
        text = "its WORKDIR, USER, SHELL, ENV, ONBUILD, ENTRYPOINT and CMD are not known"
        findings.note(line, f"{text} (--offline): {_BLIND}")
        return None
    _check(line, image, config, findings)
    return config


def _check(line: int, image: str, start: Start, findings: Findings) -> None:
    for trigger in start.triggers:
        message = f"FROM {image}: its ONBUILD is an instruction of this recipe: {trigger[:80]!a}"
        findings.refuse(line, message, "Start from an image without ONBUILD, and write it here.")
    shell = "" if start.shell in {(), DEFAULT_SHELL} else " ".join(start.shell)
    named = {"WORKDIR": start.folder.rstrip("/"), "USER": start.user, "SHELL": shell}
    for name, value in named.items():
        if value:
            findings.note(line, f"{name} is that of the image: {value!a}")
