"""What a user set for the command `docker`: which engine, and the file that the SDK reads."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Any

from docker import auth, errors
from docker.utils import config

from sifwright.engines.docker.faults import explained
from sifwright.errors import MachineError, quoted

__all__ = ["check", "named"]

_KINDS: dict[str, type] = {
    "auths": dict,
    "credHelpers": dict,
    "credsStore": str,
    "currentContext": str,
    "HttpHeaders": dict,
    "proxies": dict,
}
_NAMES: dict[type, str] = {dict: "an object", str: "a text"}
# What is made of objects of its own.
_NESTED = ("auths", "proxies")
_CONTEXTS = (
    "See 'docker context ls', and name one of those, or an engine: DOCKER_HOST=unix:///PATH."
)
_SOCKET = "/var/run/docker.sock"


def check() -> None:
    """Raise `MachineError` for a file that the SDK, which reads it for each client, trips over."""
    try:
        found = config.load_general_config()
        _check(found)
        auth.load_config(config_dict=found)
    except (errors.DockerException, AttributeError, TypeError, ValueError, RecursionError) as error:
        raise MachineError.of(
            f"Docker's settings cannot be used: {explained(error)}",
            where=str(config.find_config_file()),
            fix="Mend the file, or name another folder for it with DOCKER_CONFIG.",
        ) from None


def _check(found: object) -> None:
    values = {name: one for name, one in _typed("it", found, dict).items() if name in _KINDS}
    for name, value in values.items():
        _typed(f"'{name}'", value, _KINDS[name])
    for name in _NESTED:
        for key, value in values.get(name, {}).items():
            _typed(f"{quoted(key)} of '{name}'", value, dict)


def _typed(name: str, value: Any, kind: type) -> Any:  # noqa: ANN401  # it is JSON
    if not isinstance(value, kind):
        raise ValueError(f"{name} is {quoted(value)}, and not {_NAMES[kind]}")  # noqa: TRY004
    return value


def named() -> str:
    """As the command `docker` decides: DOCKER_HOST, then the context in use; empty without both.

    Raises `MachineError` for what is no address.
    """
    address = os.environ.get("DOCKER_HOST") or _of_context()
    if address and (what := _no_address(address)):
        path = address if address.startswith("/") else _SOCKET
        fix = f"Write unix:// and the whole path of its socket: DOCKER_HOST=unix://{path}"
        raise MachineError.of(what, where=address, fix=fix)
    return address


def _no_address(text: str) -> str:
    kind, mark, rest = text.partition("://")
    if not mark:
        return "is no address of an engine: what kind it is (unix://) is not said"
    if kind == "unix":
        whole = rest.startswith("/") and rest.strip("/")
        return "" if whole else "names no socket by its whole path"
    known = kind in {"tcp", "http", "https", "ssh"}
    return "" if known else f"is no address of an engine here: nothing is known of {kind}://"


def _of_context() -> str:
    """Where the engine of the context in use is; empty for the one that is called default."""
    folder = Path(os.environ.get("DOCKER_CONFIG") or Path.home() / ".docker")
    origin = "DOCKER_CONTEXT"
    if not (name := os.environ.get(origin, "")):
        origin, name = str(folder / "config.json"), _current(folder / "config.json")
    if name in {"", "default"}:
        return ""
    file = folder / "contexts" / "meta" / hashlib.sha256(name.encode()).hexdigest() / "meta.json"
    if not file.exists():
        raise MachineError.of(
            f"there is no Docker context {quoted(name)}", where=origin, fix=_CONTEXTS
        )
    return _host(file, name)


def _current(file: Path) -> str:
    try:
        return str(json.loads(file.read_bytes())["currentContext"])
    except (OSError, ValueError, KeyError, TypeError):
        return ""


def _host(file: Path, name: str) -> str:
    try:
        return str(json.loads(file.read_bytes())["Endpoints"]["docker"].get("Host", ""))
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        what = f"Docker's context {quoted(name)} cannot be read: {explained(error)}"
        raise MachineError.of(what, where=str(file), fix=_CONTEXTS) from None
