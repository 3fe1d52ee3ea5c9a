"""Sources from a Python package index: found by pip's settings, compared, nothing in them run."""

import json
import os
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from sifwright.catalog.load_catalog import load_catalog
from sifwright.host.network import pip_settings, sdist
from sifwright.make_image.check_machine import network_checks
from sifwright.make_image.check_machine.network_checks import WheelTarget
from sifwright.plan.resolve import resolve
from tests.servers import archive, cut, sha256
from tests.unit.conftest import Cli
from tests.unit.fetching import WRONG, Step, refused
from tests.unit.mirror_files import MirrorsFile
from tests.unit.wheels import Index, serve_index

SETUP = "raise SystemExit('setup.py was run')\n"
GOOD = archive(**{"setup.py": SETUP, "readme": "read me\n"})
LOGIN = "user:p%40ssswordfish"
FILE = "the_toy-1.0.tar.gz"
NAMES = (f"other-{FILE}", "the_toy-1.0.tar.xz", "the-toy-1.0.post1.tar.gz", FILE)


def offer(index: Index, names: Sequence[str] = NAMES, *, digest: str = sha256(GOOD)) -> None:
    """Put these files beside the index, and name them on a page."""
    links = (f'<a href="../../files/{name}#sha256={digest}">{name}</a>' for name in names)
    page = f"<!DOCTYPE html><html><body>{'<br/>'.join(links)}</body></html>"
    index.files = {f"/files/{name}": GOOD for name in names}
    index.files["/simple/the-toy/"] = page.encode()


@pytest.fixture
def index() -> Iterator[Index]:
    with serve_index() as served:
        offer(served)
        yield served


@pytest.fixture
def url(index: Index) -> str:
    return index.url


# ---- found ----------------------------------------------------------------------------------


def test_an_index_is_asked_for_exactly_that_version(index: Index, url: str) -> None:
    file_found = sdist.find("The.Toy", "1.0", {"PIP_INDEX_URL": f"{url}/"})
    address = f"{url.removesuffix('/simple')}/files/the_toy-1.0.tar.gz"
    assert (file_found.address, file_found.sha256, file_found.trusted) == (
        address,
        sha256(GOOD),
        False,
    )
    assert index.pages == ["/simple/the-toy/"]


def test_the_indexs_login_is_for_what_lies_beside_it(index: Index, url: str) -> None:
    index.login = "user:p@ssswordfish"
    settings = {"PIP_INDEX_URL": url.replace("//", f"//{LOGIN}@")}
    file_found = sdist.find("the-toy", "1.0", settings)
    assert file_found.address.startswith(f"http://{LOGIN}@127.0.0.1:")
    wrong = {"PIP_INDEX_URL": url.replace("//", "//user:xswordfish@")}
    for version, other in (("2.0", settings), ("1.0", wrong), ("1.0", {"PIP_INDEX_URL": url})):
        with pytest.raises(sdist.NotFound) as caught:
            sdist.find("the-toy", version, other)
        assert f"({url}/the-toy/: " in str(caught.value)
        assert ("Unauthorized" in str(caught.value)) == (version == "1.0")
        assert "swordfish" not in str(caught.value)


@pytest.mark.parametrize("links", ["{folder}", "{folder}/index", "{uri}", "{uri}/index/index.html"])
def test_a_folder_or_a_page_in_it_comes_before_the_index(links: str, tmp_path: Path) -> None:
    (tmp_path / "index").mkdir()
    (tmp_path / FILE).write_bytes(GOOD)
    (tmp_path / "index" / "index.html").write_text(f'<a href="../{FILE}">x</a>')
    text = links.format(folder=tmp_path, uri=tmp_path.as_uri())
    settings = {"PIP_FIND_LINKS": f"/nowhere {text}", "PIP_INDEX_URL": "http://127.0.0.1:9/"}
    assert sdist.find("the-toy", "1.0", settings).address == (tmp_path / FILE).as_uri()


def test_without_an_index_none_is_asked(index: Index, url: str) -> None:
    with pytest.raises(sdist.NotFound, match="there is no index"):
        sdist.find("the-toy", "1.0", {"PIP_INDEX_URL": url, "PIP_NO_INDEX": "True"})
    assert index.pages == []


def test_a_further_index_and_a_trusted_host(url: str) -> None:
    settings = {"PIP_INDEX_URL": "http://127.0.0.1:9/", "PIP_EXTRA_INDEX_URL": url}
    file_found = sdist.find("the-toy", "1.0", settings | {"PIP_TRUSTED_HOST": "127.0.0.1"})
    assert file_found.trusted
    with pytest.raises(sdist.NotFound) as caught:
        sdist.find("the-toy", "3.0", settings)
    assert "no the-toy-3.0.tar.gz (http://127.0.0.1:9/the-toy/: " in str(caught.value)
    assert f"; {url}/the-toy/: no such file)" in str(caught.value)


# ---- fetched --------------------------------------------------------------------------------


