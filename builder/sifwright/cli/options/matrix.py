"""The images that one command builds: several sites, images and values of options."""

import re
from argparse import Namespace
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path

from sifwright.cli.options import arguments as shared
from sifwright.errors import SifwrightError, UsageError
from sifwright.images.sif.fingerprint import RECORD
from sifwright.plan.plan_file import parse_plan, settings_of
from sifwright.system import small_file

# A value names a folder.
_AXIS = re.compile(r"(?P<option>[^=]+\.[^=]+)=(?P<values>\w[\w.+-]*(,\w[\w.+-]*)*)", re.ASCII)
_FIX = "Example: pytorch-wheel.version=2.12.1,2.13.0; give other values with --set, one at a time."
ARGUMENT = shared.repeated(
    "--matrix",
    "LAYER.OPTION=A,B",
    "an image for each value, in DIR/SITE/IMAGE@VALUE; may be repeated",
)


def expand(arguments: Namespace) -> Iterator[Namespace]:
    """Yield the arguments of each image; its `matrix` has one value for each option.

    Raises `UsageError` for values that name no folder.
    """
    axes = _axes(arguments.matrix)
    names = arguments.site.split(","), arguments.image.split(",")
    for site, image, *chosen in product(*names, *axes.values()):
        matrix = [f"{option}={value}" for option, value in zip(axes, chosen, strict=True)]
        yield Namespace(**{**vars(arguments), "site": site, "image": image, "matrix": matrix})


def settings(arguments: Namespace) -> list[str]:
    """Return the values of --set and --matrix for one image; those of --matrix win."""
    return [*arguments.settings, *getattr(arguments, "matrix", ())]


def words(arguments: Namespace) -> list[str]:
    """Return the options that give one image these values."""
    chosen = [f"--matrix={text}" for text in getattr(arguments, "matrix", ())]
    return [f"--set={text}" for text in arguments.settings] + chosen


def split_name(name: str) -> tuple[str, str]:
    """Return the name of the image, and `@VALUE` for each option, of IMAGE@VALUE."""
    image, at, values = name.partition("@")
    return image, at + values


def read_name(arguments: Namespace) -> None:
    """Take an image that --matrix built by its name, IMAGE@VALUE, and its options by its record.

    Raises `UsageError` without a record.
    """
    folder = Path(arguments.output, arguments.site, arguments.image)
    arguments.image, arguments.suffix = split_name(arguments.image)
    if arguments.suffix:
        arguments.settings = [*recorded_settings(folder), *arguments.settings]


def recorded_settings(folder: Path) -> list[str]:
    """Return the options of --set and --matrix of a built image; raises `UsageError`."""
    try:
        return settings_of(parse_plan(small_file.read_bytes(folder / RECORD)))
    except (OSError, ValueError) as error:
        message = f"its record cannot be read: {error}"
        fix = "Build it: sifwright build SITE IMAGE --matrix LAYER.OPTION=VALUE"
        raise UsageError.of(message, where=str(folder), fix=fix) from None


def suffix(arguments: Namespace) -> str:
    """Return the end of the name of an image's folder: `@VALUE` for each option."""
    if hasattr(arguments, "suffix"):
        return str(arguments.suffix)
    values = (text.partition("=")[2] for text in getattr(arguments, "matrix", ()))
    return "".join(f"@{value}" for value in values)


def named(error: SifwrightError, arguments: Namespace) -> SifwrightError:
    """Return the error; a value of --matrix stands in it with this option's name."""
    chosen = getattr(arguments, "matrix", ())
    return type(error)(
        *(
            replace(problem, where=problem.where.replace("--set", "--matrix"))
            if any(text in problem.where for text in chosen)
            else problem
            for problem in error.problems
        )
    )


def _axes(texts: Sequence[str]) -> dict[str, list[str]]:
    axes: dict[str, list[str]] = {}
    for text in texts:
        match = _AXIS.fullmatch(text)
        if match is None or match["option"] in axes:
            message = "is given twice" if match else "not of the form layer.option=value,value"
            raise UsageError.of(message, where=f"--matrix {text}", fix=_FIX)
        axes[match["option"]] = list(dict.fromkeys(match["values"].split(",")))
    return axes
