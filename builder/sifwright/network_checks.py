"""Whether everything a plan downloads can be had, asked before the first minute of a build."""

from __future__ import annotations

import os
import re
import ssl
import sys
import urllib.request
from typing import TYPE_CHECKING

from sifwright import runner
from sifwright.errors import Problem
from sifwright.machine import ca_bundle

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from sifwright.model import Download, Plan, Step

__all__ = ["problems"]

_NETWORK_SECONDS = 20.0


def problems(plan: Plan, machine: Mapping[str, str]) -> Iterator[Problem]:
    """Yield what the plan downloads and cannot get."""
    wanted = [(step, download) for step in plan.steps for download in step.layer.downloads]
    for step, download in wanted:
        if download.url:
            yield from _url_problems(step, download, machine)
    packages = [(step, item) for step, item in wanted if item.pip and _requirement(step, item)]
    if not packages or _pip_finds([_requirement(*one) for one in packages], "", plan):
        return
    for step, download in packages:
        yield from _pip_problems(step, download, plan)


def _fill(text: str, step: Step) -> str:
    return re.sub(r"\{([a-z0-9-]+)\}", lambda match: step.options[match.group(1)].text, text)


def _requirement(step: Step, download: Download) -> str:
    """The requirement with its version; nothing if the option that holds it is empty."""
    text = _fill(download.pip, step)
    return "" if text.endswith("==") else text


def _url_problems(step: Step, download: Download, machine: Mapping[str, str]) -> Iterator[Problem]:
    base = step.options[download.option].text or machine.get(download.machine, "")
    address = f"{base.rstrip('/')}/{_fill(download.url, step)}"
    context = ssl.create_default_context(cafile=ca_bundle() or None)
    try:
        urllib.request.urlopen(address, timeout=_NETWORK_SECONDS, context=context).close()  # noqa: S310  # the schema of the option allows http and https only
    except (OSError, ValueError) as error:
        yield Problem(
            where=f"{step.layer.name}.{download.option}",
            what=f"{download.what} cannot be reached at {address}: {error}",
            fix=f"Check the network and proxies, or --set {step.layer.name}.{download.option}=…",
        )


def _pip_problems(step: Step, download: Download, plan: Plan) -> Iterator[Problem]:
    requirement, index = _requirement(step, download), _fill(download.index, step)
    if _pip_finds([requirement], "", plan) or (index and _pip_finds([requirement], index, plan)):
        return
    asked = "this machine's pip settings" + (f" and {index}" if index else "")
    yield Problem(
        where=f"layer '{step.layer.name}'",
        what=f"pip finds no wheel of {requirement} for Python {plan.facts.get('python', '')}"
        f" (asked: {asked})",
        fix="Check the version and the network, or point pip at a mirror (PIP_INDEX_URL,"
        " PIP_FIND_LINKS or pip.conf).",
    )


def _pip_finds(requirements: list[str], index: str, plan: Plan) -> bool:
    """Ask pip itself, for the image's Python, without downloading what it finds."""
    command = [
        *(sys.executable, "-m", "pip", "install", "--dry-run", "--no-deps", "--quiet"),
        *("--ignore-installed", "--only-binary=:all:", "--retries=1", "--no-input"),
        *("--target", "unused", "--python-version", plan.facts.get("python", "3")),
        *(["--index-url", index] if index else []),
        *requirements,
    ]
    env = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
    return runner.capture(command, env=env, timeout=120).returncode == 0
