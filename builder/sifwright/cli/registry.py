"""The commands of the program: the modules of the folder `commands`."""

import argparse
import importlib
import pkgutil
from collections.abc import Sequence
from typing import Protocol, cast

from sifwright.cli import commands
from sifwright.cli.options.arguments import Argument

# The groups of --help, in its order, with their titles.
GROUPS = {
    "describe": "describe what can be built",
    "build": "build an image",
    "look": "look at an image",
    "install": "install on a cluster",
    "run": "run on a cluster",
    "maintain": "maintain caches and pins",
}


class Command(Protocol):
    """A module of the folder `commands`."""

    HELP: str
    GROUP: str
    ARGUMENTS: Sequence[Argument]

    def run(self, arguments: argparse.Namespace) -> int | None:
        """Do the work; return the exit status, where None is 0."""


def names() -> list[str]:
    """Return the names of all commands: `check-comm` is in the module check_comm."""
    modules = pkgutil.iter_modules(commands.__path__)
    return [module.name.rstrip("_").replace("_", "-") for module in modules]


def load(name: str) -> Command:
    """Import the module of a command, and no other one."""
    # `import` is a word of Python.
    module = "import_" if name == "import" else name.replace("-", "_")
    return cast("Command", importlib.import_module(f"{commands.__name__}.{module}"))


def position(words: Sequence[str]) -> int:
    """Return the index of the command's name: behind the option --project, if it is given."""
    index = 0
    while index < len(words) and words[index].startswith("--project"):
        index += 1 if "=" in words[index] else 2
    return index
