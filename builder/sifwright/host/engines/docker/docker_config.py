"""The file of the command `docker` that the SDK reads for each client: what it would trip over."""

from __future__ import annotations

from contextlib import contextmanager
from types import NoneType
from typing import TYPE_CHECKING, Any

from docker import auth, errors
from docker.utils import config
from requests.utils import check_header_validity

from sifwright.errors import MachineError, quoted
from sifwright.host.engines.docker.engine_errors import one_line

if TYPE_CHECKING:
    from collections.abc import Iterator

OBJECT: tuple[type, ...] = (dict,)
# What Docker takes for nothing, and the SDK as well where it is allowed here.
TEXT_OR_NULL: tuple[type, ...] = (str, NoneType)
_OBJECT_OR_NULL: tuple[type, ...] = (dict, NoneType)
# What is behind a name, and what is in that if it is an object.
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


def check() -> None:
    """Raise `MachineError` for a file that cannot be used; no value of it is said, only names."""
    try:
        data = config.load_general_config()
        _check(data)
        with _said("a login in it is not NAME:PASSWORD in base64"):
            auth.load_config(config_dict=data)
    except (errors.DockerException, AttributeError, TypeError, ValueError, RecursionError) as error:
        raise MachineError.of(
            f"Docker's settings cannot be used: {one_line(error)}",
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
        with _said(f"the login of {quoted(key)} is not NAME:PASSWORD in base64"):
            auth.parse_auth({key: inner_value}, raise_on_error=True)
    for key, inner_value in values.get("HttpHeaders", {}).items():
        with _said(f"{quoted(key)} of 'HttpHeaders' cannot be sent"):
            check_header_validity((key, inner_value or ""))
            f"{key}{inner_value}".encode("latin-1")


@contextmanager
def _said(message: str) -> Iterator[None]:
    """Replace the messages of libraries, which may hold a password."""
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