def test_fetch_source_unpacks_it_and_runs_nothing(step: Step, index: Index, url: str) -> None:
    index.login = "user:p@ssswordfish"
    pip = {"PIP_INDEX_URL": url.replace("//", f"//{LOGIN}@")}
    done = step.fetch(f"pip the-toy 1.0 {sha256(GOOD)}", pip=pip)
    assert done.returncode == 0, done.stderr
    assert step.left == ["there"]
    assert (step.text("readme"), step.text("setup.py")) == ("read me\n", SETUP)
    assert done.stdout == f"sifwright: pin toy the-toy 1.0 {sha256(GOOD)}\n"


def test_another_archive_is_refused(step: Step, index: Index, url: str) -> None:
    """Refuse it for any sum that the index names."""
    offer(index, digest=WRONG)
    pip = {"PIP_INDEX_URL": url.replace("//", f"//{LOGIN}@")}
    message = refused(step, step.fetch(f"pip the-toy 1.0 {WRONG}", pip=pip))
    address = f"{url.removesuffix('/simple')}/files/the_toy-1.0.tar.gz"
    assert f"from:     the-toy 1.0 of a Python package index (asked: {address})" in message
    assert f"expected: {WRONG}, its pin" in message
    assert f"found:    {sha256(GOOD)}" in message
    assert "swordfish" not in message
    record = f"toy the-toy 1.0 {WRONG}\n"
    message = refused(step, step.fetch("pip the-toy 1.0 -", pip=pip, record=record))
    assert "what it was when it was first used here" in message


def test_cut_or_missing_archives_are_refused(step: Step, index: Index, url: str) -> None:
    pip = {"PIP_INDEX_URL": url}
    message = refused(step, step.fetch(f"pip the-toy 2.0 {WRONG}", pip=pip))
    assert "'the-toy' of layer 'toy' cannot be downloaded" in message
    assert "no the-toy-2.0.tar.gz" in message
    index.answers[FILE] = lambda handler, body: cut(handler, body, 50)
    message = refused(step, step.fetch(f"pip the-toy 1.0 {sha256(GOOD)}", pip=pip))
    assert "cannot be downloaded" in message
    assert index.pages.count(FILE) == 3


def test_the_mirrors_file_may_lead_the_files_elsewhere(step: Step, url: str) -> None:
    files = url.replace("/simple", "/files")
    pip = {"PIP_INDEX_URL": url.replace("127.0.0.1", "localhost")}
    rules = ((files.replace("127.0.0.1", "localhost"), f"{files}/nowhere"),)
    message = refused(step, step.fetch(f"pip the-toy 1.0 {sha256(GOOD)}", pip=pip, rules=rules))
    assert f"(asked: {files}/nowhere/{FILE})" in message


# ---- looked up ------------------------------------------------------------------------------


@pytest.fixture
def pinned(
    project: Path, mirrors_file: MirrorsFile, url: str, monkeypatch: pytest.MonkeyPatch
) -> Path:
    """Make a layer with a source from the index, which the mirrors file names."""
    monkeypatch.setattr(pip_settings, "_pip_config", str)
    mirrors_file.write(json.dumps({"pip": {"index-url": url}}))
    path = project / "defs" / "layers" / "tool" / "pins.yaml"
    path.write_text(f'toy:\n  pip: the-toy\n  versions:\n    "2.0": {{sha256: "{WRONG}"}}\n')
    return path


def test_a_version_is_added_and_checked(
    pinned: Path, index: Index, project: Path, run_cli: Cli
) -> None:
    pins = ("--project", project, "pins", "tool")
    assert run_cli(*pins, "1.0", "--add").code == 0
    assert pinned.read_text().endswith(f'    "1.0": {{sha256: "{sha256(GOOD)}"}}\n')
    done = run_cli(*pins, "toy", "1.0", "--check")
    assert (done.code, done.err) == (0, "")
    assert done.out.split()[-6:] == ["toy", "1.0", sha256(GOOD)[:12], "good", "pip:", "the-toy"]
    offer(index, digest="f" * 64)
    done = run_cli(*pins, "toy", "1.0", "--check")
    assert done.code == 3
    assert "the archive is another one now\n    from:   pip: the-toy" in done.err
    assert run_cli(*pins, "toy", "2.0", "--check").code == 5


def test_where_the_index_gives_no_sum_the_file_does(
    pinned: Path, index: Index, project: Path, run_cli: Cli
) -> None:
    offer(index, digest="")
    assert run_cli("--project", project, "pins", "tool", "1.0", "--add").code == 0
    assert sha256(GOOD) in pinned.read_text()


def test_the_check_before_the_build_asks_for_it(pinned: Path, project: Path, index: Index) -> None:
    pinned.write_text(pinned.read_text().replace("2.0", "1.1.0"))
    offer(index, ["the_toy-1.1.0.tar.gz"])
    plan = resolve(load_catalog(project / "defs", project), "here", "", [])

    def problems() -> list[str]:
        target = WheelTarget("", os.uname().machine)
        reported = network_checks.problems(plan.steps, target, {})
        return [problem.what for problem in reported if "toy" in problem.what]

    assert problems() == []
    offer(index, ["the_toy-0.9.tar.gz"])
    (message,) = problems()
    beginning = "the source toy cannot be fetched from a Python package index: no the-toy-1"
    assert message.startswith(beginning)
