"""Judge by NCCL's log if every rank used the network that its site expects.

Times do not tell: an MNIST training on LUMI took as long over sockets as over cxi. A missing line
fails: the check needs proof.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from sifwright.errors import Problem
from sifwright.launch.comm.nccl_log import NetworkEvidence, Process
from sifwright.system.terminal import first_names, ranges

_PREFIX = "NET/"
# A network has several names. The plugin aws-ofi-nccl is AWS Libfabric up to 1.11, later Libfabric,
# and OFI under NCCL_NET=OFI. NVIDIA's own plugin for InfiniBand is IBext, IBext_v6, …
_ALIASES = {
    "ofi": re.compile(r"(AWS )?Libfabric|OFI", re.IGNORECASE),
    "ib": re.compile(r"IB(ext(_v\d+)?)?", re.IGNORECASE),
}
_SOCKET = "socket"
_CHECKS = """\
In the container, NCCL must find libnccl-net.so (RCCL before ROCm 7.2: librccl-net.so)
in LD_LIBRARY_PATH, or the file that NCCL_NET_PLUGIN names; `ldd` on it must find libfabric.
libfabric must have the provider: `fi_info -p {provider}` in the container on a node.
cxi needs libcxi.so.1 in the image or bound, and the host's /dev/cxi*.
With NCCL_NET='AWS Libfabric', NCCL stops instead of falling back."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Verdict:
    """`problems` are there if it `failed`; `text` is one line for a person."""

    state: Literal["proven", "failed", "not checked"]
    text: str
    problems: tuple[Problem, ...] = ()


def judge(
    expect: Sequence[str], ranks: Sequence[Process], log: Mapping[Process, NetworkEvidence]
) -> Verdict:
    """Judge by the log of each rank's process; `ranks` is in the order of the ranks.

    In `expect`, `NET/NAME` is a network and other strings are libfabric providers (or networks).
    """
    hosts = {rank.host for rank in ranks}
    if len(hosts) == 1:
        text = "one node: its ranks need no network, so nothing is proven; use two nodes or more"
        return Verdict(state="not checked", text=text)
    silent = NetworkEvidence()
    reasons = {
        number: reason
        for number, rank in enumerate(ranks)
        if (reason := _reason(expect, log.get(rank, silent)))
    }
    if reasons:
        wanted = " and ".join(expect) or "their network"
        return Verdict(
            state="failed",
            text=f"{len(reasons)} of {len(ranks)} ranks did not prove {wanted}",
            problems=tuple(_problems(expect, ranks, reasons)),
        )
    if not expect:
        names = {name for rank in ranks for name in log[rank].networks}
        text = f"network {', '.join(sorted(names))}; the site names none that it expects"
        return Verdict(state="not checked", text=text)
    text = f"{' and '.join(expect)} proven on {len(ranks)} ranks of {len(hosts)} nodes"
    return Verdict(state="proven", text=text)


def _reason(expect: Sequence[str], evidence: NetworkEvidence) -> tuple[str, str] | None:
    """Return what is wrong with a rank, and the lines that show it."""
    if not evidence.networks and not evidence.providers:
        return "not proven, its log says nothing of a network", _quoted(*evidence.hints[:1])
    for name, line in evidence.networks.items():
        if _is(_SOCKET, name) and not any(_is(_SOCKET, _name(text)) for text in expect):
            return "fell back to TCP sockets", _quoted(line, *evidence.hints[:1])
    return next((wrong for text in expect if (wrong := _unproven(text, evidence))), None)


def _unproven(text: str, evidence: NetworkEvidence) -> tuple[str, str] | None:
    """Return why one expectation is not proven: all networks must be the expected one."""
    names = evidence.networks if _is_network(text) else evidence.providers
    for name, line in names.items():
        if not _is(_name(text), name):
            return f"{text} expected, but it is {name}", _quoted(line, *evidence.hints[:1])
    return None if names else (f"{text} not proven", _quoted(*evidence.hints[:1]))


def _name(text: str) -> str:
    return text.removeprefix(_PREFIX)


def _is_network(text: str) -> bool:
    known = (alias.fullmatch(text) for alias in _ALIASES.values())
    return text.startswith(_PREFIX) or any(known) or text.lower() == _SOCKET


def _is(wanted: str, name: str) -> bool:
    """Return whether a name in the log is the wanted one.

    Providers may be layered, `tcp;ofi_rxm`.
    """
    if alias := _ALIASES.get(wanted.lower()):
        return alias.fullmatch(name) is not None
    return wanted.lower() in {name.lower(), name.lower().split(";")[0]}


def _quoted(*lines: str) -> str:
    return " after ".join(f"'{line}'" for line in lines)


def advice(expect: Sequence[str]) -> str:
    """Return the advice for a plugin that does not work."""
    provider = next((text for text in expect if not _is_network(text)), "PROVIDER")
    checks = (line for line in _CHECKS.splitlines() if provider == "cxi" or "cxi" not in line)
    return "\n    ".join(checks).format(provider=provider)


def _problems(
    expect: Sequence[str], ranks: Sequence[Process], reasons: Mapping[int, tuple[str, str]]
) -> Iterator[Problem]:
    """Yield a problem for each kind of reason, with the lines of its first rank; advice once."""
    fix = advice(expect)
    for message in dict.fromkeys(message for message, _ in reasons.values()):
        numbers = [number for number in reasons if reasons[number][0] == message]
        hosts = sorted({ranks[number].host for number in numbers})
        lines = reasons[numbers[0]][1]
        yield Problem(
            where=f"rank {ranges(numbers)} on {first_names(hosts, 8)}",
            what=f"{message}: {lines}" if lines else message,
            fix=fix,
        )
        fix = ""
