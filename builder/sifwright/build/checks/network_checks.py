"""Checks of all downloads of a plan, before the first minute of a build."""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING

from sifwright.catalog import mirrors
from sifwright.errors import Problem
from sifwright.host.network import http, pip_settings, registry, sdist, upstream
from sifwright.system import processes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from sifwright.build.request.base_image import BaseImage
    from sifwright.catalog.mirrors import Mirrors
    from sifwright.catalog.model import Download
    from sifwright.host.network.registry import Reference
    from sifwright.plan.model import Step, StepSource

_AT_ONCE = 8
# The first words of git's own protocol; without the version, a big repository answers megabytes.
_GIT_SERVICE = "info/refs?service=git-upload-pack"
_GIT_HEADERS = {"Git-Protocol": "version=2"}
_PIP = (
    "Check the version, the network and the login of the index, or point pip at a mirror"
    " (PIP_INDEX_URL, PIP_FIND_LINKS or pip.conf)."
)


def problems(
    steps: Sequence[Step], python: str, machine: Mapping[str, str], image: BaseImage | None = None
) -> Iterator[Problem]:
    """Yield what these steps download, and the image below them, if it cannot be fetched.

    `python` is the version that wheels are for.
    """
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        for problem in pool.map(lambda check: check(), _checks(steps, machine, image)):
            if problem is not None:
                yield problem
    packages = [
        (step.layer.name, requirement, pip_settings.redirected(index))
        for step in steps
        for requirement, index in step.packages()
    ]
    if packages and _ask_pip([requirement for _, requirement, _ in packages], "", python):
        for package in packages:
            yield from _pip_problems(*package, python)


def _checks(
    steps: Sequence[Step], machine: Mapping[str, str], image: BaseImage | None
) -> Iterator[Callable[[], Problem | None]]:
    """Yield one check for each download; they run at the same time."""
    rules = mirrors.load()
    if image and image.reference:
        yield partial(_image_problem, image, image.reference)
    for step in steps:
        for download in step.layer.downloads:
            if download.url and _is_needed(step, download):
                yield partial(_url_problem, step, download, machine)
        for source in step.sources:
            yield partial(_source_problem, step, source, rules)


def _image_problem(image: BaseImage, reference: Reference) -> Problem | None:
    try:
        registry.digest(reference)
    except registry.RegistryError as error:
        found_at = f" (asked: {reference})" if image.is_redirected else ""
        return Problem(
            where=f"layer '{image.layer}'",
            what=f"the base image {image.name} cannot be fetched{found_at}: {error}",
            fix=error.fix,
        )
    return None


def _source_problem(step: Step, source: StepSource, rules: Mirrors) -> Problem | None:
    """Ask whether a repository answers or a file exists; the build checks their content."""
    if source.kind == "pip":
        return _sdist_problem(step, source, rules)
    git = source.kind == "git"
    address = rules.redirect(source.url, *(("git",) if git else mirrors.DOWNLOADS))
    if not address.startswith(("http://", "https://", "file://")):
        return None
    remote = address if address.startswith("file://") else f"{address}/{_GIT_SERVICE}"
    answer = http.unreachable(remote, _GIT_HEADERS) if git else http.unreachable(address)
    if not answer:
        return None
    asked = f" (asked: {http.redact_url(address)})" if address != source.url else ""
    return Problem(
        where=f"layer '{step.layer.name}'",
        what=f"the source {source.name} cannot be fetched from {source.url}{asked}: {answer}",
        fix=mirrors.NETWORK_FIX,
    )


def _sdist_problem(step: Step, source: StepSource, rules: Mirrors) -> Problem | None:
    try:
        address = upstream.sdist_of(source.url, source.version).address
        answer = http.unreachable(rules.redirect(address, *mirrors.DOWNLOADS))
    except upstream.LookupFailedError as error:
        answer = str(error)
    if not answer:
        return None
    message = f"the source {source.name} cannot be fetched from a Python package index: {answer}"
    return Problem(where=f"layer '{step.layer.name}'", what=message, fix=_PIP)


def _url_problem(step: Step, download: Download, machine: Mapping[str, str]) -> Problem | None:
    given = mirrors.load().redirect(step.options[download.option].text, *mirrors.DOWNLOADS)
    base = given or machine.get(download.machine, "")
    address = f"{base.rstrip('/')}/{step.filled(download.url)}"
    answer = http.unreachable(address)
    if not answer:
        return None
    return Problem(
        where=f"{step.layer.name}.{download.option}",
        what=f"{download.what} cannot be reached at {http.redact_url(address)}: {answer}",
        fix=f"Check the network and proxies, or --set {step.layer.name}.{download.option}=…"
        + _without(step, download)
        + ".",
    )


def _is_needed(step: Step, download: Download) -> bool:
    return not download.when or step.options[download.when].text != "false"


def _without(step: Step, download: Download) -> str:
    """Return how to do without the download, where an option says so."""
    return f", or --set {step.layer.name}.{download.when}=false" if download.when else ""


def _pip_problems(layer: str, requirement: str, index: str, python: str) -> Iterator[Problem]:
    for place in dict.fromkeys(("", index)):
        if not (answer := _ask_pip([requirement], place, python)):
            return
    asked = "this machine's pip settings" + (f" and {http.redact_url(index)}" if index else "")
    yield Problem(
        where=f"layer '{layer}'",
        what=f"pip finds no wheel of {requirement} for Python {python}"
        f" (asked: {asked})\n    | {answer}{_unanswered(requirement, index)}",
        fix=_PIP,
    )


def _unanswered(requirement: str, index: str) -> str:
    """Return a line on indexes without a page, which pip reports like a missing wheel."""
    name, _, version = requirement.partition("==")
    answers_without_page = []
    for first in dict.fromkeys(("", index)):
        try:
            sdist.find(name, version or "0", pip_settings.of_build(first))
        except sdist.NotFound as error:
            answers = str(error).partition("(")[2].removesuffix(")").split("; ")
            answers_without_page += [
                answer for answer in answers if not answer.endswith(": no such file")
            ]
    return (
        f"\n    | {'; '.join(dict.fromkeys(answers_without_page))}" if answers_without_page else ""
    )


def _ask_pip(requirements: list[str], index: str, python: str) -> str:
    """Ask pip itself, for the image's Python, without downloading; return its error, if any."""
    command = [
        *(sys.executable, "-m", "pip", "install", "--dry-run", "--ignore-installed"),
        *("--retries=1", "--target", "unused", "--no-deps", "--quiet", "--no-input"),
        *("--only-binary=:all:", "--python-version", python or "3", *requirements),
    ]
    answer = processes.capture(command, env=pip_settings.of_build(index), timeout=120)
    if answer.returncode == 0 or "No module named pip" in answer.stderr:
        return ""
    return answer.stderr.strip().rpartition("\n")[2] or f"exit status {answer.returncode}"
