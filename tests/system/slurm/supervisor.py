"""The hosts and daemons of one cluster: started, and ended at the end of the input.

    unshare --net --mount --uts -- python -m tests.system.slurm.supervisor FOLDER

It is the login host. Every process of the cluster, jobs included, descends from it, as it adopts
orphans. So after its end no process of the cluster is left, however the tests ended.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import pwd
import shlex
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from tests.system.slurm.layout import (
    BLACK_HOLE,
    INTERFACES,
    LOGIN,
    LOGIN_NUMBER,
    NODES,
    Files,
    address,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

PR_SET_CHILD_SUBREAPER = 36  # linux/prctl.h
READY = "ready"

# Runs in the namespaces of a node. Its /tmp and /dev/shm are its own, except the folders that a
# real cluster shares. Its interfaces come from outside after its first word.
NODE = """
set -e
hostname "$node"
mkdir -p "$local/tmp"
chmod 1777 "$local/tmp"
for path in $shared; do
  case $path in
  /tmp/*)
    mkdir -p "$local$path"
    mount --bind "$path" "$local$path"
    ;;
  esac
done
mount --rbind "$local/tmp" /tmp
mount -t tmpfs -o mode=1777 tmpfs /dev/shm
echo
read -r _
ulimit -c 0
# Restarts a daemon that crashes, as systemd does. The slurmd of Debian 12 (22.05) sometimes dies
# when it starts many steps at once: "free(): unaligned chunk detected". Running steps go on.
until "$@" >&2 || test "$?" -lt 128; do
  echo "slurmd crashed, starting it again" >&2
done
"""


def adopt_orphans() -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0):
        raise OSError(ctypes.get_errno(), "PR_SET_CHILD_SUBREAPER")


def system(command: str) -> None:
    subprocess.run(shlex.split(command), check=True, stdin=subprocess.DEVNULL)


def start(
    command: Sequence[object], log: Path, environment: dict[str, str]
) -> subprocess.Popen[bytes]:
    """Start a daemon that stays in the foreground and writes its log to stderr."""
    with log.open("ab") as output:
        return subprocess.Popen(
            [str(word) for word in command],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=output,
            env=os.environ | environment,
        )


def become_login_host(files: Files) -> None:
    """Make a bridge for each network; the login host has an address on all of them."""
    system(f"hostname {LOGIN}")
    system("ip link set lo up")
    system(f"mount --bind {files.hosts} /etc/hosts")
    hide_login_files()
    for interface in INTERFACES:
        system(f"ip link add {interface} type bridge")
        system(f"ip address add {address(LOGIN_NUMBER, interface)}/24 dev {interface}")
        system(f"ip link set {interface} up")


def hide_login_files() -> None:
    """Hide the shell's files of this machine: jobs of `sbatch --export=NIL` read them.

    pyenv's wait up to a minute for a lock that a killed login left behind.
    """
    home = Path(pwd.getpwuid(0).pw_dir)
    for name in (".bash_profile", ".bash_login", ".profile", ".bashrc"):
        if (home / name).exists():
            system(f"mount --bind /dev/null {home / name}")


def start_munged(files: Files) -> None:
    folder = files.folder
    options = {
        "key-file": files.key,
        "socket": files.socket,
        "pid-file": folder / "munge.pid",
        "log-file": files.log("munged"),
        "seed-file": folder / "munge.seed",
    }
    words = [f"--{name}={value}" for name, value in options.items()]
    start(["munged", "--foreground", "--force", *words], files.log("munged.output"), {})


def start_node(files: Files, number: int, node: str) -> None:
    shared = f"{files.folder} {Path.cwd()} {sys.prefix}"
    settings = {"node": node, "local": f"{files.folder}/local.{node}", "shared": shared}
    inside = ["sh", "-c", NODE, node, "slurmd", "-D"]
    command = ["unshare", "--net", "--mount", "--uts", "--", *inside]
    process = start(command, files.log(node), settings)
    assert process.stdin
    assert process.stdout
    assert process.stdout.readline(), f"{node} did not start, see {files.log(node)}"
    connect(process.pid, number)
    process.stdin.write(b"\n")
    process.stdin.close()
    files.pid(node).write_text(str(process.pid))


def connect(pid: int, number: int) -> None:
    """Give the node of a process an interface on each network."""
    inside = f"nsenter --net --target {pid} -- ip"
    system(f"{inside} link set lo up")
    for interface in INTERFACES:
        here = f"{interface}-{number}"
        system(f"ip link add {here} type veth peer name {interface} netns {pid}")
        system(f"ip link set {here} master {interface} up")
        system(f"{inside} address add {address(number, interface)}/24 dev {interface}")
        system(f"{inside} link set {interface} up")
    system(f"{inside} route add {BLACK_HOLE} via {address(LOGIN_NUMBER)}")


def children() -> list[int]:
    tasks = Path(f"/proc/{os.getpid()}/task").iterdir()
    return [int(pid) for task in tasks for pid in (task / "children").read_text().split()]


def reap() -> None:
    """Collect ended orphans, which would else look as if they ran."""
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def end_everything() -> None:
    """End the children, whose children become ours, until there are none."""
    with contextlib.suppress(ChildProcessError):
        while True:
            for pid in children():
                os.kill(pid, signal.SIGKILL)
            os.waitpid(-1, 0)


def run(files: Files) -> None:
    become_login_host(files)
    start_munged(files)
    start(["slurmctld", "-D"], files.log("slurmctld"), {})
    for number, node in enumerate(NODES, 1):
        start_node(files, number, node)
    signal.signal(signal.SIGCHLD, lambda *_: reap())
    sys.stdout.write(f"{READY}\n")
    sys.stdout.flush()
    sys.stdin.read()


def main() -> None:
    files = Files(Path(sys.argv[1]))
    adopt_orphans()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)  # the end of the input says when to stop
    try:
        run(files)
    finally:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        end_everything()
        shutil.rmtree(files.folder, ignore_errors=True)


if __name__ == "__main__":
    main()
