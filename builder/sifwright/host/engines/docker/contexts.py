"""Settings of the command `docker`: the engine that it names, and what the SDK would trip over.

The engine is DOCKER_HOST's, or that of a context.
"""

import hashlib
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import NoneType
from typing import Any
from urllib.parse import urlsplit

from docker import auth, errors
from docker.utils import config
from requests.utils import check_header_validity

from sifwright.errors import MachineError, quoted
from sifwright.host.engines.docker.engine_errors import one_line
from sifwright.system import small_file

OBJECT: tuple[type, ...] = (dict,)
# Docker takes null for an empty value; the SDK does so where null is allowed here.
TEXT_OR_NULL: tuple[type, ...] = (str, NoneType)
_OBJECT_OR_NULL: tuple[type, ...] = (dict, NoneType)
# Type of each key's value, and types of the values in it if it is an object.
_KINDS: dict[str, tuple[tuple[type, ...], tuple[type, ...]]] = {
    "auths": (_OBJECT_OR_NULL, OBJECT),
    "credHelpers": (_OBJECT_OR_NULL, TEXT_OR_NULL),
    "credsStore": (TEXT_OR_NULL, ()),
    "currentContext": (TEXT_OR_NULL, ()),
    "HttpHeaders": (OBJECT, TEXT_OR_NULL),
    "proxies": (OBJECT, OBJECT),
}
_NAMES: dict[type, str] = {
    dict: "an object",
    str: "a text",
    list: "a list",
    bool: "true or false",
    NoneType: "null",
}
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
        raise MachineError.of(message, where=redact_login(address), fix=fix)
    return address


def redact_login(address: str) -> str:
    """Return an engine's address without its login."""
    return _LOGIN.sub(r"\1", address, count=1)


def _no_address(text: str) -> str:
    kind, mark, rest = redact_login(text).partition("://")
    if not mark:
        return "is no address of an engine: what kind it is (unix://) is not said"
    if kind == "unix":
        return "" if re.match("/+[^/]", rest) else "names no socket by its whole path"
    if kind not in {"tcp", "http", "https", "ssh"}:
        return f"is no address of an engine here: nothing is known of {kind}://"
    try:
        urlsplit(text).port  # noqa: B018  # the SDK asks for it, and fails
    except ValueError:
        return "is no address of an engine: its port is no number"
    return ""


def _of_context() -> str:
    """Return the address of the context in use; empty for the context default."""
    # Look for the file as the SDK does: without a home directory, in the current folder.
    folder = Path(os.environ.get("DOCKER_CONFIG") or Path(config.home_dir(), ".docker"))
    origin = "DOCKER_CONTEXT"
    if not (name := os.environ.get(origin, "")):
        origin = str(folder / "config.json")
        name = str(small_file.read_object(Path(origin)).get("currentContext") or "")
    if name in {"", "default"}:
        return ""
    file = folder / "contexts" / "meta" / hashlib.sha256(name.encode()).hexdigest() / "meta.json"
    if not file.exists():
        message = f"there is no Docker context {quoted(name)}"
        raise MachineError.of(message, where=origin, fix=_CONTEXTS)
    return _address(file, f"Docker's context {quoted(name)}")


def _address(file: Path, context: str) -> str:
    """Return the address in a context's file; empty if it has none, as for Docker."""
    try:
        data = typed("it", small_file.read_json(file), OBJECT)
        endpoints = typed("'Endpoints'", data.get("Endpoints", {}), OBJECT)
        if "docker" not in endpoints:
            raise ValueError("it is for no engine: 'Endpoints' has no 'docker'")  # noqa: TRY301
        endpoint = typed("'docker' of 'Endpoints'", endpoints["docker"], OBJECT)
        host = str(typed("'Host' of 'docker'", endpoint.get("Host"), TEXT_OR_NULL) or "")
    except (OSError, ValueError, RecursionError) as error:
        message = f"{context} cannot be read: {one_line(error)}"
        raise MachineError.of(message, where=str(file), fix=_CONTEXTS) from None
    if host and (message := _no_address(host)):
        message = f"{quoted(redact_login(host))}, the Host of {context}, {message}"
        raise MachineError.of(message, where=str(file), fix=_CONTEXTS)
    return host


def check() -> None:
    """Raise `MachineError` for a file that cannot be used; no value of it is said, only names."""
    try:
        data = config.load_general_config()
        _check(data)
        with _replace_message("a login in it is not NAME:PASSWORD in base64"):
            auth.load_config(config_dict=data)
    except (errors.DockerException, AttributeError, TypeError, ValueError, RecursionError) as error:
        reason = "nested too deeply" if isinstance(error, RecursionError) else one_line(error)
        raise MachineError.of(
            f"Docker's settings cannot be used: {reason}",
            where=str(config.find_config_file()),
            fix="Mend the file, or name another folder for it with DOCKER_CONFIG.",
        ) from None


def _check(data: object) -> None:
    values: dict[str, Any] = typed("it", data, OBJECT)
    for name, (kinds, inner) in _KINDS.items():
        value = typed(f"'{name}'", values[name], kinds) if name in values else None
        for key, inner_value in value.items() if inner and value else ():
            typed(f"{quoted(key)} of '{name}'", inner_value, inner)
    for key, inner_value in (values.get("auths") or {}).items():
        with _replace_message(f"the login of {quoted(key)} is not NAME:PASSWORD in base64"):
            auth.parse_auth({key: inner_value}, raise_on_error=True)
    for key, inner_value in values.get("HttpHeaders", {}).items():
        with _replace_message(f"{quoted(key)} of 'HttpHeaders' cannot be sent"):
            check_header_validity((key, inner_value or ""))
            f"{key}{inner_value}".encode("latin-1")


@contextmanager
def _replace_message(message: str) -> Iterator[None]:
    try:
        yield
    except (TypeError, ValueError):
        raise ValueError(message) from None


def typed(name: str, value: Any, kinds: tuple[type, ...]) -> Any:  # noqa: ANN401  # it is JSON
    """Return the value; raises `ValueError` without it for another kind: it may be a password."""
    if not isinstance(value, kinds):
        kind = _NAMES.get(type(value), "a number")
        raise ValueError(f"{name} is {kind}, and not {_NAMES[kinds[0]]}")  # noqa: TRY004
    return value
