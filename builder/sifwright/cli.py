"""The command line: parse, call, print. Only this module turns an error into an exit status."""

from __future__ import annotations

import argparse
import contextlib
import importlib
import io
import os
import signal
import sys
from typing import TYPE_CHECKING

from sifwright import __version__
from sifwright.arguments import ARGUMENTS
from sifwright.errors import Interrupted, MachineError, SifwrightError, UsageError
from sifwright.inspection.text import harmless

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import FrameType
    from typing import NoReturn

__all__ = ["main"]

EPILOG = """\
exit status:
  0 done · 1 diff: they differ · 2 the command line · 3 defs/ or the mirrors file
  4 layers that do not go together
  5 this machine lacks something · 6 the build failed · 7 a test failed · 130 stopped
"""
# name, help, and which groups of arguments the command takes
COMMANDS = (
    ("list", "show the sites, images and layers there are", ("kind", "json")),
    ("show", "explain one site, image or layer", ("thing", "json")),
    ("lint", "say what a site or an image gets wrong, and why", ("image", "set", "json")),
    (
        "plan",
        "show what would be built, what is cached, and why the rest will run",
        ("image", "set", "output", "explain", "json"),
    ),
    (
        "render",
        "print the definition file, or write a Dockerfile with its build context",
        ("image", "set", "render"),
    ),
    (
        "build",
        "build the SIF, or an image with Docker, test it, put it in place",
        ("image", "set", "output", "talk", "force", "engine"),
    ),
    (
        "extend",
        "build an image with packages of your own as its last layer",
        ("image", "extend", "set", "output", "talk", "force"),
    ),
    (
        "import",
        "make an image with layers of a Dockerfile or a definition file",
        ("recipe",),
    ),
    ("test", "run the tests of all layers in the SIF that was built", ("image", "output", "talk")),
    ("check", "say what this machine lacks for building an image", ("image", "set", "output")),
    (
        "check-comm",
        "time the collectives in the image, and prove the network they use",
        ("image", "output", "comm", "json"),
    ),
    ("pins", "list the sources of all layers and their pins, or look one up", ("pins", "json")),
    ("cache", "list, check or prune what builds made and downloaded", ("cache", "json")),
    ("diff", "say what differs between two images or plans", ("two", "set", "json")),
    ("report", "write a page about an image that was built", ("report",)),
    ("flatten", "write a layered SIF as one with a single partition", ("flatten",)),
    ("shell", "open a shell in the state before a layer", ("image", "set", "output", "talk", "at")),
    ("machine", "write this machine's settings for a build by hand", ("folder",)),
    (
        "inspect",
        "say what an image is: of a registry, an archive, an engine, or a SIF",
        ("any_image", "json"),
    ),
    ("labels", "print the labels of a SIF", ("sif", "json")),
    (
        "easyconfig",
        "write what EasyBuild installs: the image, its run scripts and its module",
        ("image", "set", "output", "installed"),
    ),
    (
        "modulefile",
        "print the modulefile of an installation, without EasyBuild",
        ("image", "set", "output", "installed", "module"),
    ),
    ("native", "print the modulefile of PyTorch installed on the host", ("native",)),
    (
        "venvscript",
        "print the script that makes a virtual environment load a module",
        ("site_module",),
    ),
    ("jobscript", "write the batch script that trains on N nodes of a site", ("job",)),
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit status."""
    # A terminal that knows ASCII only is no reason to fail over a '·'.
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")
    words = sys.argv[1:] if arguments is None else arguments
    parsed = parser(next(iter(words), "")).parse_args(words)
    signal.signal(signal.SIGTERM, _stop)
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # as nohup sets it
        signal.signal(signal.SIGHUP, _stop)
    try:
        commands = importlib.import_module(_module(parsed.command))
        getattr(commands, parsed.command)(parsed)
        sys.stdout.flush()
    except SifwrightError as error:
        return _report(error)
    except KeyboardInterrupt:
        return _report(Interrupted.of("stopped; the image that stood there before is unchanged"))
    except BrokenPipeError:
        # The reader (head, less) has gone; Python would complain once more at exit.
        with contextlib.suppress(OSError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except OSError as error:
        return _report(_machine_error(error))
    return 0


def _module(command: str) -> str:
    """Where it is: that of most builds loads in a moment, as there is nothing to do."""
    return f"sifwright.{'buildcommand' if command == 'build_command' else 'commands'}"


def _machine_error(error: OSError) -> SifwrightError:
    """A full disk, a missing permission: the machine's, not the user's, and no traceback."""
    return MachineError.of(
        error.strerror or str(error),
        where=str(error.filename or ""),
        fix="Free space, mend the permission, or choose another folder with --output.",
    )


def _stop(_number: int, _frame: FrameType | None) -> NoReturn:
    raise KeyboardInterrupt


def _report(error: SifwrightError) -> int:
    for problem in error.problems:
        # Errors quote images, registries and logs.
        sys.stderr.write(f"sifwright: {harmless(str(problem))}\n")
    return error.exit_code


class _Parser(argparse.ArgumentParser):
    """Reports a wrong command line the way every other error is reported."""

    def error(self, message: str) -> NoReturn:
        self.exit(UsageError.exit_code, f"sifwright: {message}\n    See {self.prog} --help.\n")


def parser(only: str = "") -> argparse.ArgumentParser:
    """The parser of all commands, also for the tests of the documentation.

    `only`: of this one, if it is one; to make those of the others takes longer than to find out
    that there is nothing to build.
    """
    top = _Parser(
        prog="sifwright",
        description="Compose, build and prove PyTorch container images for supercomputers.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    top.add_argument("--version", action="version", version=f"sifwright {__version__}")
    top.add_argument(
        "--project", default="", metavar="DIR", help="folder with defs/ and runscripts/ to use"
    )
    commands = top.add_subparsers(metavar="COMMAND", required=True)
    for name, text, groups in [row for row in COMMANDS if row[0] == only] or COMMANDS:
        command = commands.add_parser(name, help=text, description=text, allow_abbrev=False)
        command.set_defaults(command=f"{name.replace('-', '_')}_command")
        for group in groups:
            ARGUMENTS[group](command)
    return top
