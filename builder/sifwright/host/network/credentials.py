"""Names and passwords for registries: where Apptainer, Docker and podman keep them."""

import base64
import os
import warnings
from pathlib import Path
from typing import Any


def basic(registry: str) -> str:
    """Return the value of the header Authorization; '' without a login for this registry."""
    user, password = find_login(registry)
    if not user:
        return ""
    return f"Basic {base64.b64encode(f'{user}:{password}'.encode()).decode()}"


def find_login(registry: str) -> tuple[str, str]:
    """Return name and password; the name is empty without a login for this registry.

    The environment's, as Apptainer takes it, is for any registry.
    """
    if user := os.environ.get("APPTAINER_DOCKER_USERNAME", ""):
        return user, os.environ.get("APPTAINER_DOCKER_PASSWORD", "")
    for path in (path for path in _files() if path.is_file()):
        # Login of one file, or of its credential helper.
        login = {key.lower(): str(value) for key, value in (token(registry, path) or {}).items()}
        if login.get("username"):
            return login["username"], login.get("password", "")
    return "", ""


def _files() -> list[Path]:
    """Return the files with logins, by config.json(5) of Docker and containers-auth.json(5)."""
    home = Path(os.environ.get("HOME") or "/")
    named, runtime = os.environ.get("REGISTRY_AUTH_FILE"), os.environ.get("XDG_RUNTIME_DIR")
    return [
        *([Path(named)] if named else []),
        home / ".apptainer/docker-config.json",
        Path(os.environ.get("DOCKER_CONFIG") or home / ".docker") / "config.json",
        *([Path(runtime) / "containers/auth.json"] if runtime else []),
        Path(os.environ.get("XDG_CONFIG_HOME") or home / ".config") / "containers/auth.json",
    ]


def token(registry: str, path: Path | None = None) -> dict[str, Any] | None:
    """Return one file's login for a registry, or without a path Docker's own; None if it has none.

    A file or a helper that cannot be used gives an empty login. The registry answers whether it
    needs a login, and the command docker takes an empty one for none.
    """
    from docker import auth  # noqa: PLC0415  # 100 ms, and only needed where one is asked for
    from docker.errors import DockerException  # noqa: PLC0415

    try:
        with warnings.catch_warnings():
            # Ignore the warning about a helper that is not installed.
            warnings.simplefilter("ignore")
            logins = auth.load_config(str(path) if path else None)
            return logins.resolve_authconfig(registry) or None
    except (DockerException, OSError, ValueError, TypeError, AttributeError, KeyError):
        return {}
