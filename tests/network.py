"""A check of this machine's network for tests of real parts."""

from functools import cache

import requests
from pip._internal.models.index import PyPI

from sifwright.host.network import pip_settings

__all__ = ["has_network"]


@cache
def has_network() -> bool:
    """Tell whether pip's index answers, with whatever status."""
    index = pip_settings.settings().get("index-url", PyPI.simple_url)
    try:
        requests.head(index, timeout=60, verify=pip_settings.ca_bundle() or True)
    except requests.RequestException:
        return False
    return True
