"""The submitting machine's settings for a job: variables, mirrors, certificates, logins, secrets.

They stand in files that nobody else can read, neither in the job script nor in its environment.
"""

import os
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import yaml

from sifwright.catalog import mirrors
from sifwright.host.network import pip_settings
from sifwright.system import cache_folder, files

ENVIRONMENT = "environment"
# Engines, tools and the way to the internet; no variable of a login node's session or scheduler.
_CARRIED = re.compile(
    r"PATH|LD_LIBRARY_PATH|HOME|USER|LOGNAME|LANG|LC_\w+|MAX_JOBS|XDG_(CACHE|CONFIG|DATA)_HOME"
    r"|CCACHE_DIR|SOURCE_DATE_EPOCH|APT_CONFIG|DOCKER_CONFIG|MODULEPATH|MODULESHOME|LMOD_PKG"
    r"|(https?|no|all)_proxy|(HTTPS?|NO|ALL)_PROXY"
    r"|(SIFWRIGHT|APPTAINER|SINGULARITY|GIT|UV|PIP)_\w+"
)
# Variables that name a file, which may lie where only this machine reaches it.
_FILES = ("REGISTRY_AUTH_FILE", "NETRC", "GIT_SSL_CAINFO")


def write(folder: Path, secrets: Mapping[str, bytes]) -> None:
    """Write the settings into a new folder, for us alone."""
    folder.mkdir(mode=0o700)
    lines = (f"export {name}={shlex.quote(value)}\n" for name, value in _variables(folder))
    # A value may be no UTF-8.
    files.write_private(folder / ENVIRONMENT, os.fsencode("".join(lines)))
    for name, content in secrets.items():
        files.write_private(_secret(folder, name), content)


def secret_words(folder: Path, names: Iterable[str]) -> list[str]:
    """Return the options that give a build these secrets of the folder."""
    return [f"--secret=id={name},src={_secret(folder, name)}" for name in names]


def _secret(folder: Path, name: str) -> Path:
    return folder / f"secret-{name}"


def _variables(folder: Path) -> Iterator[tuple[str, str]]:
    yield from ((name, text) for name, text in os.environ.items() if _CARRIED.fullmatch(name))
    yield from pip_settings.environment(pip_settings.settings()).items()
    yield "SIFWRIGHT_CACHE", str(cache_folder.root().parent)
    if os.environ.get(mirrors.VARIABLE):
        yield mirrors.VARIABLE, str(_mirrors(folder / "mirrors.yaml"))
    if bundle := pip_settings.ca_bundle():
        copy = str(files.write_private(folder / "ca.crt", Path(bundle).read_bytes()))
        yield from ((name, copy) for name in pip_settings.CA_VARIABLES)
    for name, path in _named_files():
        yield name, str(files.write_private(folder / name.lower(), path.read_bytes()))


def _named_files() -> Iterator[tuple[str, Path]]:
    """Yield files with logins; podman's is in a folder that this machine alone has."""
    own = Path(os.environ.get("XDG_RUNTIME_DIR") or "/run/none") / "containers" / "auth.json"
    named = {"REGISTRY_AUTH_FILE": own}
    named |= {name: Path(os.environ[name]) for name in _FILES if os.environ.get(name)}
    return ((name, path) for name, path in named.items() if path.is_file())


def _mirrors(path: Path) -> Path:
    """Write the mirrors file again, with whole paths: it no longer lies beside its folders."""
    loaded = mirrors.load()
    document: dict[str, dict[str, str]] = {"pip": dict(loaded.pip)} if loaded.pip else {}
    for rule in loaded.rules:
        document.setdefault(rule.kind, {})[rule.source] = rule.target
    return files.write_private(path, yaml.safe_dump(document).encode())
