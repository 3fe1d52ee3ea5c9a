"""Put the channel's public address wherever conda noted the building machine's mirror of it.

Called with conda's folder; MIRROR and OPT_CHANNEL are the addresses. Fails if a trace is left.
"""
# ruff: noqa: INP001  # a program of its own

from __future__ import annotations

import os
import re
import sys
from pathlib import Path
from urllib.parse import quote, unquote

# Files that conda writes about packages; anything else is a package's own and stays as it is.
NOTES = re.compile(
    r"/(conda-meta/[^/]+|info/repodata_record\.json|urls(\.txt)?|environments\.txt|cache/[^/]+)$"
)


def parts(mirror: str) -> tuple[str, str, str]:
    """Split an address into scheme, login and the rest; a password may hold an @."""
    scheme, _, rest = mirror.partition("://")
    host, slash, path = rest.partition("/")
    login, _, host = host.rpartition("@")
    return f"{scheme}://", login, f"{host}{slash}{path}"


def logins(login: str) -> set[str]:
    """Return the login as conda may write it: encoded or not."""
    return {login, unquote(login), quote(unquote(login), safe=":")} if login else set()


def forms(mirror: str) -> list[str]:
    """Return all ways to write the address, with and without login and token; longest first."""
    scheme, login, rest = parts(mirror)
    rests = {rest, *(re.sub("/t/[^/]+", new, rest, count=1) for new in ("", "/t/<TOKEN>"))}
    user = unquote(login).partition(":")[0]
    shown = {user, f"{user}:********", *logins(login)} if login else set()
    names = {"", *(f"{name}@" for name in shown)}
    return sorted({f"{scheme}{name}{rest}" for name in names for rest in rests}, key=len)[::-1]


def traces(mirror: str, channel: str) -> set[str]:
    """Return the texts that no file may hold: address, login, token."""
    _, login, rest = parts(mirror)
    token = re.search("/t/[^/]+", rest)
    plain = re.sub("/t/[^/]+", "", rest, count=1)
    texts = {rest, plain, *(f"//{name}@" for name in logins(login)), *([token[0]] if token else ())}
    # The mirror may be the public server, asked with a login.
    return {text for text in texts if text not in channel}


def main() -> str:
    """Return what is wrong, if anything is."""
    mirror, channel = os.environ["MIRROR"], os.environ["OPT_CHANNEL"]
    if mirror == channel:
        return ""
    left = []
    for path in Path(sys.argv[1]).rglob("*"):
        if path.is_symlink() or not path.is_file():
            continue
        before = data = path.read_bytes()
        if NOTES.search(str(path)):
            for form in forms(mirror):
                data = data.replace(form.encode(), channel.encode())
        if data != before:
            path.write_bytes(data)
        if any(trace.encode() in data for trace in traces(mirror, channel)):
            left.append(str(path))
    # Not the traces themselves: they may hold a password.
    return f"the address of the mirror is left in {', '.join(left)}" if left else ""


if __name__ == "__main__":
    sys.exit(main() or 0)
