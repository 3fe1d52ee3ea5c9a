"""`sifwright diff` of plans, and its parts that need no image."""

import json
from pathlib import Path

import pytest

from sifwright.images.contents.layer_stack import LayeredNode, LayerStack
from sifwright.images.contents.listing import ListedPath
from sifwright.images.contents.packages import Package
from sifwright.make_image.cache.store import Store
from sifwright.plan.plan_file import PlanFacts, parse_plan
from sifwright.report.diff import lines, packages, plans, trees
from tests.unit.conftest import Cli
from tests.unit.stores import add, key_of


def document(**layers: dict[str, object]) -> dict[str, object]:
    """Return a plan: each layer with its options; a step id covers all before it."""
    steps: list[dict[str, object]] = []
    for layer, options in layers.items():
        known = {name: {"value": value, "origin": "x"} for name, value in options.items()}
        before = steps[-1]["id"] if steps else ""
        step = {"layer": layer, "options": known, "sources": []}
        steps.append({**step, "id": key_of((before, sorted(options.items())))})
    return {"site": "here", "image": "small", "id": steps[-1]["id"], "facts": {}, "steps": steps}


def plan(**layers: dict[str, object]) -> PlanFacts:
    return parse_plan(json.dumps(document(**layers)))


OLD = plan(base={"suite": "a"}, python={"pip": "1", "extra": True}, last={})


def test_equal_plans() -> None:
    assert not plans.compare(OLD, OLD)


def test_an_option_and_the_layers_after_it() -> None:
    new = plan(base={"suite": "a"}, python={"pip": "2", "extra": False}, last={})
    differences = plans.compare(OLD, new)
    assert differences.added == differences.removed == ()
    assert [change.layer for change in differences.changed] == ["python", "last"]
    assert differences.changed[0].options == (
        plans.Change(name="pip", old="1", new="2"),
        plans.Change(name="extra", old="true", new="false"),
    )
    assert (differences.changed[1].options, differences.changed[1].after) == ((), "python")


def test_a_layer_more_and_a_layer_less() -> None:
    new = plan(base={"suite": "a"}, other={}, last={})
    differences = plans.compare(OLD, new)
    assert (differences.added, differences.removed) == (("other",), ("python",))
    assert [(change.layer, change.after) for change in differences.changed] == [("last", "other")]
    back = plans.compare(OLD, plan(base={"suite": "a"}, last={}))
    assert [(change.layer, change.after) for change in back.changed] == [("last", "python")]


def test_another_order() -> None:
    new = plan(base={"suite": "a"}, last={}, python={"pip": "1", "extra": True})
    differences = plans.compare(OLD, new)
    assert differences.reordered
    assert not differences.added


def test_a_source() -> None:
    source = {"name": "nccl", "version": "1", "url": "u", "ref": "v1", "digest": "d"}
    two = []
    for version in ("1", "2"):
        newer = document(base={})
        newer["steps"][0]["sources"] = [source | {"version": version}]  # type: ignore[index]
        newer["steps"][0]["id"] = version  # type: ignore[index]
        two.append(parse_plan(json.dumps(newer)))
    [layer] = plans.compare(two[0], two[1]).changed
    assert [(item.name, item.old, item.new) for item in layer.sources] == [
        ("nccl", "1 u v1 d", "2 u v1 d")
    ]


def test_a_script_is_named_where_it_is_known() -> None:
    new = plan(base={"suite": "a"}, python={"pip": "1", "extra": True}, last={})
    other = parse_plan(json.dumps({**document(base={"suite": "a"}), "steps": [
        {"layer": "base", "id": "other", "options": {"suite": {"value": "a"}}}
    ]}))  # fmt: skip
    known = {"install.sh": "1" * 64, "option suite": "a", "compression": "zstd"}
    other_machine = {"packing": "3", "ids": "one", "compression": "gzip"}
    inputs = {new.steps[0].id: known}, {"other": known | other_machine | {"install.sh": "2" * 64}}
    [layer] = plans.compare(new, other, inputs).changed
    assert [file.name for file in layer.files] == ["install.sh"]
    [unknown] = plans.compare(new, other).changed
    assert (unknown.files, unknown.after) == ((), "")


