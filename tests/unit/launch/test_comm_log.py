"""Facts from the words of NCCL and RCCL."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sifwright.launch.comm.nccl_log import NetworkEvidence, parse_nccl_log
from tests.nccl_logs import log, ranks


def names(evidence: NetworkEvidence) -> tuple[list[str], list[str]]:
    return list(evidence.networks), list(evidence.providers)


# The process, its networks and its providers.
EVIDENCE = {
    "fallback-plugin-failed": "ip-10-36-29-253:86 [Socket] []",
    "fallback-two-of-eight": """
        algo-1:17773 [] []
        algo-1:17774 [Socket] []
        algo-1:17780 [Socket] []
        algo-1:18562 [AWS Libfabric] []""",
    "plugin-fails-polaris": "x3002c0s31b0n0:3333526 [] []",
    "internal-network": """
        gpu2:46654 [Socket] []
        gpu2:46655 [Socket] []""",
    "no-plugin-nccl-2.27": """
        2e5hmh4t0q1th5f:205631 [] []
        2e5hmh4t0q1th5f:205632 [] []""",
}


@pytest.mark.parametrize("name", EVIDENCE)
def test_networks_and_providers(name: str) -> None:
    lines = [
        f"{process.host}:{process.pid} [{', '.join(seen.networks)}] [{', '.join(seen.providers)}]"
        for process, seen in sorted(parse_nccl_log(log(name)).items())
    ]
    assert lines == [line.strip() for line in EVIDENCE[name].strip().splitlines()]


def test_a_line_glued_to_another_belongs_to_its_own_process() -> None:
    known = ranks("nid002432:7338", "nid002661:27599", "nid002336:75702", "nid002156:81033")
    result = parse_nccl_log(log("glued-perlmutter"), known)
    assert set(result) == set(known)
    assert {names(message)[0][0] for message in result.values()} == {"AWS Libfabric"}


def test_reasons_are_kept() -> None:
    (message,) = parse_nccl_log(log("fallback-plugin-failed")).values()
    assert message.hints[0] == "NET/OFI aws-ofi-nccl initialization failed"
    (message,) = (
        message for message in parse_nccl_log(log("no-plugin-nccl-2.27")).values() if message.hints
    )
    assert message.hints == ["NET/Plugin: Could not find: libnccl-net.so."]


def test_other_plugins_are_no_reason() -> None:
    """Ignore plugins of environment, tuner and profiler, which NCCL 2.28 looks for, too."""
    for message in parse_nccl_log(log("fallback-nccl-2.28")).values():
        assert message.hints[0] == "NET/Plugin: Could not find: libnccl-net.so"
        assert message.hints[1:] == ["Failed to initialize NET plugin IB"]


@pytest.mark.parametrize(
    "line",
    [
        "nid1:1:2 [0] NCCL INFO Using network AWS Libnid2:3:4 [0] NCCL INFO cudaDriverVersion 12",
        "nid1:1:2 [0] NCCL INFO NET/OFI Selected Provider is cnid2:3:4 [0] NCCL INFO x",
    ],
)
def test_cut_lines_are_no_evidence(line: str) -> None:
    result = parse_nccl_log(line, ranks("nid1:1", "nid2:3"))
    assert set(result) == set(ranks("nid1:1", "nid2:3"))
    assert all(names(message) == ([], []) for message in result.values())


@pytest.mark.parametrize(
    "text",
    ["", "\n\n", "\x00\xff", "Using network AWS Libfabric", "nid1:1 [0] NCCL INFO Using network x"],
)
def test_lines_of_other_programs_are_ignored(text: str) -> None:
    assert parse_nccl_log(text) == {}


@given(st.text())
def test_no_text_breaks_it(text: str) -> None:
    parse_nccl_log(text)
    parse_nccl_log(f"nid1:1:2 [0] NCCL INFO {text}")


@given(st.data())
def test_the_order_of_processes_does_not_matter(data: st.DataObject) -> None:
    text = log("good-efa-two-nodes") + log("fallback-crusher-rccl") + log("tcp-provider")
    queues: dict[str, list[str]] = {}
    for line in text.splitlines():
        queues.setdefault(line.rsplit("] NCCL", 1)[0].rsplit(":", 1)[0], []).append(line)
    mixed = []
    while left := [queue for queue in queues.values() if queue]:
        mixed.append(data.draw(st.sampled_from(left)).pop(0))
    assert parse_nccl_log("\n".join(mixed)) == parse_nccl_log(text)
