"""The proxies that a user has named for containers, in the configuration of the command docker."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from docker.utils import config
from docker.utils.proxy import ProxyConfig

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sifwright.host.engines.docker.client import Docker

__all__ = ["proxies"]


def proxies(engine: Docker) -> dict[str, str]:
    """As variables: those for this engine, else for all; see "proxies" in Docker's manual.

    Steps get them as they get those of the environment. The SDK would give them to the container,
    and they would stay in what is committed.
    """
    # An object of objects: settings.py has seen to it before the engine was asked.
    settings: Mapping[str, Any] = config.load_general_config()
    named: Mapping[str, Any] = settings.get("proxies", {})
    found = named.get(engine.address) or named.get("default", {})
    values = ProxyConfig.from_dict(found).get_environment()
    return {name: str(value) for name, value in values.items()}
