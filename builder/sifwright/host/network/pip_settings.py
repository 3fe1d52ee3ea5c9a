"""This machine's settings of pip and trusted certificates: read, and handed over to a build."""

from __future__ import annotations

import ast
import os
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from sifwright.catalog import mirrors
from sifwright.system import files, processes, threads
from sifwright.system.netrc_file import Logins

if TYPE_CHECKING:
    from concurrent.futures import Future

_KEYS = (
    "index-url",
    "extra-index-url",
    "find-links",
    "no-index",
    "trusted-host",
    "proxy",
    "cert",
    "timeout",
    "default-timeout",
    "retries",
)
CA_VARIABLES = ("SSL_CERT_FILE", "PIP_CERT", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE")
_PLACES = {"index-url", "extra-index-url", "find-links"}
# Certificates of trusted authorities on Debian, Red Hat and SUSE.
CA_BUNDLES = (
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
)


@cache
def start_pip_config() -> Future[str]:
    """Ask pip for its settings in a thread: it answers after half a second."""
    command = [sys.executable, "-m", "pip", "config", "list"]
    return threads.start(lambda: processes.capture(command).stdout)


def _pip_config() -> str:
    return start_pip_config().result()


def settings() -> dict[str, str]:
    """Return this machine's pip settings, by pip's own rules, after those of the mirrors file."""
    values: dict[str, str] = {}
    # Later wins: for all commands, for `install`, in the environment.
    for section in ("global", "install", ":env:"):
        for line in _pip_config().splitlines():
            name, _, text = line.partition("=")
            key = name.removeprefix(f"{section}.")
            if key != name and key in _KEYS:
                values[key] = " ".join(str(ast.literal_eval(text)).split())
    return values | dict(mirrors.load().pip)


def of_build(index: str = "") -> dict[str, str]:
    """Return the settings that the build will see, and no others; `index` replaces the first index.

    Not this machine's constraints, required hashes or target folders. An index may hold a password,
    and every user can read the arguments of a process.
    """
    own = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "PIP_"))}
    first = {"PIP_INDEX_URL": index} if index else {}
    return own | {"PIP_CONFIG_FILE": os.devnull, **environment(settings()), **first}


def environment(settings: Mapping[str, str]) -> dict[str, str]:
    """Return the settings as the variables that pip reads them from."""
    return {f"PIP_{key.upper().replace('-', '_')}": value for key, value in settings.items()}


def ca_bundle() -> str:
    """Return the certificates that the environment or pip names, else the system's."""
    named = (os.environ.get(name, "") for name in CA_VARIABLES)
    candidates = (*named, settings().get("cert", ""), *CA_BUNDLES)
    return next((path for path in candidates if path and Path(path).is_file()), "")


def bound(pip: Mapping[str, str], binds: Binds) -> dict[str, str]:
    """Return the settings with the folders that pip reads as the build sees them.

    The image lacks the file of `cert`; render/templates/step.sh names the copy.
    """
    values = {key: text for key, text in pip.items() if key != "cert"}
    for key in _PLACES & pip.keys():
        words = pip[key].split()
        values[key] = " ".join(_bound(word, binds, links=key == "find-links") for word in words)
    return values


def of_step(pip: Mapping[str, str], logins: Logins) -> dict[str, str]:
    """Return the variables of pip in a step, which reads the logins of indexes from a netrc file.

    Pip passes its indexes on command lines, which are everybody's to read.
    """
    plain = {key: " ".join(map(logins.without, pip[key].split())) for key in pip if key in _PLACES}
    return environment({**pip, **plain})


def _bound(word: str, binds: Binds, *, links: bool) -> str:
    path = _local_path(word)
    if path is None:
        return word
    # An index links to files beside it, as in ../../packages/x.whl (PEP 503 mirrors).
    folder = path if links or path.parent == Path("/") else path.parent
    return f"file://{binds.bound(folder) / path.relative_to(folder)}"


def _local_path(word: str) -> Path | None:
    """Return the folder of this machine that a pip setting names, or None."""
    path = unquote(urlsplit(word).path) if word.startswith("file://") else word
    # A colon or comma in a bind would be read as the next part of it.
    if not path.startswith(("/", "~")) or re.search(r"[:,]", path):
        return None
    folder = files.expand_home(path)
    return folder.resolve() if folder.is_dir() else None


@dataclass(kw_only=True)
class Binds:
    """Folders of the building machine that a build sees below /mnt, which every base has.

    `mounts` stands for /mnt in the image; each folder gets a numbered folder in it.
    """

    mounts: Path
    words: list[str] = field(default_factory=list)
    _places: dict[Path, Path] = field(default_factory=dict)

    def bound(self, folder: Path, mode: str = "ro") -> Path:
        """Bind a folder, once, and say where the build finds it."""
        if folder not in self._places:
            target = Path("/mnt", str(len(self._places)))
            (self.mounts / target.name).mkdir(parents=True)
            self.words.append(f"{folder}:{target}:{mode}")
            self._places[folder] = target
        return self._places[folder]

    def all(self) -> tuple[str, ...]:
        """Return the binds for the engine; /mnt stays visible without any."""
        return (f"{self.mounts}:/mnt", *self.words) if self.words else ()
