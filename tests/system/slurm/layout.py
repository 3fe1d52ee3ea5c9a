"""Layout of the tests' cluster: a login host and three nodes on two networks.

Every host is a set of namespaces: a network of its own, its own name, its own /tmp and /dev/shm.
Nothing of it can be seen from, or clash with, the machine that runs the tests.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

NODES = ("nid001", "nid002", "nid003")
LOGIN = "login1"
# The two networks: the one that host names resolve to, and the fast one.
INTERFACES = {"eth0": "10.77.0", "hsn0": "10.78.0"}
LOGIN_NUMBER = 254
# Behind the login host, which forwards nothing: packets vanish, as behind a firewall.
BLACK_HOLE = "198.51.100.7"
CPUS = 64  # for thirty jobs on one node at once
# Slurm counts them and numbers them for each task; nothing opens them.
GPUS = 4
GPU_FILES = f"/dev/tty[1-{GPUS}]"
RESERVED_PORTS = "20000-20199"


def address(number: int, interface: str = "eth0") -> str:
    return f"{INTERFACES[interface]}.{number}"


def hosts_file() -> str:
    """Return the text of /etc/hosts on every host of the cluster."""
    lines = ["127.0.0.1 localhost", f"{address(LOGIN_NUMBER)} {LOGIN}"]
    for number, node in enumerate(NODES, 1):
        lines += [f"{address(number)} {node}", f"{address(number, 'hsn0')} {node}-hsn0"]
    return "".join(f"{line}\n" for line in lines)


@dataclass(frozen=True)
class Files:
    """The folder of one cluster, the same path on all of its hosts."""

    folder: Path

    @property
    def slurm_conf(self) -> Path:
        return self.folder / "slurm.conf"

    @property
    def key(self) -> Path:
        return self.folder / "munge.key"

    @property
    def socket(self) -> Path:
        return self.folder / "munge.socket"

    @property
    def hosts(self) -> Path:
        return self.folder / "hosts"

    @property
    def shared(self) -> Path:
        """Return the folder for the files of the tests: scripts, checkpoints, output."""
        return self.folder / "shared"

    def pid(self, host: str) -> Path:
        """Return the file with the id of a process in the host's namespaces."""
        return self.folder / f"{host}.pid"

    def log(self, name: str) -> Path:
        return self.folder / "log" / f"{name}.log"

    def write(self) -> None:
        for name in ("log", "state", "shared"):
            (self.folder / name).mkdir(parents=True)
        # munged wants nobody else to be able to put a socket there, and everybody to reach it.
        self.folder.chmod(0o755)
        self.key.write_bytes(os.urandom(128))
        self.key.chmod(0o400)
        self.hosts.write_text(hosts_file())
        self.slurm_conf.write_text(slurm_conf(self.folder))
        (self.folder / "gres.conf").write_text(f"Name=gpu File={GPU_FILES}\n")


def slurm_conf(folder: Path) -> str:
    """Return one line per choice; all others are Slurm's defaults (slurm.conf(5))."""
    settings = {
        "ClusterName": "sifwright",
        "SlurmctldHost": f"{LOGIN}({address(LOGIN_NUMBER)})",
        "SlurmUser": "root",
        "AuthType": "auth/munge",
        "AuthInfo": f"socket={Files(folder).socket}",
        "StateSaveLocation": f"{folder}/state",
        "SlurmdSpoolDir": f"{folder}/spool.%n",
        "SlurmctldPidFile": f"{folder}/slurmctld.pid",
        "SlurmdPidFile": f"{folder}/slurmd.%n.pid",
        "SlurmctldParameters": "enable_configless",
        "SelectType": "select/cons_tres",
        "SelectTypeParameters": "CR_Core",
        # The nodes say they have more CPUs than this machine: several jobs fit on each at once.
        "SlurmdParameters": "config_overrides",
        "ProctrackType": "proctrack/linuxproc",
        "TaskPlugin": "task/none",
        "JobAcctGatherType": "jobacct_gather/none",
        "AccountingStorageType": "accounting_storage/none",
        "MpiDefault": "none",
        "MpiParams": f"ports={RESERVED_PORTS}",
        "PropagateResourceLimits": "NONE",
        "GresTypes": "gpu",
        "SchedulerParameters": "sched_min_interval=0,bf_interval=1",
        "ReturnToService": "2",
        "KillWait": "2",
        # Minutes: the limits of jobs are those of users, and this machine may be busy.
        "OverTimeLimit": "30",
    }
    lines = [f"{name}={value}" for name, value in settings.items()]
    lines += [
        f"NodeName={node} NodeAddr={address(number)} CPUs={CPUS} Gres=gpu:{GPUS} Feature=nvme,x86"
        for number, node in enumerate(NODES, 1)
    ]
    nodes = ",".join(NODES)
    lines.append(f"PartitionName=all Nodes={nodes} Default=YES MaxTime=10 State=UP")
    lines.append(f"PartitionName=short Nodes={nodes} MaxTime=5 State=UP")
    return "".join(f"{line}\n" for line in lines)
