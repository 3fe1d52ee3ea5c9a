"""Read the debug output of NCCL and RCCL: the network of each process, and its reasons.

Lines are `host:pid:tid [device] NCCL INFO message` (NCCL, src/debug.cc), the host up to its first
dot.
"""

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

# The pattern may match anywhere in a line. Launchers, schedulers and clocks put their own words
# before it, and unbuffered writers glue one line to another.
_START = re.compile(r"(?P<host>[A-Za-z0-9_.-]+):(?P<pid>\d+):\d+ \[-?\d+\] ")
# A warning names its place in the source first.
_LEVEL = re.compile(r".*?\bNCCL (?P<level>INFO|WARN) (?P<message>.*)")
# NCCL src/init.cc and src/plugin/net.cc; `internal` up to 2.4.
_NETWORK = re.compile(
    r"Using (?:internal )?[Nn]etwork (?P<a>.+)"
    r"|Assigned NET plugin (?P<b>.+) to comm$"
    r"|.*\[(?:send|receive)\] via NET/(?P<c>[^/]+)/\d"
)
# aws-ofi-nccl src/nccl_ofi_net.cpp; aws-ofi-rccl and releases before 1.10 write `Provider`.
_PROVIDER = re.compile(r"NET/OFI Selected [Pp]rovider is (?P<name>[^\s,]+)")
# Lines about the plugin for the network; NCCL has other plugins, which are seldom there.
_HINT = re.compile(
    r"(?!(?:ENV|TUNER|PROFILER)/)"
    r".*(?:No plugin found|Could not find: *lib|Plugin load|dlerror=|cannot open shared object"
    r"|initialization failed|Initializing plugin failed|No eligible providers|optimal provider"
    r"|Failed to initialize (?:any )?NET plugin|NCCL_NET(?:_PLUGIN)? set by environment)"
)
HINTS = 3


class Process(NamedTuple):
    """One rank's process; `host` up to its first dot."""

    host: str
    pid: int


@dataclass(frozen=True, kw_only=True, slots=True)
class NetworkEvidence:
    """The log of one process: names of networks and libfabric providers, each with its line.

    `hints` say why the network's plugin is not used; `warnings` are all warnings.
    """

    networks: dict[str, str] = field(default_factory=dict)
    providers: dict[str, str] = field(default_factory=dict)
    hints: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)


def parse_nccl_log(text: str, known: Collection[Process] = ()) -> dict[Process, NetworkEvidence]:
    """Return the network evidence of each process in a log.

    `known` processes are recognised even if another line is glued to the front of their names. A
    message that is cut off that way is no evidence: `Using network AWS Lib` names nothing.
    """
    logs: dict[Process, NetworkEvidence] = {}
    for line in text.splitlines():
        for process, entry, whole in _messages(line, known):
            evidence = logs.setdefault(process, NetworkEvidence())
            message = entry["message"].strip()
            if entry["level"] == "WARN":
                evidence.warnings.append(message)
            _note(evidence, message, whole=whole)
    return logs


def _messages(
    line: str, known: Collection[Process]
) -> Iterator[tuple[Process, re.Match[str], bool]]:
    """Yield process, level and message of each part of a line, and whether its end is there."""
    starts = list(_START.finditer(line))
    for number, start in enumerate(starts):
        last = number + 1 == len(starts)
        rest = line[start.end() : None if last else starts[number + 1].start()]
        if entry := _LEVEL.match(rest):
            yield _process(start, known), entry, last


def _process(start: re.Match[str], known: Collection[Process]) -> Process:
    host, pid = start["host"].split(".")[0], int(start["pid"])
    ends = (process for process in known if process.pid == pid and host.endswith(process.host))
    return max(ends, key=lambda process: len(process.host), default=Process(host, pid))


def _note(evidence: NetworkEvidence, message: str, *, whole: bool) -> None:
    if _HINT.match(message) and message not in evidence.hints[:HINTS]:
        evidence.hints.append(message)
    if not whole:
        return
    if network := _NETWORK.match(message):
        evidence.networks.setdefault(next(filter(None, network.groups())).strip(), message)
    if provider := _PROVIDER.match(message):
        evidence.providers.setdefault(provider["name"], message)