@pytest.mark.parametrize(
    ("old", "new", "shown"),
    [
        ("1" * 64, "2" * 64, f"{'1' * 12} -> {'2' * 12}"),
        (f"{'1' * 64} True", f"{'2' * 64} True", f"{'1' * 12} -> {'2' * 12}"),
        (f"{'1' * 64} True", f"{'1' * 64} False", f"{'1' * 64} True -> {'1' * 64} False"),
        (None, "", "(none) -> (empty)"),
    ],
)
def test_digests_are_shortened(old: str | None, new: str, shown: str) -> None:
    change = plans.Change(name="files/x", old=old, new=new)
    assert lines._change(change) == f"files/x: {shown}"  # noqa: SLF001


@pytest.mark.parametrize(
    "text",
    [
        *("", "[]", "{}", '{"plan": 3}', '{"site": 1}', "[" * 5000),
        '{"site": "s", "image": "i", "id": "x", "steps": [{"layer": "l"}]}',
        '{"site": "s", "image": "i", "id": "x", "steps": [{"layer": "l", "id": 1, "options": []}]}',
    ],
)
def test_files_without_a_plan(text: str) -> None:
    with pytest.raises(ValueError, match="holds no plan"):
        parse_plan(text)


def stack(*nodes: ListedPath) -> LayerStack:
    """Return a tree of one layer."""
    tree = {node.path: LayeredNode(node=node, layer=0) for node in nodes}
    return LayerStack(path=Path("x.sif"), names=("base",), sizes=(0,), layers=(), tree=tree)


def node(path: bytes, size: int = 5, **facts: object) -> ListedPath:
    return ListedPath(path=path, **{"kind": "file", "mode": 0o644, "size": size, **facts})  # type: ignore[arg-type]


OTHER_KIND = node(b"a", 0, kind="symlink", target=b"t")


@pytest.mark.parametrize(
    ("new", "changed"),
    [
        (node(b"a", mode=0o600), ("mode 644 -> 600",)),
        (node(b"a", uid=33), ("owner 0:0 -> 33:0",)),
        (node(b"a", 6), ("size 5 -> 6",)),
        (OTHER_KIND, ("file -> symlink",)),
        (node(b"a", mtime=99), None),
    ],
)
def test_differing_facts_of_a_path(new: ListedPath, changed: tuple[str, ...] | None) -> None:
    differences = trees.compare(stack(node(b"a")), stack(new), set()).differences
    assert [difference.changes for difference in differences] == ([changed] if changed else [])


def test_targets_and_contents() -> None:
    links = [stack(node(b"l", 0, kind="symlink", target=target)) for target in (b"x", b"\n")]
    assert trees.compare(links[0], links[1], set()).differences[0].changes == ("target x -> \\n",)
    same = stack(node(b"a"), node(b"b"), node(b"e", 0), node(b"f", 0, kind="folder"))
    assert list(trees.candidates(same, same)) == [b"a", b"b"]
    [differences] = trees.compare(same, same, {b"b"}).differences
    assert (differences.path, differences.changes) == (b"b", ("contents",))


def test_added_removed_and_their_order() -> None:
    old, new = stack(node(b"x", 7)), stack(node(b"p.pyc", 9), node(b"s", 1), node(b"t", 2))
    differences = trees.compare(old, new, set())
    assert [path.path for path in differences.of("added")] == [b"t", b"s", b"p.pyc"]
    assert [path.path for path in differences.of("removed")] == [b"x"]
    assert differences.layers() == {"base": {"added": 3, "removed": 1, "changed": 0}}


