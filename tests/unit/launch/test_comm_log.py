"""Facts from the words of NCCL and RCCL."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sifwright.launch.comm.nccl_log import NetworkEvidence, Process, parse_nccl_log
from tests.nccl_logs import LOGS, log, ranks


def names(evidence: NetworkEvidence) -> tuple[list[str], list[str]]:
    return list(evidence.networks), list(evidence.providers)


def test_every_log_names_its_source() -> None:
    assert len(list(LOGS.glob("*.log"))) > 10
    for path in LOGS.glob("*.log"):
        assert log(path.stem)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        (
            "good-efa-two-nodes",
            {
                Process("test-nccl-efa-worker-0", 21): (["AWS Libfabric"], ["efa"]),
                Process("test-nccl-efa-worker-1", 21): (["AWS Libfabric"], ["efa"]),
            },
        ),
        (
            "good-cxi-old-and-new",
            {
                Process("nid005001", 4101): (["AWS Libfabric"], ["cxi"]),
                Process("nid005002", 5101): (["Libfabric"], ["cxi"]),
            },
        ),
        (
            "fallback-crusher-rccl",
            {
                Process("crusher002", 81767): (["Socket"], []),
                Process("crusher003", 24359): (["Socket"], []),
            },
        ),
        ("fallback-plugin-failed", {Process("ip-10-36-29-253", 86): (["Socket"], [])}),
        (
            "fallback-two-of-eight",
            {
                Process("algo-1", 17774): (["Socket"], []),
                Process("algo-1", 17780): (["Socket"], []),
                Process("algo-1", 17773): ([], []),
                Process("algo-1", 18562): (["AWS Libfabric"], []),
            },
        ),
        (
            "cxi-provider-lines",
            {Process("nid000019", pid): ([], ["cxi"]) for pid in (51404, 51338)},
        ),
        ("plugin-fails-polaris", {Process("x3002c0s31b0n0", 3333526): ([], [])}),
        (
            "infiniband-two-nodes",
            {
                Process("dgxh100-4", 460770): (["IB"], []),
                Process("dgxh100-3", 2152176): (["IB"], []),
            },
        ),
        (
            "other-plugin-ibext",
            {
                Process("qh100-gpu19", 49355): (["IBext"], []),
                Process("qh100-gpu19", 49357): (["IBext"], []),
                Process("qh100-gpu20", 39629): ([], []),
            },
        ),
        (
            "internal-network",
            {Process("gpu2", pid): (["Socket"], []) for pid in (46654, 46655)},
        ),
        (
            "no-plugin-nccl-2.27",
            {Process("2e5hmh4t0q1th5f", pid): ([], []) for pid in (205631, 205632)},
        ),
        (
            "tcp-provider",
            {
                Process("x3005c0s13b0n0", 12345): (["AWS Libfabric"], ["tcp"]),
                Process("x3006c0s1b0n0", 777): (["AWS Libfabric"], ["cxi"]),
            },
        ),
    ],
)
def test_networks_and_providers(
    name: str, expected: dict[Process, tuple[list[str], list[str]]]
) -> None:
    assert {
        process: names(message) for process, message in parse_nccl_log(log(name)).items()
    } == expected


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
    [
        "",
        "\n\n",
        "Using network AWS Libfabric",
        "nid1:1 [0] NCCL INFO Using network OFI",
        "\x00\xff",
    ],
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
