"""User names and passwords of addresses, as a netrc file.

Every user of a machine can read the arguments of its processes. The programs curl, pip and conda
read a netrc file, so an address on their command line needs no login.
"""

import re
from base64 import b64encode
from dataclasses import dataclass, field
from urllib.parse import unquote, urlsplit, urlunsplit

from sifwright.errors import MachineError

FIX = "Write %5B for [ and %5D for ] in a user name or password."


@dataclass(frozen=True, slots=True)
class Login:
    """A user and a password, as they were before an address quoted them."""

    user: str
    password: str

    @property
    def header(self) -> str:
        """Return the header of HTTP that carries them (RFC 7617)."""
        encoded = b64encode(f"{self.user}:{self.password}".encode()).decode()
        return f"Authorization: Basic {encoded}"


def is_address(text: str) -> bool:
    """Tell whether the text can be taken apart, as `split` does."""
    try:
        urlsplit(text)
    except ValueError:
        return False
    return True


def split(address: str) -> tuple[str, Login | None]:
    """Return the address without its login, and the login; only addresses of HTTP have one."""
    parts = urlsplit(address)
    login, at, host = parts.netloc.rpartition("@")
    if not at or parts.scheme not in {"http", "https"}:
        return address, None
    user, _, password = login.partition(":")
    return urlunsplit(parts._replace(netloc=host)), Login(unquote(user), unquote(password))


@dataclass(slots=True)
class Logins:
    """The logins of many addresses, by host: a netrc file knows no ports and no paths."""

    hosts: dict[str, Login] = field(default_factory=dict)

    def without(self, address: str) -> str:
        """Return the address without its login, and keep the login.

        An address stays as it is if its host has another login already. It also stays if a netrc
        file cannot express its login.
        """
        if not is_address(address):
            shown = re.sub("//.*@", "//", address)
            raise MachineError.of(f"{shown}, of pip's settings, is no address", fix=FIX)
        plain, login = split(address)
        if login is None or re.search(r"[\x00-\x1f]", login.user + login.password):
            return address
        host = urlsplit(plain).hostname or ""
        return plain if self.hosts.setdefault(host, login) == login else address

    def text(self) -> str:
        """Return the file."""
        return "".join(
            f"machine {host} login {_quoted(login.user)} password {_quoted(login.password)}\n"
            for host, login in self.hosts.items()
        )


def _quoted(text: str) -> str:
    """Quote a word as curl (since 7.84) and Python read it, if it needs quotes."""
    if re.fullmatch(r"[\w.~:/+=,@%!*-]+", text, re.ASCII):
        return text
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
