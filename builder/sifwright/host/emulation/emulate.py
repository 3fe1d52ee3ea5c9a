"""Start the program again where Linux runs programs of another processor.

    python -P -m sifwright.host.emulation.emulate PROCESSOR EMULATOR COMMAND…

registers the emulator, as root of a new user and mount namespace, and becomes the command.
"""

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from sifwright.catalog.processors import debian_architecture
from sifwright.errors import MachineError
from sifwright.host.emulation import binfmt
from sifwright.system import ids, user_namespace
from sifwright.system.processes import search_path

_BIN = Path(__file__).parent / "bin"
_ARCHITECTURE = "SIFWRIGHT_DEBIAN_ARCHITECTURE"


def is_started() -> bool:
    """Tell whether this process has been started again already."""
    return _ARCHITECTURE in os.environ


def choose(processor: str) -> None:
    """Have the next builds of this process take packages for a processor."""
    os.environ[_ARCHITECTURE] = debian_architecture(processor)


def problem(processor: str) -> str:
    """Return the reason why this machine cannot emulate the processor; nothing if it can."""
    if not binfmt.emulator(processor):
        return f"no static qemu-{processor} is installed (Debian's package qemu-user-static)"
    if binfmt.kernel() < binfmt.KERNEL:
        release, least = os.uname().release, ".".join(map(str, binfmt.KERNEL))
        return f"Linux {release} has no binfmt_misc in user namespaces; {least} is the first"
    if ids.are_one():
        return "it takes subordinate ids"
    if not ids.needs_fakeroot():
        return "root of the machine has no user namespace; build as an ordinary user"
    return ""


def start_again(processor: str, words: Sequence[str]) -> NoReturn:
    """Become `sifwright WORDS` where the processor is emulated.

    Raises `MachineError` if there is no such namespace.
    """
    if (reason := user_namespace.problem()) is not None:
        raise MachineError(reason)
    own = [sys.executable, "-P", "-m"]
    register = [*own, __name__, processor, binfmt.emulator(processor)]
    command = [*user_namespace.prefix(), "unshare", "--mount", *register, *own, "sifwright", *words]
    sys.stdout.flush()
    os.execvpe(command[0], command, environment(processor))  # noqa: S606  # a list of arguments


def environment(processor: str) -> dict[str, str]:
    """Return the environment of an emulated build; debootstrap reads the processor there."""
    path = f"{_BIN}:{search_path()}"
    return {**os.environ, "PATH": path, _ARCHITECTURE: debian_architecture(processor)}


def main(processor: str, emulator: str, *command: str) -> NoReturn:
    """Register the emulator and become the command; exit with 5 and a line if Linux refuses."""
    mount = ["mount", "-t", "binfmt_misc", "binfmt_misc", str(binfmt.REGISTER)]
    done = subprocess.run(mount, check=False, capture_output=True, encoding="utf-8")
    try:
        (binfmt.REGISTER / "register").write_bytes(binfmt.line(processor, emulator))
    except OSError as error:
        reason = done.stderr.strip() or error.strerror
        print(f"sifwright: {processor} cannot be emulated: {reason}", file=sys.stderr)  # noqa: T201
        sys.exit(MachineError.exit_code)
    os.execvp(command[0], command)  # noqa: S606  # a list of arguments


if __name__ == "__main__":
    main(*sys.argv[1:])