def test_packages() -> None:
    def package(name: str, version: str) -> Package:
        return Package(kind="python", name=name, version=version)

    old = [package("a", "1"), package("b", "1"), package("c", "1"), package("c", "2")]
    new = [package("b", "2"), package("c", "1"), package("c", "2"), package("d", "1")]
    differences = packages.compare(old, new)
    assert [
        (difference.name, difference.state, difference.old, difference.new)
        for difference in differences
    ] == [("a", "removed", "1", None), ("b", "changed", "1", "2"), ("d", "added", None, "1")]


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """Write a plan.json and a record.json of another plan; an empty cache."""
    monkeypatch.setenv("SIFWRIGHT_CACHE", str(tmp_path / "cache"))
    folder = [tmp_path / "plan.json", tmp_path / "record.json"]
    folder[0].write_text(json.dumps(document(base={"suite": "a"}, last={})))
    folder[1].write_text(json.dumps({"plan": document(base={"suite": "evil\n\x1b[2J"}, last={})}))
    return folder


def test_the_command(files: list[Path], run_cli: Cli) -> None:
    result = run_cli("diff", *files)
    assert (result.code, result.err) == (1, "")
    assert result.out.splitlines()[2:] == [
        "~ layer base",
        "    option suite: a -> evil\\n\\x1b[2J",
        "~ layer last: follows base",
        "they differ",
    ]
    same = run_cli("diff", files[0], files[0])
    assert (same.code, same.err, same.out.splitlines()[-1]) == (0, "", "no differences")


def test_json(files: list[Path], run_cli: Cli) -> None:
    result = run_cli("diff", *files, "--json")
    assert (result.code, result.err) == (1, "")
    content = json.loads(result.out)
    assert (content["equal"], content["packages"], content["files"]) == (False, None, None)
    assert content["plan"]["changed"][0]["options"][0]["new"] == "evil\n\x1b[2J"
    assert [content[side]["kind"] for side in ("old", "new")] == ["plan", "plan"]


def test_the_cache_names_the_script(files: list[Path], run_cli: Cli) -> None:
    steps = [json.loads(path.read_text()) for path in files]
    steps[1] = steps[1]["plan"]
    steps[1]["steps"][0]["options"] = steps[0]["steps"][0]["options"]
    files[1].write_text(json.dumps(steps[1]))
    for number, step in enumerate(steps):
        inputs = {"install.sh": f"{number}" * 64}
        add(Store.open(), key_of(number), step=step["steps"][0]["id"], inputs=inputs)
    assert "    install.sh: 000000000000 -> 111111111111" in run_cli("diff", *files).out


def test_resolved_now(project: Path, files: list[Path], run_cli: Cli) -> None:
    options: list[str | Path] = ["--project", project, "diff"]
    assert run_cli(*options, "here", "here").code == 0
    output = run_cli("--project", project, "plan", "here", "--json").out
    files[0].write_text(output)
    image = json.loads(output)["image"]
    same = run_cli(*options, files[0], f"here/{image}")
    assert (same.code, same.out.splitlines()[-1]) == (0, "no differences")
    name, choice = next(iter(json.loads(output)["steps"][0]["options"].items()))
    layer = json.loads(output)["steps"][0]["layer"]
    set_ = ["--set", f"{layer}.{name}={choice['value']}"]
    assert run_cli(*options, files[0], "here", *set_).code == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["missing.sif", "missing.sif"], "there is no file 'missing.sif'"),
        (["a/b/c", "here"], "there is no file 'a/b/c'"),
        (["here/", "here"], "there is no file 'here/'"),
        (["nowhere", "here"], "nowhere"),
        (["{text}", "here"], "it has no SIF header"),
        (["{json}", "here"], "holds no plan"),
        (["{plan}", "{plan}", "--set", "a.b=c"], "--set is for a plan of defs/"),
    ],
)
def test_refusals(
    arguments: list[str], message: str, project: Path, files: list[Path], run_cli: Cli
) -> None:
    (project / "text").write_text("hello\n" * 100)
    (project / "broken.json").write_text('{"a": 1}')
    names = {"text": project / "text", "json": project / "broken.json", "plan": files[0]}
    words = [word.format(**names) for word in arguments]
    result = run_cli("--project", project, "diff", *words)
    assert (result.code, result.out) == (2, "")
    assert message in result.err
    assert result.err.startswith("sifwright: ")
    assert "\n    " in result.err
