"""The verdict: proven on every rank, or failed; never passed for want of a line."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sifwright.launch.comm.nccl_log import Process, parse_nccl_log
from sifwright.launch.comm.verdict import Verdict, judge
from tests.nccl_logs import log, ranks

CXI = ("NET/OFI", "cxi")
EFA = ranks("test-nccl-efa-worker-0:21", "test-nccl-efa-worker-1:21")
SLINGSHOT = ranks("nid005001:4101", "nid005002:5101")
CRUSHER = ranks("crusher002:81767", "crusher003:24359")


def verdict(expect: tuple[str, ...], processes: list[Process], text: str) -> Verdict:
    return judge(expect, processes, parse_nccl_log(text, processes))


@pytest.mark.parametrize(
    ("expect", "processes", "name"),
    [
        (("NET/OFI", "efa"), EFA, "good-efa-two-nodes"),
        (("NET/OFI",), EFA, "good-efa-two-nodes"),
        (("AWS Libfabric",), EFA, "good-efa-two-nodes"),
        (("efa",), EFA, "good-efa-two-nodes"),
        (CXI, SLINGSHOT, "good-cxi-old-and-new"),
        (("NET/IB",), ranks("dgxh100-4:460770", "dgxh100-3:2152176"), "infiniband-two-nodes"),
        (("NET/Socket",), CRUSHER, "fallback-crusher-rccl"),
    ],
)
def test_proven(expect: tuple[str, ...], processes: list[Process], name: str) -> None:
    result = verdict(expect, processes, log(name))
    assert (result.state, result.problems) == ("proven", ())
    assert "2 ranks of 2 nodes" in result.text


def test_sockets_are_told_with_ranks_hosts_and_the_line() -> None:
    result = verdict(CXI, CRUSHER, log("fallback-crusher-rccl"))
    assert result.state == "failed"
    (problem,) = result.problems
    assert problem.where == "rank 0-1 on crusher002, crusher003"
    assert problem.what == (
        "fell back to TCP sockets: 'Using network Socket' after 'NET/Plugin : No plugin found"
        " (librccl-net.so), using internal implementation'"
    )
    for word in ("libnccl-net.so", "librccl-net.so", "NCCL_NET_PLUGIN", "LD_LIBRARY_PATH"):
        assert word in problem.fix
    assert "fi_info -p cxi" in problem.fix
    assert "libcxi.so.1" in problem.fix


def test_advice_on_cxi_is_for_cxi() -> None:
    (problem,) = verdict(("NET/OFI", "efa"), CRUSHER, log("fallback-crusher-rccl")).problems
    assert "cxi" not in problem.fix
    assert "fi_info -p efa" in problem.fix


def test_one_host_of_many_that_falls_back_is_found() -> None:
    processes = [*SLINGSHOT, CRUSHER[1]]
    text = log("good-cxi-old-and-new") + log("fallback-crusher-rccl")
    result = verdict(CXI, processes, text)
    assert result.state == "failed"
    assert result.text == "1 of 3 ranks did not prove NET/OFI and cxi"
    assert [problem.where for problem in result.problems] == ["rank 2 on crusher003"]


def test_libfabric_over_tcp_is_found_though_nccl_calls_it_libfabric() -> None:
    processes = ranks("x3005c0s13b0n0:12345", "x3006c0s1b0n0:777")
    result = verdict(CXI, processes, log("tcp-provider"))
    (problem,) = result.problems
    assert problem.where == "rank 0 on x3005c0s13b0n0"
    assert problem.what.startswith(
        "cxi expected, but it is tcp: 'NET/OFI Selected provider is tcp,"
    )


def test_another_plugin_is_not_the_expected_one() -> None:
    processes = ranks("qh100-gpu19:49355", "qh100-gpu20:39629")
    first, second = verdict(CXI, processes, log("other-plugin-ibext")).problems
    assert first.what == "NET/OFI expected, but it is IBext: 'Using network IBext'"
    assert second.what == "not proven, its log says nothing of a network"


@pytest.mark.parametrize(
    ("name", "processes", "text"),
    [
        ("glued-perlmutter", ranks("nid002432:7338", "nid002156:81033"), "cxi not proven"),
        (
            "cxi-provider-lines",
            ranks("nid000019:51404", "nid000019:51338", "nid000020:1"),
            "NET/OFI not proven",
        ),
    ],
)
def test_one_of_two_is_not_enough(name: str, processes: list[Process], text: str) -> None:
    assert verdict(CXI, processes, log(name)).problems[0].what == text


def test_another_process_of_the_host_proves_nothing_for_a_rank() -> None:
    processes = [SLINGSHOT[0], Process("nid005002", 9999)]
    result = verdict(CXI, processes, log("good-cxi-old-and-new"))
    assert [problem.where for problem in result.problems] == ["rank 1 on nid005002"]


def test_one_node_proves_nothing() -> None:
    result = verdict(CXI, SLINGSHOT[:1] * 2, log("good-cxi-old-and-new"))
    assert (result.state, result.problems) == ("not checked", ())
    assert "one node" in result.text


def test_a_site_that_expects_nothing_still_refuses_sockets() -> None:
    assert verdict((), CRUSHER, log("fallback-crusher-rccl")).state == "failed"
    result = verdict((), SLINGSHOT, log("good-cxi-old-and-new"))
    assert result.state == "not checked"
    assert result.text.startswith("network AWS Libfabric, Libfabric;")


def test_many_hosts_are_not_all_listed() -> None:
    processes = [Process(f"nid{number:06}", pid) for number in range(100) for pid in (1, 2)]
    (problem,) = verdict(CXI, processes, "").problems
    assert problem.where.startswith("rank 0-199 on nid000000, nid000001, ")
    assert problem.where.endswith(" and 92 more")


BAD = [log("fallback-crusher-rccl"), log("tcp-provider"), log("fallback-two-of-eight")]


@given(st.data(), st.sampled_from(BAD))
def test_no_damage_makes_a_fallback_a_proof(data: st.DataObject, bad: str) -> None:
    """Lose lines, cut either end, glue them together, in any order, among good ones."""
    good = log("good-cxi-old-and-new")
    processes = [
        *SLINGSHOT,
        *(rank for rank in parse_nccl_log(bad) if rank.host != "x3006c0s1b0n0"),
    ]
    lines = data.draw(st.permutations((good + bad).splitlines()))
    damaged = "".join(
        line[slice(*sorted(data.draw(st.tuples(st.integers(0, 300), st.integers(0, 300)))))]
        + data.draw(st.sampled_from(["\n", "\r\n", "", " "]))
        for line in lines
    )
    assert verdict(CXI, processes, damaged).state == "failed"
    assert verdict(CXI, processes, "\n".join(lines)).state == "failed"
