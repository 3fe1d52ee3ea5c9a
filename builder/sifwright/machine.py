"""The building machine's own settings: what a build needs of them, and nothing in the image."""

from __future__ import annotations

import ast
import os
import re
import shlex
import shutil
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from sifwright import runner

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

__all__ = ["Settings", "debian_mirror", "pip_environment", "pip_settings", "prepare", "values"]

PROXIES = ("http_proxy", "https_proxy", "no_proxy", "all_proxy")
PIP_KEYS = (
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
_PIP_PLACES = ("index-url", "extra-index-url", "find-links")
# Where Debian, Red Hat and SUSE keep the certificates of the authorities a machine trusts.
CA_BUNDLES = (
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
)
# How to reach mirrors; certificates and keys are files of this machine and handled apart.
_ACQUIRE = re.compile(
    r'^Acquire::(http|https|ftp|Retries)\b(?!.*(CaInfo|Cert|Key)).*";$', re.IGNORECASE
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Settings:
    """What to hand to the engine: variables for its process, and folders to bind."""

    env: Mapping[str, str]
    binds: tuple[str, ...]


def values() -> dict[str, str]:
    """What a definition file needs to know of this machine."""
    mirror = debian_mirror()
    return {"debian-mirror": mirror} if mirror else {}


def debian_mirror() -> str:
    """The first Debian mirror in this machine's apt configuration, or nothing."""
    if shutil.which("apt-get") is None:
        return ""
    fields = "$(REPO_URI)|$(LABEL)|$(ORIGIN)"
    answer = runner.capture(["apt-get", "indextargets", "--format", fields, "Created-By: Packages"])
    for line in answer.stdout.splitlines():
        address, label, origin = line.split("|")
        # The security archive has another label. A password would end up in the image.
        is_archive = (label, origin) == ("Debian", "Debian") and "@" not in address
        if is_archive and address.startswith(("http://", "https://")):
            return address.rstrip("/")
    return ""


@cache
def _pip_config() -> str:
    return runner.capture([sys.executable, "-m", "pip", "config", "list"]).stdout


def pip_settings() -> dict[str, str]:
    """This machine's pip settings, from its files and the environment, by pip's own rules."""
    found: dict[str, str] = {}
    # Later wins: for all commands, for `install`, in the environment.
    for section in ("global", "install", ":env:"):
        for line in _pip_config().splitlines():
            name, _, text = line.partition("=")
            key = name.removeprefix(f"{section}.")
            if key != name and key in PIP_KEYS:
                found[key] = " ".join(str(ast.literal_eval(text)).split())
    return found


def pip_environment(settings: Mapping[str, str]) -> dict[str, str]:
    """The settings as the variables that pip reads them from."""
    return {f"PIP_{key.upper().replace('-', '_')}": value for key, value in settings.items()}


def prepare(folder: Path) -> Settings:
    """Write the settings into `folder` as templates/setup.sh and templates/step.sh read them."""
    machine, mounts = folder / "machine", folder / "mnt"
    machine.mkdir()
    mounts.mkdir()
    pip = pip_settings()
    # As a file of this machine it means nothing in the image; templates/step.sh names the copy.
    pip.pop("cert", None)
    binds = list(_local_folders(pip, mounts))
    environment = {name: value for name, value in _proxies().items() if value}
    environment |= pip_environment(pip)
    lines = [f"export {name}={shlex.quote(value)}\n" for name, value in environment.items()]
    _write_private(machine / "environment", "".join(lines))
    apt = _apt_settings()
    _write_private(machine / "apt.conf", apt)
    if bundle := ca_bundle():
        shutil.copyfile(bundle, machine / "ca.crt")
    return Settings(
        env={"SIFWRIGHT_MACHINE": str(machine), **_debootstrap_proxy(apt)},
        binds=(f"{mounts}:/mnt", *binds) if binds else (),
    )


def ca_bundle() -> str:
    """The certificates this machine trusts: as its environment or pip says, else the system's."""
    named = (os.environ.get(name, "") for name in CA_VARIABLES)
    candidates = (*named, pip_settings().get("cert", ""), *CA_BUNDLES)
    return next((path for path in candidates if path and Path(path).is_file()), "")


def _write_private(path: Path, text: str) -> None:
    """Settings can hold passwords: readable by nobody else from the first byte on."""
    path.touch(mode=0o600)
    path.write_text(text)


def _proxies() -> dict[str, str]:
    names = (*PROXIES, *(name.upper() for name in PROXIES))
    return {name: os.environ.get(name, "") for name in names}


def _local_folders(pip: dict[str, str], mounts: Path) -> Iterator[str]:
    """Rewrite the folders pip looks into to where they are bound, and yield the binds."""
    places: dict[str, str] = {}
    for key in _PIP_PLACES:
        words = pip.get(key, "").split()
        for word in words:
            path = _local_path(word)
            if path is not None and word not in places:
                # An index links to files beside it, as in ../../packages/x.whl (PEP 503 mirrors).
                folder = path if key == "find-links" or path.parent == Path("/") else path.parent
                target = Path("/mnt", str(len(places)))
                (mounts / target.name).mkdir()
                yield f"{folder}:{target}:ro"
                places[word] = f"file://{target / path.relative_to(folder)}"
        if key in pip:
            pip[key] = " ".join(places.get(word, word) for word in words)


def _local_path(word: str) -> Path | None:
    """The folder that a pip setting names on this machine, if it does."""
    path = unquote(urlsplit(word).path) if word.startswith("file://") else word
    # A colon or comma in a bind would be read as the next part of it.
    if not path.startswith(("/", "~")) or re.search(r"[:,]", path):
        return None
    folder = Path(path).expanduser()
    return folder.resolve() if folder.is_dir() else None


def _apt_settings() -> str:
    """How apt reaches its mirrors (proxies, retries); not which ones, nor this machine's keys."""
    if shutil.which("apt-config") is None:
        return ""
    lines = runner.capture(["apt-config", "dump"]).stdout.splitlines()
    return "".join(f"{line}\n" for line in lines if _ACQUIRE.match(line))


def _debootstrap_proxy(apt_settings: str) -> dict[str, str]:
    """Debootstrap reads the environment only: give it apt's proxy if there is no other."""
    match = re.search(r'^Acquire::http::Proxy "(http[^"]+)";$', apt_settings, re.MULTILINE)
    if match is None or os.environ.get("http_proxy"):
        return {}
    return {"http_proxy": match.group(1)}
