"""Logs of NCCL and RCCL from public sources, which tests read."""

from __future__ import annotations

from sifwright.launch.comm.nccl_log import Process
from tests.conftest import ROOT

LOGS = ROOT / "tests" / "system" / "comm" / "logs"


def log(name: str) -> str:
    """Return a log of the corpus, without the line that names its source."""
    source, _, text = (LOGS / f"{name}.log").read_text().partition("\n")
    assert source.startswith("# "), f"{name}: the first line names the source"
    return text


def ranks(*places: str) -> list[Process]:
    """Return processes from `host:pid`."""
    pairs = (folder.split(":") for folder in places)
    return [Process(host, int(pid)) for host, pid in pairs]
