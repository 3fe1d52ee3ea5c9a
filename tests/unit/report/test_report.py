"""The page of `sifwright report`: where the bytes go, and that nothing in it gets out."""

from __future__ import annotations

import html.parser
from itertools import pairwise

import pytest

from sifwright.catalog.model import Value
from sifwright.images.contents.layer_stack import LayeredNode
from sifwright.images.contents.listing import ListedPath
from sifwright.images.contents.packages import Package
from sifwright.plan.model import StepSource
from sifwright.plan.plan_file import PlanFacts, StepFacts
from sifwright.report.page import report_data as gathering
from sifwright.report.page import sizes
from sifwright.report.page.html import render
from sifwright.report.page.report_data import Facts
from sifwright.report.page.sizes import LayerSize, Part
from sifwright.system.progress import QuietProgress, Timer

EVIL = "<script>alert(1)</script>\"'&{{ 7*7 }}\x1b[2J\x00\u202e</pre></title><img src=//x>"
POLICY = "default-src 'none'; style-src 'unsafe-inline'"


def node(path: bytes, size: int, links: int = 0) -> ListedPath:
    return ListedPath(path=path, kind="file", size=size, links=links)


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
    result = sizes.regrouped(tree, known, 2)
    assert {path: group.layer for path, group in result.items()} == {b"a": 1, b"b": 2, b"c": 2}


def test_timeline_of_a_timer() -> None:
    with Timer(QuietProgress()) as timer:
        timer.start("one")
        timer.finish("cached")
        timer.start("test two")
    result = gathering.timeline({"timeline": timer.timeline})
    assert [(event.step, event.state) for event in result] == [
        ("one", "cached"),
        ("test two", "done"),
    ]
    assert 0 <= result[0].start <= result[1].start
    assert all(event.seconds >= 0 for event in result)


@pytest.mark.parametrize(
    "record", [{}, {"seconds": 3}, {"timeline": [{}]}, {"timeline": 5}, {"seconds": {"a": "x"}}]
)
def test_timeline_of_nothing(record: dict[str, object]) -> None:
    assert gathering.timeline(record) == ()


def evil() -> Facts:
    """Return an image whose texts all try to break out of their elements."""
    step = StepFacts(
        layer=EVIL,
        id="1" * 64,
        options={EVIL: Value(value=EVIL, origin=EVIL)},
        sources=(StepSource(name=EVIL, kind="git", version=EVIL, url=EVIL, ref=EVIL, digest=EVIL),),
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
    """The elements with their attributes; each is closed."""

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
    assert "script" not in seen.tags
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


def test_all_sections_are_there_without_a_record() -> None:
    bare = Facts(
        plan=evil().plan, record={}, events=(), definition="",
        layers=(), by_layer=False, packages=(), packed=0,
    )  # fmt: skip
    text = render(bare)
    places = [text.index(f'<section id="{name}">') for name in (
        "build", "size", "options", "sources", "tests", "packages", "definition"
    )]  # fmt: skip
    assert all(first < second for first, second in pairwise(places))
    assert "There is no record of the build." in text
    assert "not recorded" in text
