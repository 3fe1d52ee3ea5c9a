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
from sifwright.errors import Interrupted, MachineError, SifwrightError, UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import FrameType
    from typing import NoReturn

__all__ = ["main"]

EPILOG = """\
exit status:
  0 done · 2 the command line · 3 defs/ or the mirrors file · 4 layers that do not go together
  5 this machine lacks something · 6 the build failed · 7 a test failed · 130 stopped
"""
# name, help, and which groups of arguments the command takes
COMMANDS = (
    ("list", "show the sites, images and layers there are", ("kind", "json")),
    ("show", "explain one site, image or layer", ("thing", "json")),
    ("lint", "say what a site or an image gets wrong, and why", ("image", "set", "json")),
    ("plan", "show what would be built, without building", ("image", "set", "explain", "json")),
    ("render", "print the definition file", ("image", "set")),
    (
        "build",
        "build the SIF, test it, put it in place",
        ("image", "set", "output", "talk", "force"),
    ),
    ("test", "run the tests of all layers in the SIF that was built", ("image", "output", "talk")),
    ("check", "say what this machine lacks for building an image", ("image", "set", "output")),
    (
        "check-comm",
        "time the collectives in the image, and prove the network they use",
        ("image", "output", "comm", "json"),
    ),
    ("pins", "list the sources of all layers and their pins, or look one up", ("pins", "json")),
    ("machine", "write this machine's settings for a build by hand", ("folder",)),
    ("labels", "print the labels of a SIF", ("sif", "json")),
    ("jobscript", "write the batch script that trains on N nodes of a site", ("job",)),
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit status."""
    # A terminal that knows ASCII only is no reason to fail over a '·'.
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")
    parsed = parser().parse_args(arguments)
    signal.signal(signal.SIGTERM, _stop)
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # as nohup sets it
        signal.signal(signal.SIGHUP, _stop)
    try:
        commands = importlib.import_module("sifwright.commands")
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
        sys.stderr.write(f"sifwright: {problem}\n")
    return error.exit_code


class _Parser(argparse.ArgumentParser):
    """Reports a wrong command line the way every other error is reported."""

    def error(self, message: str) -> NoReturn:
        self.exit(UsageError.exit_code, f"sifwright: {message}\n    See {self.prog} --help.\n")


def parser() -> argparse.ArgumentParser:
    """The parser of all commands, also for the tests of the documentation."""
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
    for name, text, groups in COMMANDS:
        command = commands.add_parser(name, help=text, description=text, allow_abbrev=False)
        command.set_defaults(command=f"{name.replace('-', '_')}_command")
        for group in groups:
            _ARGUMENTS[group](command)
    return top


def _kind(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "kind", nargs="?", choices=("sites", "images", "layers"), help="only these"
    )


def _thing(command: argparse.ArgumentParser) -> None:
    command.add_argument("kind", choices=("site", "image", "layer"), help="what it is")
    command.add_argument("name", metavar="NAME", help="a name of 'sifwright list'")


def _image(command: argparse.ArgumentParser) -> None:
    command.add_argument("site", metavar="SITE", help="a site of 'sifwright list'")
    command.add_argument(
        "image", metavar="IMAGE", nargs="?", default="", help="an image; default: the site's"
    )


def _set(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--set",
        dest="settings",
        action="append",
        default=[],
        metavar="LAYER.OPTION=VALUE",
        help="give an option a value; may be repeated",
    )


def _explain(command: argparse.ArgumentParser) -> None:
    command.add_argument("--explain", action="store_true", help="show every option and who set it")


def _json(command: argparse.ArgumentParser) -> None:
    command.add_argument("--json", action="store_true", help="print JSON")


def _output(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--output", default="build", metavar="DIR", help="where images go: DIR/SITE/IMAGE (build)"
    )


def _talk(command: argparse.ArgumentParser) -> None:
    group = command.add_mutually_exclusive_group()
    group.add_argument("--quiet", action="store_true", help="print errors only")
    group.add_argument("--verbose", action="store_true", help="show the engine's output too")
    group.add_argument("--json", action="store_true", help="print one JSON object per event")


def _force(command: argparse.ArgumentParser) -> None:
    command.add_argument("--force", action="store_true", help="build even if it is up to date")


def _pins(command: argparse.ArgumentParser) -> None:
    add = command.add_argument
    add("layer", nargs="?", default="", metavar="LAYER", help="only this layer")
    add("source", nargs="?", default="", metavar="SOURCE", help="only this source of it")
    add("version", nargs="?", default="", metavar="VERSION", help="only this version of it")
    add("--add", action="store_true", help="look the version up and pin it")
    add("--check", action="store_true", help="compare with what is there now")


def _folder(command: argparse.ArgumentParser) -> None:
    command.add_argument("folder", metavar="DIR", help="a folder that is not there yet")


def _sif(command: argparse.ArgumentParser) -> None:
    command.add_argument("sif", metavar="SIF", help="the image file")


def _comm(command: argparse.ArgumentParser) -> None:
    add = command.add_argument
    add("--nodes", type=int, default=0, help="nodes to use (all of the allocation)")
    add("--ranks-per-node", type=int, default=0, metavar="N", help="ranks per node (one per GPU)")
    add("--backend", default="", choices=("gloo", "mpi", "nccl"), help="default: nccl with GPUs")
    add("--min-size", default="1K", metavar="SIZE", help="smallest size in bytes, or K, M, G (1K)")
    add("--max-size", default="512M", metavar="SIZE", help="largest size (512M)")
    add("--launch", default="", metavar="COMMAND", help="start a rank per task with this instead")


def _job(command: argparse.ArgumentParser) -> None:
    add = command.add_argument
    add("--site", required=True, metavar="SITE", help="a site of 'sifwright list'")
    add("--nodes", required=True, type=int, metavar="N", help="nodes of the job")
    add(
        "--launcher",
        default="",
        help="srun, mpiexec, mpirun, flux or torchrun; default: the site's",
    )
    add("--engine", default="", choices=("container", "native"), help="default: the site's")
    add("--image", default="", metavar="IMAGE", help="which built image; default: the site's")
    add("--sif", default="", metavar="PATH", help="the SIF; default: $SIF, else what was built")
    add("--environment", default="", metavar="DIR", help="virtual environment of engine native")
    add("--host-mpi", action="store_true", help="the site's MPI in place of the image's")
    add("--tasks-per-node", type=int, metavar="N", help="ranks on each node; default: one per GPU")
    add("--time", default="", metavar="HH:MM:SS", help="wall time; default: the site's")
    add("--account", default="", metavar="PROJECT", help="project that pays for the job")
    add("--name", default="", help="name of the job; default: the script's")
    add("--signal", default="", metavar="NAME@SECONDS", help="signal sent before the time is up")
    add("--output", default="", metavar="FILE", help="file to write; default: standard output")
    add(
        "arguments", nargs="+", metavar="SCRIPT", help="-- and the Python script with its arguments"
    )


_ARGUMENTS = {
    "job": _job,
    "kind": _kind,
    "thing": _thing,
    "comm": _comm,
    "image": _image,
    "set": _set,
    "explain": _explain,
    "json": _json,
    "output": _output,
    "talk": _talk,
    "force": _force,
    "pins": _pins,
    "folder": _folder,
    "sif": _sif,
}
