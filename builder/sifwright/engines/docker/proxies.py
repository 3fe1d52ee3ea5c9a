"""The proxies that a user has named for containers, in the configuration of the command docker."""

from __future__ import annotations

from typing import TYPE_CHECKING

from docker.utils import config
from docker.utils.proxy import ProxyConfig

if TYPE_CHECKING:
    from sifwright.engines.docker.client import Docker

__all__ = ["proxies"]


def proxies(engine: Docker) -> dict[str, str]:
    """As variables: those for this engine, else for all; see "proxies" in Docker's manual.

    Steps get them as they get those of the environment. The SDK would give them to the container,
    and they would stay in what is committed.
    """
    settings: object = config.load_general_config()
    named = settings.get("proxies") if isinstance(settings, dict) else None
    found = (named.get(engine.address) or named.get("default")) if isinstance(named, dict) else None
    if not isinstance(found, dict):
        return {}
    values = ProxyConfig.from_dict(found).get_environment()  # type: ignore[arg-type]
    return {name: str(value) for name, value in values.items()}
