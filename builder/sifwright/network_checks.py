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
from sifwright.machine import ca_bundle, pip_environment, pip_settings

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
    if not packages or not _ask_pip([_requirement(*one) for one in packages], "", plan):
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
    answer = _ask_pip([requirement], "", plan)
    if answer and index:
        answer = _ask_pip([requirement], index, plan)
    if not answer:
        return
    asked = "this machine's pip settings" + (f" and {index}" if index else "")
    yield Problem(
        where=f"layer '{step.layer.name}'",
        what=f"pip finds no wheel of {requirement} for Python {plan.facts.get('python', '')}"
        f" (asked: {asked})\n    | {answer}",
        fix="Check the version and the network, or point pip at a mirror (PIP_INDEX_URL,"
        " PIP_FIND_LINKS or pip.conf).",
    )


def _ask_pip(requirements: list[str], index: str, plan: Plan) -> str:
    """Ask pip itself, for the image's Python, without downloading; return its error, if any.

    It sees the settings that the build will see, and no others: not this machine's constraints,
    required hashes or target folders.
    """
    command = [
        *(sys.executable, "-m", "pip", "install", "--dry-run", "--no-deps", "--quiet"),
        *("--ignore-installed", "--only-binary=:all:", "--retries=1", "--no-input"),
        *("--target", "unused", "--python-version", plan.facts.get("python", "3")),
        *(["--index-url", index] if index else []),
        *requirements,
    ]
    own = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "PIP_"))}
    settings = {"PIP_CONFIG_FILE": os.devnull, **pip_environment(pip_settings())}
    answer = runner.capture(command, env=own | settings, timeout=120)
    if answer.returncode == 0 or "No module named pip" in answer.stderr:
        return ""
    return answer.stderr.strip().rpartition("\n")[2] or f"exit status {answer.returncode}"
