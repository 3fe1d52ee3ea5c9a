"""Checks of all downloads of a plan, before the first minute of a build."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import NamedTuple

from packaging.requirements import Requirement

from sifwright.catalog import mirrors
from sifwright.catalog.mirrors import Mirrors, redirect_download
from sifwright.catalog.model import Download
from sifwright.errors import Problem
from sifwright.host.network import http, pip_settings, registry, sdist, upstream, wheel_tags
from sifwright.host.network.registry import Reference
from sifwright.make_image.resolve_request.base_image import BaseImage
from sifwright.plan.model import Step, StepSource
from sifwright.system import processes

_AT_ONCE = 8
# The first words of git's own protocol; without the version, a big repository answers megabytes.
_GIT_SERVICE = "info/refs?service=git-upload-pack"
_GIT_HEADERS = {"Git-Protocol": "version=2"}
# The packages of CUDA among torch's requirements.
_CUDA = re.compile(r"cuda-toolkit|nvidia-cuda-runtime(-cu\d+)?")
_ONE_RELEASE = re.compile(r"===?([0-9]+)\.([0-9]+)(\.[0-9]+)*")
# The answer of an index or a folder without the wheel.
_NO_FILE = r": no such file$|\[Errno 2\]"
_PIP = (
    "Check the version, the network and the login of the index. Or name a mirror for pip by"
    " PIP_INDEX_URL, PIP_FIND_LINKS or pip.conf."
)


class WheelTarget(NamedTuple):
    """The version of Python and the processor that wheels are for."""

    python: str
    processor: str


def problems(
    steps: Sequence[Step],
    wheels: WheelTarget,
    machine: Mapping[str, str],
    image: BaseImage | None = None,
) -> Iterator[Problem]:
    """Yield what these steps download, and the image below them, if it cannot be fetched."""
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        yield from filter(None, pool.map(lambda check: check(), _checks(steps, machine, image)))
    packages = [
        (step.layer.name, requirement, redirect_download(index))
        for step in steps
        for requirement, index in step.packages()
    ]
    if packages and _ask_pip([requirement for _, requirement, _ in packages], "", wheels):
        for package in packages:
            yield from _pip_problems(*package, wheels)


def _checks(
    steps: Sequence[Step], machine: Mapping[str, str], image: BaseImage | None
) -> Iterator[Callable[[], Problem | None]]:
    """Yield one check for each download; they run at the same time."""
    rules = mirrors.load()
    if image and image.reference:
        yield partial(_image_problem, image, image.reference)
    for step in steps:
        for download in step.layer.downloads:
            when = download.when and step.options[download.when].text
            if download.url and when != "false":
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
    if git and not answer:
        answer = _lacks_commit(address, source.digest)
    if not answer:
        return None
    asked = f" (asked: {http.redact_url(address)})" if address != source.url else ""
    return Problem(
        where=f"layer '{step.layer.name}'",
        what=f"the source {source.name} cannot be fetched from {source.url}{asked}: {answer}",
        fix=mirrors.NETWORK_FIX,
    )


def _lacks_commit(address: str, commit: str) -> str:
    """Return that a repository on this machine lacks the commit; empty if nothing speaks for it."""
    path = mirrors.local_path(address)
    if not path or not commit:
        return ""
    # It prints no error only where the repository can be read, and has no such object.
    done = processes.capture(["git", "-C", str(path), "cat-file", "-e", commit])
    return f"it lacks the commit {commit}" if done.returncode == 1 else ""


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
    given = redirect_download(step.options[download.option].text)
    base = given or machine.get(download.machine, "")
    address = f"{base.rstrip('/')}/{step.filled(download.url)}"
    answer = http.unreachable(address)
    if not answer:
        return None
    off = f", or --set {step.layer.name}.{download.when}=false" if download.when else ""
    return Problem(
        where=f"{step.layer.name}.{download.option}",
        what=f"{download.what} cannot be reached at {http.redact_url(address)}: {answer}",
        fix=f"Check the network and proxies, or --set {step.layer.name}.{download.option}=…{off}.",
    )


def _pip_problems(
    layer: str, requirement: str, index: str, wheels: WheelTarget
) -> Iterator[Problem]:
    for source in dict.fromkeys(("", index)):
        if not (answer := _ask_pip([requirement], source, wheels)):
            return
    # The layer takes the plain release if it is that build (download-build of PyTorch's packages).
    plain, _, build = requirement.replace("==", "===").partition("+")
    is_plain = build.startswith("cu") or (build == "cpu" and wheels.processor == "aarch64")
    fix = _PIP
    if build and (done := _run_pip(["--report=-", plain], "", wheels)).returncode == 0:
        other = _variant(done.stdout, wheels)
        if is_plain and other in ("", build):
            return
        if other not in ("", build):
            answer = f"{plain.replace('===', ' ')} is there, as the build for {other}"
        if is_plain:
            fix = f"--set {layer}.variant={other} takes it. {_PIP}"
    asked = "this machine's pip settings" + (f" and {http.redact_url(index)}" if index else "")
    yield Problem(
        where=f"layer '{layer}'",
        what=f"pip finds no wheel of {requirement} for Python {wheels.python}"
        f" (asked: {asked})\n    | {answer}{_unanswered(requirement, index)}",
        fix=fix,
    )


def _unanswered(requirement: str, index: str) -> str:
    """Return a line on indexes without a page, which pip reports like a missing wheel."""
    wanted = Requirement(requirement)
    version = str(wanted.specifier).removeprefix("==")
    answers_without_page = []
    for first in dict.fromkeys(("", index)):
        try:
            sdist.find(wanted.name, version or "0", pip_settings.of_build(first))
        except sdist.NotFound as error:
            answers = str(error).partition("(")[2].removesuffix(")").split("; ")
            answers_without_page += [
                answer for answer in answers if not re.search(_NO_FILE, answer)
            ]
    return (
        f"\n    | {'; '.join(dict.fromkeys(answers_without_page))}" if answers_without_page else ""
    )


def _variant(report: str, wheels: WheelTarget) -> str:
    """Return the build of a wheel in pip's report, as in cu130; empty if the wheel does not say."""
    (wheel,) = json.loads(report)["install"]
    machine = {"platform_machine": wheels.processor, "platform_system": "Linux"}
    needs = map(Requirement, wheel["metadata"].get("requires_dist", ()))
    cuda = [
        needed.specifier
        for needed in needs
        if _CUDA.fullmatch(needed.name) and (not needed.marker or needed.marker.evaluate(machine))
    ]
    releases = list(filter(None, (_ONE_RELEASE.fullmatch(str(release)) for release in cuda)))
    if releases:
        return f"cu{releases[0][1]}{releases[0][2]}"
    # Other packages do not repeat what torch needs.
    return "cpu" if wheel["metadata"]["name"] == "torch" and not cuda else ""


def _ask_pip(requirements: list[str], index: str, wheels: WheelTarget) -> str:
    """Ask pip itself, for the image's Python, without downloading; return its error, if any."""
    answer = _run_pip(requirements, index, wheels)
    if answer.returncode == 0 or "No module named pip" in answer.stderr:
        return ""
    return answer.stderr.strip().rpartition("\n")[2] or f"exit status {answer.returncode}"


def _run_pip(words: list[str], index: str, wheels: WheelTarget) -> subprocess.CompletedProcess[str]:
    is_own = wheels.processor == os.uname().machine
    platforms = [] if is_own else wheel_tags.platforms(wheels.processor)
    command = [
        *(sys.executable, "-m", "pip", "install", "--dry-run", "--ignore-installed"),
        *("--retries=1", "--target", "unused", "--no-deps", "--quiet", "--no-input"),
        *("--only-binary=:all:", "--python-version", wheels.python or "3", *words),
        *(f"--platform={platform}" for platform in platforms),
    ]
    return processes.capture(command, env=pip_settings.of_build(index), timeout=120)
