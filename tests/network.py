"""This machine's network for tests of real parts: a check of it, and its mirrors with others."""

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path

import requests
from pip._internal.models.index import PyPI

from sifwright.catalog import mirrors
from sifwright.host.network import pip_settings

__all__ = ["has_network", "write_mirrors"]


@cache
def has_network() -> bool:
    """Tell whether pip's index answers, with any status."""
    index = pip_settings.settings().get("index-url", PyPI.simple_url)
    try:
        requests.head(index, timeout=60, verify=pip_settings.ca_bundle() or True)
    except requests.RequestException:
        return False
    return True


def write_mirrors(file: Path, **more: Mapping[str, str]) -> Path:
    """Write a mirrors file: this machine's own rules, and these of each kind on top."""
    given = mirrors.load()
    own = {kind: {rule.source: rule.target for rule in given.of(kind)} for kind in mirrors.KINDS}
    rules = {kind: own[kind] | dict(more.get(kind, {})) for kind in own} | {"pip": dict(given.pip)}
    file.write_text(json.dumps({kind: some for kind, some in rules.items() if some}))
    return file
