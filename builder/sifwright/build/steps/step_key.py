"""Under which key the result of a step is cached, and what it depends on, by name."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict
from functools import cache
from typing import TYPE_CHECKING

from sifwright.render import build_files

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from sifwright.plan.model import Step

__all__ = ["OPTION", "inputs", "key"]

OPTION = "option "


def key(step: Step, surroundings: Mapping[str, str], below: str) -> str:
    """The key of a step's result.

    A step id covers the step and the decisions of those before it; `below` is the digest of what
    the step before made, so that results of different builds are never mixed. `surroundings` is
    what else decides the bytes: the base image as it is now, the processor, the compression.
    sifwright's own programs that run a step belong to it as well.
    """
    facts = {**surroundings, "step": step.id, "below": below, "programs": _programs()}
    return _digest(json.dumps(facts, sort_keys=True).encode())


def inputs(step: Step, surroundings: Mapping[str, str]) -> dict[str, str]:
    """What a step depends on, beside the steps before it: name -> value, or digest of a file."""
    return {**surroundings, "sifwright's programs": _programs(), **dict(_own(step))}


def _own(step: Step) -> Iterator[tuple[str, str]]:
    layer = step.layer
    yield "install.sh", _digest(layer.install.encode())
    for line in layer.bootstrap:
        yield f"bootstrap {line.keyword}", line.literal or f"option {line.option}"
    for rule in layer.env:
        yield f"env {rule.name}", f"{rule.action} {rule.value}"
    for file in step.files:
        yield file.path, f"{_digest(file.data)} {file.executable}"
    for source in step.sources:
        yield f"source {source.name}", json.dumps(asdict(source), sort_keys=True)
    for name, value in step.options.items():
        yield f"{OPTION}{name}", value.text


@cache
def _programs() -> str:
    files = [(file.path, _digest(file.data)) for file in build_files.programs()]
    setup = build_files.package_text("render/templates/setup.sh")
    return _digest(json.dumps([setup, *files]).encode())


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
