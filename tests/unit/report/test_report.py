"""The page of `sifwright report`: where the bytes go, and that nothing in it gets out."""

from __future__ import annotations

import html.parser
import re
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sifwright.images.contents.layer_stack import LayeredNode
from sifwright.images.contents.listing import ListedPath
from sifwright.images.contents.packages import Package
from sifwright.plan.plan_file import Choice, PlanFacts, SourceFacts, StepFacts
from sifwright.report.page import report_data as gathering
from sifwright.report.page import sizes
from sifwright.report.page.html import render
from sifwright.report.page.report_data import Facts
from sifwright.report.page.sizes import Box, LayerSize, Part, layout, squares
from sifwright.system.progress import QuietProgress, Timer

EVIL = "<script>alert(1)</script>\"'&{{ 7*7 }}\x1b[2J\x00\u202e</pre></title><img src=//x>"
POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-"


def node(path: bytes, size: int, links: int = 0) -> ListedPath:
    return ListedPath(path=path, kind="file", size=size, links=links)


@given(st.lists(st.integers(1, 10**4), min_size=1, max_size=60))
def test_squares_fill_their_box(values: list[int]) -> None:
    box, values = Box(x=3.0, y=5.0, width=960.0, height=520.0), sorted(values, reverse=True)
    found = squares(values, box)
    area = box.width * box.height
    for value, one in zip(values, found, strict=True):
        assert one.width * one.height == pytest.approx(area * value / sum(values), rel=1e-3)
        assert box.x - 1e-3 <= one.x
        assert one.x + one.width <= box.x + box.width + 1e-3
        assert box.y - 1e-3 <= one.y
        assert one.y + one.height <= box.y + box.height + 1e-3


def test_squares_do_not_overlap() -> None:
    found = squares([50, 30, 10, 5, 3, 1, 1], Box(x=0.0, y=0.0, width=100.0, height=60.0))
    for number, one in enumerate(found):
        for two in found[number + 1 :]:
            apart = one.x + one.width <= two.x + 1e-6 or two.x + two.width <= one.x + 1e-6
            below = one.y + one.height <= two.y + 1e-6 or two.y + two.height <= one.y + 1e-6
            assert apart or below


def test_no_room_and_nothing_to_show() -> None:
    assert squares([], Box(x=0.0, y=0.0, width=1.0, height=1.0)) == []
    assert squares([2, 1], Box(x=0.0, y=0.0, width=0.0, height=1.0))[1].width == 0
    assert layout([LayerSize(name="empty", packed=0, parts=())], 10, 10) == []


def test_what_is_too_small_to_see_is_one_cell() -> None:
    parts = [Part(kind="python", name="big", bytes=10**6, files=1)]
    parts += [Part(kind="python", name=f"p{number}", bytes=100, files=1) for number in range(40)]
    [frame] = layout([LayerSize(name="l", packed=0, parts=tuple(parts))], 960, 520)
    assert [cell.name for cell in frame.cells] == ["big", "40 smaller"]
    assert sum(cell.bytes for cell in frame.cells) == 10**6 + 4000


def test_what_cannot_be_seen_at_all_is_left_out() -> None:
    """squarify would call itself for each, and divide by what is left of the width: nothing."""
    parts = tuple(
        Part(kind="", name=str(number), bytes=1 if number else 1 << 60, files=1)
        for number in range(3)
    )
    layers = [LayerSize(name="huge", packed=0, parts=parts)]
    layers += [LayerSize(name="tiny", packed=0, parts=parts[1:])] * 4000
    [frame] = layout(layers, 960, 520)
    assert [cell.name for cell in frame.cells] == ["0"]


def test_every_byte_counts_once() -> None:
    tree = {
        b"a": LayeredNode(node=node(b"a", 5), layer=0),
        b"b": LayeredNode(node=node(b"b", 7, links=1), layer=0),
        b"c": LayeredNode(node=node(b"c", 7, links=1), layer=0),
        b"d": LayeredNode(node=node(b"d", 9, links=1), layer=1),
        b"f": LayeredNode(node=ListedPath(path=b"f", kind="folder"), layer=1),
    }
    owner = Package(kind="debian", name="p", version="1", files=(b"a", b"b", b"f", b"gone"))
    low, high = sizes.attribute(tree, [owner], [("low", 4), ("high", 0)])
    assert [(part.name, part.bytes, part.files) for part in low.parts] == [
        ("p", 12, 2),
        (sizes.OTHER, 0, 1),
    ]
    assert (low.bytes, low.files, low.packed, high.bytes) == (12, 3, 4, 9)


