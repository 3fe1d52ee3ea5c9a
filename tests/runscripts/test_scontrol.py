"""R10: the whole host list as Slurm itself expands it, `scontrol show hostnames`."""

from __future__ import annotations

import os
import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from launch import hostlist

from .test_get_master import HOSTLISTS

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from launch.hostlist import Element, Range

CONFIGURATION = """ClusterName=test
SlurmctldHost=localhost
NodeName=localhost
PartitionName=test Nodes=ALL
"""
END = "end-of-answer"
EXAMPLES = 300
# A range is (low, high, width), a part a text or ranges, an element alternates text and ranges.
RANGE = st.builds(
    lambda low, span, width: (low, low + span, width),
    st.integers(0, 120),
    st.integers(0, 12),
    st.integers(1, 5),
)
TEXT = st.text("abcXYZ0189_.-", min_size=1, max_size=5).filter(lambda text: text[0] != "-")
# Text after the last bracket is for newer versions of Slurm than Debian 12's 22.05: see below.
PARTS = st.lists(st.lists(RANGE, min_size=1, max_size=3) | TEXT, min_size=1, max_size=4)
ELEMENTS = PARTS.map(lambda parts: parts if any(map(is_bracket, parts)) else parts[:1]).filter(
    lambda parts: (is_bracket(parts[-1]) or len(parts) == 1) and hostlist.element_size(parts) < 3000
)


def written(element: Element) -> str:
    parts = (part if isinstance(part, str) else bracket(part) for part in element)
    return "".join(parts)


def bracket(ranges: list[Range]) -> str:
    texts = (
        f"{low:0{width}}-{high}" if low < high else f"{low:0{width}}" for low, high, width in ranges
    )
    return f"[{','.join(texts)}]"


def is_bracket(part: object) -> bool:
    return not isinstance(part, str)


class Scontrol:
    """One `scontrol` that answers question after question; it needs a configuration, no daemon."""

    def __init__(self, program: str, folder: Path) -> None:
        (folder / "slurm.conf").write_text(CONFIGURATION)
        self.process = subprocess.Popen(
            [program],
            # readline repeats what it reads: without wrapping it, that is a line to leave out.
            env={"SLURM_CONF": str(folder / "slurm.conf"), "TERM": "dumb", "COLUMNS": "100000"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )

    def hosts(self, text: str) -> list[str]:
        assert self.process.stdin
        assert self.process.stdout
        self.process.stdin.write(f"show hostnames {text}\nshow hostnames {END}\n")
        self.process.stdin.flush()
        lines = iter(self.process.stdout.readline, "")
        answer = (line.rstrip("\n") for line in lines)
        results: list[str] = []
        for line in answer:
            if line == END:
                return results
            if not line.startswith("scontrol: "):
                results.append(line)
        raise AssertionError(text)

    def end(self) -> None:
        self.process.communicate(timeout=240)


@pytest.fixture(scope="module")
def scontrol(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scontrol]:
    program = shutil.which("scontrol")
    if program is None:
        if os.environ.get("CI"):
            pytest.fail("CI installs Slurm, but there is no scontrol: tools/install-test-programs")
        pytest.skip("scontrol is not installed: tools/install-test-programs")
    output = Scontrol(program, tmp_path_factory.mktemp("scontrol"))
    yield output
    output.end()


@settings(max_examples=EXAMPLES, suppress_health_check=list(HealthCheck))
@given(elements=st.lists(ELEMENTS, min_size=1, max_size=3))
def test_generated_lists(scontrol: Scontrol, elements: list[Element]) -> None:
    text = ",".join(map(written, elements))
    parsed = hostlist.parse(text)
    hosts = list(hostlist.expand(parsed))
    assert hosts == scontrol.hosts(text)
    assert hostlist.first_host(parsed) == hosts[0]


@settings(max_examples=200)
@given(element=ELEMENTS.filter(lambda parts: is_bracket(parts[-1])), suffix=TEXT)
def test_text_after_the_last_bracket(scontrol: Scontrol, element: Element, suffix: str) -> None:
    """Expand as newer Slurm: the list without the text, and the text after every host."""
    hosts = list(hostlist.expand(hostlist.parse(written(element) + suffix)))
    assert hosts == [host + suffix for host in scontrol.hosts(written(element))]


def test_hard_lists(scontrol: Scontrol) -> None:
    """Compare the corpus of test_get_master.py, except lists that Slurm prints on no one line."""
    asked = {text: hosts.split() for text, hosts in HOSTLISTS.items() if text.split() == [text]}
    answers = {text: scontrol.hosts(text) for text in asked}
    differing = {text for text, hosts in asked.items() if answers[text] not in (hosts, [])}
    assert differing == set()
    assert sum(map(bool, answers.values())) > len(asked) // 2
