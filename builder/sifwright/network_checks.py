"""Whether everything a plan downloads can be had, asked before the first minute of a build."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING

from sifwright import baseimage, lookup, mirrors, pipasking, registry, runner, web
from sifwright.errors import Problem

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from sifwright.mirrors import Mirrors
    from sifwright.model import Download, Plan, Step, StepSource

__all__ = ["problems"]

_AT_ONCE = 8
# The first words of git's own protocol; without the version, a big repository answers megabytes.
_GIT_SERVICE = "info/refs?service=git-upload-pack"
_GIT_HEADERS = {"Git-Protocol": "version=2"}
_PIP = (
    "Check the version and the network, or point pip at a mirror (PIP_INDEX_URL,"
    " PIP_FIND_LINKS or pip.conf)."
)


def problems(plan: Plan, machine: Mapping[str, str], first: int = 0) -> Iterator[Problem]:
    """Yield what the plan's steps download and cannot get, from the one with number `first` on."""
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        for found in pool.map(lambda check: check(), _checks(plan, machine, first)):
            if found is not None:
                yield found
    steps = plan.steps[first:]
    wanted = [(step, item) for step in steps for item in step.layer.downloads]
    packages = [
        (step, item) for step, item in wanted if item.pip and pipasking.requirement(step, item)
    ]
    if not packages or not _ask_pip([pipasking.requirement(*one) for one in packages], "", plan):
        return
    for step, download in packages:
        yield from _pip_problems(step, download, plan)


def _checks(
    plan: Plan, machine: Mapping[str, str], first: int
) -> Iterator[Callable[[], Problem | None]]:
    """One question each, to be asked at the same time."""
    rules = mirrors.load()
    if first == 0 and (image := baseimage.of(plan)):
        yield partial(_image_problem, image)
    for step in plan.steps[first:]:
        for download in step.layer.downloads:
            if download.url:
                yield partial(_url_problem, step, download, machine)
        for source in step.sources:
            yield partial(_source_problem, step, source, rules)


def _image_problem(image: baseimage.BaseImage) -> Problem | None:
    try:
        registry.digest(image.reference)
    except registry.RegistryError as error:
        found_at = f" (asked: {image.reference})" if image.is_redirected else ""
        return Problem(
            where=f"layer '{image.layer}'",
            what=f"the base image {image.name} cannot be had{found_at}: {error}",
            fix=error.fix,
        )
    return None


def _source_problem(step: Step, source: StepSource, rules: Mirrors) -> Problem | None:
    """A repository must answer, a file must be there; what is in them is checked in the build."""
    if source.kind == "pip":
        return _sdist_problem(step, source, rules)
    git = source.kind == "git"
    address = rules.redirect(source.url, *(("git",) if git else mirrors.DOWNLOADS))
    if not address.startswith(("http://", "https://", "file://")):
        return None
    remote = address if address.startswith("file://") else f"{address}/{_GIT_SERVICE}"
    answer = web.unreachable(remote, _GIT_HEADERS) if git else web.unreachable(address)
    if not answer:
        return None
    asked = f" (asked: {web.anonymous(address)})" if address != source.url else ""
    return Problem(
        where=f"layer '{step.layer.name}'",
        what=f"the source {source.name} cannot be had from {source.url}{asked}: {answer}",
        fix=mirrors.NETWORK_FIX,
    )


def _sdist_problem(step: Step, source: StepSource, rules: Mirrors) -> Problem | None:
    try:
        address = lookup.sdist_of(source.url, source.version).address
        answer = web.unreachable(rules.redirect(address, *mirrors.DOWNLOADS))
    except lookup.LookupFailed as error:
        answer = str(error)
    if not answer:
        return None
    what = f"the source {source.name} cannot be had from a Python package index: {answer}"
    return Problem(where=f"layer '{step.layer.name}'", what=what, fix=_PIP)


def _url_problem(step: Step, download: Download, machine: Mapping[str, str]) -> Problem | None:
    given = mirrors.load().redirect(step.options[download.option].text, *mirrors.DOWNLOADS)
    base = given or machine.get(download.machine, "")
    address = f"{base.rstrip('/')}/{pipasking.fill(download.url, step)}"
    answer = web.unreachable(address)
    if not answer:
        return None
    return Problem(
        where=f"{step.layer.name}.{download.option}",
        what=f"{download.what} cannot be reached at {web.anonymous(address)}: {answer}",
        fix=f"Check the network and proxies, or --set {step.layer.name}.{download.option}=…",
    )


def _pip_problems(step: Step, download: Download, plan: Plan) -> Iterator[Problem]:
    requirement = pipasking.requirement(step, download)
    index = pipasking.index(step, download)
    answer = _ask_pip([requirement], "", plan)
    if answer and index:
        answer = _ask_pip([requirement], index, plan)
    if not answer:
        return
    asked = "this machine's pip settings" + (f" and {web.anonymous(index)}" if index else "")
    yield Problem(
        where=f"layer '{step.layer.name}'",
        what=f"pip finds no wheel of {requirement} for Python {plan.facts.get('python', '')}"
        f" (asked: {asked})\n    | {answer}",
        fix=_PIP,
    )


def _ask_pip(requirements: list[str], index: str, plan: Plan) -> str:
    """Ask pip itself, for the image's Python, without downloading; return its error, if any."""
    words = ("install", "--dry-run", "--ignore-installed", "--retries=1", "--target", "unused")
    command = pipasking.command(plan, words, index, requirements)
    answer = runner.capture(command, env=pipasking.environment(), timeout=120)
    if answer.returncode == 0 or "No module named pip" in answer.stderr:
        return ""
    return answer.stderr.strip().rpartition("\n")[2] or f"exit status {answer.returncode}"
