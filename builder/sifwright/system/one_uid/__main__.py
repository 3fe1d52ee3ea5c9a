"""Run a command as root of a new user namespace that has no other id.

    python -m sifwright.system.one_uid FILE TREE COMMAND…

FILE keeps the owners of the files in TREE from one command to the next one; TREE may be empty. Exit
status: the command's; 1 with a line on standard error if there is no such namespace. Standard error
names the ids that a program asked to become and did not get.
"""

import os
import signal
import socket
import sys
from pathlib import Path
from typing import NoReturn

from sifwright.system.one_uid import kernel
from sifwright.system.one_uid.records import Records
from sifwright.system.one_uid.supervisor import Supervisor

_CANNOT_RUN = 127


def main(file: Path, tree: str, command: list[str]) -> int:
    """Run it, and write down the owners; returns the exit status."""
    if why_not := kernel.lacks():
        sys.exit(why_not)
    try:
        kernel.become_root()
    except OSError as error:
        sys.exit(f"no user namespace can be made: {error.strerror}")
    records = Records.read(file)
    supervisor = Supervisor(records)
    status = _supervised(supervisor, command)
    if tree and Path(tree).is_dir():
        records.inherit(Path(tree))
    records.write(file)
    for program, uid in supervisor.wanted:
        sys.stderr.write(f"sifwright: one id: {program} wanted {uid}\n")
    return status


def _supervised(supervisor: Supervisor, command: list[str]) -> int:
    own_end, command_end = socket.socketpair()
    pid = os.fork()
    if pid == 0:
        _become(command, supervisor.numbers, command_end)
    command_end.close()
    # The command says how it ends; without us, nothing in it could be removed.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    _, descriptors, _, _ = socket.recv_fds(own_end, 1, 1)
    if descriptors:
        supervisor.serve(descriptors[0], os.pidfd_open(pid))
    _, status = os.waitpid(pid, 0)
    code = os.waitstatus_to_exitcode(status)
    return code if code >= 0 else 128 - code


def _become(command: list[str], numbers: list[int], command_end: socket.socket) -> NoReturn:
    try:
        socket.send_fds(command_end, [b"!"], [kernel.listener(numbers)])
    except OSError as error:
        sys.stderr.write(f"system calls cannot be supervised: {error.strerror}\n")
        os._exit(1)
    try:
        os.execvp(command[0], command)  # noqa: S606  # a list of arguments, as everywhere
    except OSError as error:
        sys.stderr.write(f"{command[0]}: {error.strerror}\n")
        os._exit(_CANNOT_RUN)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), sys.argv[2], sys.argv[3:]))
