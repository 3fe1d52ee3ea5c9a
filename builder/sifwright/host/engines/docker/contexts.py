"""The engine that a user named for the command `docker`: DOCKER_HOST, or a context."""

from __future__ import annotations

import hashlib
import json
import os
import re
from pathlib import Path
from urllib.parse import urlsplit

from docker.utils import config

from sifwright.errors import MachineError, quoted
from sifwright.host.engines.docker.docker_config import OBJECT, TEXT_OR_NULL, typed
from sifwright.host.engines.docker.engine_errors import one_line

_CONTEXTS = (
    "See 'docker context ls', and name one of those, or an engine: DOCKER_HOST=unix:///PATH."
)
_SOCKET = "/var/run/docker.sock"
# The kind, and a name and password up to the last @: nothing else may have one there.
_LOGIN = re.compile(r"^(?!unix:)([a-z+]+://)?.*@", re.DOTALL | re.IGNORECASE)


def named() -> str:
    """Return DOCKER_HOST, else the address of the context in use; empty without both.

    Raises `MachineError` for what is no address.
    """
    address = os.environ.get("DOCKER_HOST", "")
    if not address:
        return _of_context()
    if message := _no_address(address):
        path = address if address.startswith("/") else _SOCKET
        fix = f"Write unix:// and the whole path of its socket: DOCKER_HOST=unix://{path}"
        raise MachineError.of(message, where=shown(address), fix=fix)
    return address


def shown(address: str) -> str:
    """Return an engine's address without its login."""
    return _LOGIN.sub(r"\1", address, count=1)


def _no_address(text: str) -> str:
    kind, mark, rest = shown(text).partition("://")
    if not mark:
        return "is no address of an engine: what kind it is (unix://) is not said"
    if kind == "unix":
        whole = rest.startswith("/") and rest.strip("/")
        return "" if whole else "names no socket by its whole path"
    if kind not in {"tcp", "http", "https", "ssh"}:
        return f"is no address of an engine here: nothing is known of {kind}://"
    try:
        urlsplit(text).port  # noqa: B018  # the SDK asks for it, and fails
    except ValueError:
        return "is no address of an engine: its port is no number"
    return ""


def _of_context() -> str:
    """Return the address of the context in use; empty for the context default."""
    # As the SDK looks for the file; where there is no home, it looks where it is.
    folder = Path(os.environ.get("DOCKER_CONFIG") or Path(config.home_dir(), ".docker"))
    origin = "DOCKER_CONTEXT"
    if not (name := os.environ.get(origin, "")):
        origin, name = str(folder / "config.json"), _current(folder / "config.json")
    if name in {"", "default"}:
        return ""
    file = folder / "contexts" / "meta" / hashlib.sha256(name.encode()).hexdigest() / "meta.json"
    if not file.exists():
        message = f"there is no Docker context {quoted(name)}"
        raise MachineError.of(message, where=origin, fix=_CONTEXTS)
    return _address(file, f"Docker's context {quoted(name)}")


def _current(file: Path) -> str:
    try:
        return str(json.loads(file.read_bytes()).get("currentContext") or "")
    except (OSError, ValueError, AttributeError):
        return ""


def _address(file: Path, context: str) -> str:
    """Return the address in a context's file; empty if it has none, as for Docker."""
    try:
        host = _host(json.loads(file.read_bytes()))
    except (OSError, ValueError, RecursionError) as error:
        message = f"{context} cannot be read: {one_line(error)}"
        raise MachineError.of(message, where=str(file), fix=_CONTEXTS) from None
    if host and (message := _no_address(host)):
        message = f"{quoted(shown(host))}, the Host of {context}, {message}"
        raise MachineError.of(message, where=str(file), fix=_CONTEXTS)
    return host


def _host(data: object) -> str:
    endpoints = typed("'Endpoints'", typed("it", data, OBJECT).get("Endpoints", {}), OBJECT)
    if "docker" not in endpoints:
        raise ValueError("it is for no engine: 'Endpoints' has no 'docker'")
    endpoint = typed("'docker' of 'Endpoints'", endpoints["docker"], OBJECT)
    return str(typed("'Host' of 'docker'", endpoint.get("Host"), TEXT_OR_NULL) or "")