def test_layers_of_a_flat_image() -> None:
    tree = {name: LayeredNode(node=node(name, 3), layer=0) for name in (b"a", b"b", b"c")}
    known = {
        b"a": LayeredNode(node=node(b"a", 3), layer=1),
        b"b": LayeredNode(node=node(b"b", 4), layer=1),
        b"z": LayeredNode(node=node(b"z", 1), layer=0),
    }
    found = sizes.regrouped(tree, known, 2)
    assert {path: one.layer for path, one in found.items()} == {b"a": 1, b"b": 2, b"c": 2}


def test_timeline_of_a_timer() -> None:
    with Timer(QuietProgress()) as timer:
        timer.start("one")
        timer.finish("cached")
        timer.start("test two")
    found = gathering.timeline({"timeline": timer.timeline})
    assert [(one.step, one.state) for one in found] == [("one", "cached"), ("test two", "done")]
    assert 0 <= found[0].start <= found[1].start
    assert all(one.seconds >= 0 for one in found)


def test_timeline_of_an_old_record() -> None:
    found = gathering.timeline({"seconds": {"a": 1.5, "b": 2}})
    assert [(one.step, one.start, one.seconds, one.state) for one in found] == [
        ("a", 0.0, 1.5, ""),
        ("b", 1.5, 2.0, ""),
    ]


@pytest.mark.parametrize(
    "record", [{}, {"seconds": 3}, {"timeline": [{}]}, {"timeline": 5}, {"seconds": {"a": "x"}}]
)
def test_timeline_of_nothing(record: dict[str, object]) -> None:
    assert gathering.timeline(record) == ()


def evil() -> Facts:
    """An image whose every text wants out."""
    step = StepFacts(
        layer=EVIL,
        id="1" * 64,
        options={EVIL: Choice(text=EVIL, origin=EVIL)},
        sources=(SourceFacts(name=EVIL, version=EVIL, url=EVIL, ref=EVIL, digest=EVIL),),
    )
    plan = PlanFacts(site=EVIL, image=EVIL, id=EVIL, facts={}, steps=(step,), left_out={EVIL: EVIL})
    part = Part(kind="python", name=EVIL, bytes=10**9, files=1)
    used = {"layer": EVIL, "source": EVIL, "ref": EVIL, "digest": EVIL}
    event = gathering.Event(step=f"test {EVIL}", state=EVIL, start=0.0, seconds=1.0)
    return Facts(
        plan=plan,
        record={"built": EVIL, "engine": [EVIL], "sources": [used], "sifwright": EVIL},
        events=(event,),
        definition=EVIL,
        layers=(LayerSize(name=EVIL, packed=1, parts=(part,)),),
        by_layer=True,
        packages=(Package(kind="python", name=EVIL, version=EVIL, licence=EVIL),),
        packed=5,
    )


class Seen(html.parser.HTMLParser):
    """Which elements there are, with which attributes; and that each is closed."""

    VOID = ("meta", "br", "img")

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str]] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [(name, value or "") for name, value in attrs]
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_nothing_gets_out() -> None:
    text = render(evil())
    seen = Seen(text)
    assert seen.open == []
    assert seen.tags.count("script") == 1
    assert "img" not in seen.tags
    assert not [name for name, _ in seen.attributes if name.startswith("on")]
    assert "alert(1)" in text
    assert "{{ 7*7 }}" in text
    assert not set(text) & {"\x1b", "\x00", "\u202e"}


def test_nothing_is_loaded() -> None:
    seen = Seen(render(evil()))
    assert not {"link", "iframe", "object", "image", "use"} & set(seen.tags)
    assert not [name for name, _ in seen.attributes if name in {"src", "srcset", "data", "action"}]
    links = [value for name, value in seen.attributes if "href" in name]
    assert all(value.startswith("#") for value in links)
    assert any(value.startswith(POLICY) for name, value in seen.attributes if name == "content")


def test_the_policy_lets_our_script_run() -> None:
    import base64  # noqa: PLC0415
    import hashlib  # noqa: PLC0415

    text = render(evil())
    [script] = re.findall(r"<script>(.*?)</script>", text, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"sha256-{digest}" in text.replace("&#43;", "+").replace("&#34;", '"')


def test_all_sections_are_there_without_a_record() -> None:
    made = evil()
    bare = Facts(
        plan=made.plan,
        record={},
        events=(),
        definition="",
        layers=(),
        by_layer=False,
        packages=(),
        packed=0,
    )
    text = render(bare)
    places = [text.index(f'<section id="{name}">') for name in (
        "build", "size", "options", "sources", "tests", "packages", "definition"
    )]  # fmt: skip
    assert all(first < second for first, second in pairwise(places))
    assert "There is no record of the build." in text
    assert "not recorded" in text
