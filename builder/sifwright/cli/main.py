"""The command line: parse, call, print. Only this module turns an error into an exit status."""

import argparse
import contextlib
import errno
import io
import os
import signal
import sys
from collections.abc import Generator, Sequence
from pathlib import Path
from types import FrameType
from typing import NoReturn

from sifwright import __version__
from sifwright.cli import registry
from sifwright.errors import Interrupted, MachineError, SifwrightError, UsageError
from sifwright.system import os_errors
from sifwright.system.terminal import strip_control_characters

EPILOG = """\
exit status:
  0 done · 1 diff, audit, verify: a difference or finding · 2 the command line
  3 defs/ or the mirrors file · 4 layers that do not go together
  5 this machine lacks something · 6 the build failed · 7 a test failed · 130 stopped
"""
# Commands that make images.
_BUILDS = frozenset({"build", "extend", "flatten"})


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit status."""
    _choose_encoding()
    words = sys.argv[1:] if arguments is None else arguments
    name = next(iter(words[registry.position(words) :]), "")
    parsed = argparse.Namespace()
    signal.signal(signal.SIGTERM, _stop)
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # as nohup sets it
        signal.signal(signal.SIGHUP, _stop)
    try:
        parsed = parser(name).parse_args(words)
        status: int | None = parsed.run(parsed)
        sys.stdout.flush()
    except SifwrightError as error:
        return _report(error)
    except KeyboardInterrupt:
        unchanged = "; the image that stood there before is unchanged" if name in _BUILDS else ""
        return _report(Interrupted.of(f"stopped{unchanged}"))
    except BrokenPipeError:
        # The reader (head, less) has gone; Python would complain once more at exit.
        with contextlib.suppress(OSError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except (OSError, RuntimeError) as error:
        return _report(_machine_error(error, has_output=hasattr(parsed, "output")))
    else:
        return status or 0
    return 0


def _choose_encoding() -> None:
    """Write UTF-8 into files and pipes: a definition file is the same in every locale."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        encoding = None if sys.stdout.isatty() else "utf-8"
        # A terminal that knows ASCII only is no reason to fail over a '·'.
        sys.stdout.reconfigure(encoding=encoding, errors="replace")


def _machine_error(error: OSError | RuntimeError, *, has_output: bool) -> SifwrightError:
    """Turn a full disk, a missing permission or a low limit into an error of the machine."""
    if isinstance(error, RuntimeError):
        # Python's only word on a limit of threads.
        if str(error) != "can't start new thread":
            raise error
        error = OSError(errno.EAGAIN, str(error))
    if error.errno == errno.ENOENT and error.filename is None:
        # Python's answer to getcwd(2) in a folder that was removed.
        return MachineError.of("the current folder is gone", fix="Change to another one: cd")
    elsewhere = "choose another folder with --output" if has_output else "name another place"
    message = os_errors.cause(error, Path(error.filename or "."))
    fix = os_errors.remedy(error, elsewhere)
    return MachineError.of(message, where=str(error.filename or ""), fix=fix)


def _stop(_number: int, _frame: FrameType | None) -> NoReturn:
    raise KeyboardInterrupt


def _report(error: SifwrightError) -> int:
    for problem in error.problems:
        # Errors quote images, registries and logs.
        sys.stderr.write(f"sifwright: {strip_control_characters(str(problem))}\n")
    return error.exit_code


class _Parser(argparse.ArgumentParser):
    """A parser that reports a wrong command line like every other error."""

    def error(self, message: str) -> NoReturn:
        self.exit(UsageError.exit_code, f"sifwright: {message}\n    See {self.prog} --help.\n")


class _Help(argparse.RawDescriptionHelpFormatter):
    """A formatter that lists commands by group only; argparse has no public way to do so."""

    def _iter_indented_subactions(self, _action: argparse.Action) -> Generator[argparse.Action]:
        yield from ()


class _PrintCompletion(argparse.Action):
    """An option that prints a shell's completion script, and ends the program."""

    def __call__(
        self, parser: argparse.ArgumentParser, _namespace: object, values: object, *_: object
    ) -> NoReturn:
        import shtab  # noqa: PLC0415  # a build with nothing to do does not need it

        sys.stdout.write(shtab.complete(parser, str(values)))
        parser.exit()


def parser(only: str = "") -> argparse.ArgumentParser:
    """Make the parser of one command; of all commands, if there is no command `only`.

    `--version` needs none of them.
    """
    top = _Parser(
        prog="sifwright",
        description="Compose, build and prove PyTorch container images for supercomputers.",
        epilog=EPILOG,
        formatter_class=_Help,
        allow_abbrev=False,
    )
    top.add_argument("--version", action="version", version=f"sifwright {__version__}")
    top.add_argument(
        "--project", default="", metavar="DIR", help="folder with defs/ and runscripts/ to use"
    )
    top.add_argument(
        "--print-completion",
        action=_PrintCompletion,
        choices=("bash", "zsh"),
        metavar="SHELL",
        help="print the completion of command lines for bash or zsh",
    )
    names = registry.names()
    chosen = [only] if only in names else names
    _add_commands(top, [] if only == "--version" else chosen)
    return top


def _add_commands(top: argparse.ArgumentParser, names: Sequence[str]) -> None:
    text = "'sifwright COMMAND --help' shows its options"
    parsers = top.add_subparsers(metavar="COMMAND", required=True, help=text)
    commands = {name: registry.load(name) for name in names}
    for group, title in registry.GROUPS.items():
        members = [name for name in names if group == commands[name].GROUP]
        lines = [f"{name:<14} {commands[name].HELP}" for name in members]
        top.add_argument_group(title, "\n".join(lines))
    for name, command in commands.items():
        subparser = parsers.add_parser(
            name, help=command.HELP, description=command.HELP, allow_abbrev=False
        )
        for add in command.ARGUMENTS:
            add(subparser)
        subparser.set_defaults(run=command.run)
