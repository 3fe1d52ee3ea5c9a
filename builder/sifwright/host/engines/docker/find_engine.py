"""Find the engine to use: what the user named, else what is usual on a machine."""

import errno
import os
import socket
import stat
from contextlib import closing
from pathlib import Path
from urllib.parse import urlsplit

from docker import APIClient, errors
from packaging.version import InvalidVersion, Version

from sifwright.errors import MachineError, Problem
from sifwright.host.engines.docker import contexts
from sifwright.host.engines.docker.client import Docker
from sifwright.host.engines.docker.engine_errors import LOST, one_line

# Docker Engine 19.03, and podman 3: older ones we have not tried.
MINIMUM = Version("1.40")
# Newest API of the SDK; engines take older requests than their own.
_SPOKEN = Version("1.44")
# The service answers at once or it is not there; what it is asked later may take hours.
_FIRST_SECONDS = 20
_SECONDS = 12 * 3600
_SYSTEM = Path("/var/run/docker.sock")
_INSTALL = (
    "Install Docker Engine or podman (Debian: docker.io, podman) and start its service, or name"
    " it with DOCKER_HOST=unix:///PATH."
)
_PERMISSION = (
    "Become a member of its group ({group}: sudo usermod -aG {group} $USER). Or run a rootless"
    " engine (podman: systemctl --user start podman.socket)."
)
# Go's names of processors.
_PROCESSORS = {"amd64": "x86_64", "arm64": "aarch64"}


def find() -> Docker:
    """Return the engine that the environment or Docker's settings name, else the first to answer.

    Raises `MachineError` if there is none that can be used.
    """
    problems: list[Problem] = []
    for address in addresses():
        try:
            return _connect(address)
        except MachineError as error:
            problems += error.problems
    if not problems:
        message = f"no Docker Engine and no podman service: no socket {', '.join(_places())}"
        raise MachineError.of(message, fix=_INSTALL)
    raise MachineError(*problems)


def addresses() -> list[str]:
    """Return the address that is named, else the usual sockets that exist.

    Raises `MachineError` for settings that cannot be used.
    """
    contexts.check()
    named = contexts.named()
    return [named] if named else [f"unix://{path}" for path in _places() if Path(path).exists()]


def _places() -> list[str]:
    own = os.environ.get("XDG_RUNTIME_DIR", "")
    rootless = [Path(own, "docker.sock"), Path(own, "podman/podman.sock")] if own else []
    return [str(path) for path in (_SYSTEM, *rootless, Path("/run/podman/podman.sock"))]


def _connect(address: str) -> Docker:
    """Return the engine behind an address; raises `MachineError` if it cannot be used."""
    _require_local(address)
    try:
        require_listener(address)
        with closing(APIClient(address, str(MINIMUM), timeout=_FIRST_SECONDS)) as first:
            version = first.version(api_version=False)
        spoken = Version(version["ApiVersion"])
    except (KeyError, TypeError, ValueError, InvalidVersion) as error:
        message = f"what answers there is no Docker Engine: {one_line(error)}"
        raise MachineError.of(message, where=address, fix=_INSTALL) from None
    except (errors.DockerException, *LOST) as error:
        raise _no_answer(address, error) from None
    podman = any(
        component.get("Name") == "Podman Engine" for component in version.get("Components") or ()
    )
    product = "podman" if podman else "Docker Engine"
    name = f"{product} {version.get('Version', '')}".strip()
    if spoken < MINIMUM:
        message = f"{name} is too old: its interface is {spoken}, {MINIMUM} is needed"
        fix = "Install Docker Engine 19.03 or later, or podman 3 or later."
        raise MachineError.of(message, where=address, fix=fix)
    api = APIClient(base_url=address, version=str(min(spoken, _SPOKEN)), timeout=_SECONDS)
    return Docker(
        api=api,
        product=product,
        version=str(version.get("Version", "")),
        address=address,
        processor=_PROCESSORS.get(version.get("Arch", ""), str(version.get("Arch", ""))),
    )


def require_listener(address: str) -> None:
    """Raise `OSError` where nobody listens: there, the SDK leaves its socket open (7.2)."""
    url = urlsplit(address)
    if url.scheme == "unix":
        with socket.socket(socket.AF_UNIX) as client:
            client.settimeout(_FIRST_SECONDS)
            client.connect(url.path)


def _require_local(address: str) -> None:
    """Raise `MachineError` for an engine elsewhere, which lacks this machine's folders."""
    if urlsplit(address).scheme == "unix":
        return
    raise MachineError.of(
        "is an engine that is not on this machine: it sees none of the folders a build needs",
        where=contexts.redact_login(address),
        fix="Build on the machine it runs on, or name an engine of this one:"
        " DOCKER_HOST=unix:///var/run/docker.sock (docker context use default).",
    )


def _no_answer(address: str, error: Exception) -> MachineError:
    path = Path(urlsplit(address).path)
    if refused := no_permission(address, error):
        return refused
    there = path.exists() and stat.S_ISSOCK(path.stat().st_mode)
    message = f"no engine answers there: {one_line(error)}" if there else "there is no such socket"
    return MachineError.of(message, where=str(path), fix=_INSTALL)


def no_permission(address: str, error: Exception) -> MachineError | None:
    """Return advice if this user may not use the socket; else None."""
    if _number(error) not in {errno.EACCES, errno.EPERM}:
        return None
    path = Path(urlsplit(address).path)
    try:
        group = path.group()
    except (OSError, KeyError):
        group = "docker"
    message = "this user may not use the engine's socket"
    return MachineError.of(message, where=str(path), fix=_PERMISSION.format(group=group))


def _number(error: BaseException | None) -> int:
    """Return the number of the system's error below those of the SDK."""
    while error is not None:
        for cause in (error, *error.args):
            if isinstance(cause, OSError) and cause.errno:
                return cause.errno
        inner = next((cause for cause in error.args if isinstance(cause, BaseException)), None)
        error = inner or error.__cause__ or error.__context__
    return 0
