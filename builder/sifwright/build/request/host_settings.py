"""The building machine's own settings: what a build needs of them, and nothing in the image."""

from __future__ import annotations

import dataclasses
import os
import re
import shlex
import shutil
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING

from sifwright.catalog import mirrors
from sifwright.catalog.mirrors import MirrorRule
from sifwright.host.network import apt_mirror, pip_settings
from sifwright.host.network.apt_mirror import DEBIAN, SECURITY
from sifwright.host.network.pip_settings import Binds
from sifwright.system import ids, processes
from sifwright.system.netrc_file import Logins

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from sifwright.build.request.base_image import BaseImage

PROXIES = ("http_proxy", "https_proxy", "no_proxy", "all_proxy")
_NONE: Mapping[str, str] = MappingProxyType({})
_PROXY_NAMES = (*PROXIES, *(name.upper() for name in PROXIES))
# How to reach mirrors; certificates and keys are files of this machine and handled apart.
_ACQUIRE = re.compile(
    r'^Acquire::(http|https|ftp|Retries)\b(?!.*(CaInfo|Cert|Key)).*";$', re.IGNORECASE
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Settings:
    """The settings of the building machine.

    `env` are variables for the engine's process, `machine` is the folder that a step reads, `binds`
    are the folders that its programs read below /mnt.
    """

    env: Mapping[str, str]
    machine: Path
    mounts: Path
    binds: tuple[str, ...]

    @property
    def definition_binds(self) -> tuple[str, ...]:
        """Return the binds of a whole definition file, which finds `machine` at /mnt/machine."""
        return f"{self.mounts}:/mnt", f"{self.machine}:/mnt/machine:ro", *self.binds[1:]


def values(base: BaseImage) -> dict[str, str]:
    """Return the values of this machine that a definition file needs.

    That is where Debian's archives are, and lines of the header that lead to a mirror, by their
    keyword.
    """
    rules, header = mirrors.load(), base.step.header
    apt, lines = rules.of("apt"), base.step.layer.bootstrap
    archives = (line.keyword for line in lines if line.machine == "debian-mirror")
    mirror, named = _archive(apt, DEBIAN), header.get(next(archives, ""), "")
    url = header.get("MirrorURL", "")
    redirected = rules.redirect(url, "apt")
    addresses = {
        "debian-mirror": mirror,
        "debian-security-mirror": _archive(apt, SECURITY) or _beside(named or mirror),
        "MirrorURL": redirected if redirected != url else "",
        "From": str(base.reference) if base.is_redirected else "",
    }
    return {name: address for name, address in addresses.items() if address}


def _beside(mirror: str) -> str:
    """Return where mirrors of Debian have the security archive, as layer base-debian takes it."""
    return f"{mirror.rstrip('/')}-security" if mirror else ""


def _archive(apt: Sequence[MirrorRule], name: str) -> str:
    """Return this machine's address of an archive of Debian, by the mirrors file or by apt."""
    target = mirrors.redirect(apt, name)
    return target if target != name else mirrors.redirect(apt, apt_mirror.mirror(name))


def prepare(folder: Path, record: str = "", proxies: Mapping[str, str] = _NONE) -> Settings:
    """Write the settings into `folder` for step.sh of render/templates.

    `record` is what sources without a pin were when they were first used; `proxies` are for what
    the environment does not set.
    """
    machine, binds = folder / "machine", Binds(mounts=folder / "mnt")
    machine.mkdir()
    pip = pip_settings.bound(pip_settings.settings(), binds)
    # The image lacks this file of the machine; render/templates/step.sh names the copy.
    pip.pop("cert", None)
    rules = list(_bound_rules(binds))
    rules += list(_archive_rules([rule for rule in rules if rule.kind == "apt"]))
    logins = Logins()
    table = "".join(_mirror_lines(rules, logins))
    pip = {key: _without_logins(key, value, logins) for key, value in pip.items()}
    apt = _apt_settings()
    if ids.are_one():
        # It would become another user to download.
        apt += 'APT::Sandbox::User "root";\n'
    _write_private(machine / "environment", "".join(_exports(pip, proxies)))
    _write_private(machine / "apt.conf", apt)
    _write_private(machine / "mirrors", table)
    _write_private(machine / "netrc", logins.text())
    _write_private(machine / "gitconfig", "".join(_git_lines(rules)))
    _write_private(machine / "pins", record)
    if bundle := pip_settings.ca_bundle():
        shutil.copyfile(bundle, machine / "ca.crt")
    (binds.mounts / "machine").mkdir(parents=True)
    return Settings(
        env=_debootstrap_proxy(apt), machine=machine, mounts=binds.mounts, binds=binds.all()
    )


def _exports(pip: Mapping[str, str], proxies: Mapping[str, str]) -> Iterator[str]:
    own = {name: os.environ[name] for name in _PROXY_NAMES if os.environ.get(name)}
    named = {name.lower() for name in own}
    environment = {
        **{name: value for name, value in proxies.items() if name.lower() not in named},
        **own,
        "MAX_JOBS": os.environ.get("MAX_JOBS", ""),
    }
    for name, value in (environment | pip_settings.environment(pip)).items():
        if value:
            yield f"export {name}={shlex.quote(value)}\n"


def _bound_rules(binds: Binds) -> Iterator[MirrorRule]:
    """Yield the mirrors file's rules with the paths that they have in the image."""
    for rule in mirrors.load().rules:
        path = mirrors.local_path(rule.target)
        if path is None:
            yield rule
            continue
        folder = path if path.is_dir() else path.parent
        target = f"file://{binds.bound(folder) / path.relative_to(folder)}"
        yield dataclasses.replace(rule, target=target)
        if rule.kind == "apt":
            # debootstrap runs on this machine and writes its own path into the image's sources.
            yield dataclasses.replace(rule, source=rule.target, target=target)


def _archive_rules(apt: Sequence[MirrorRule]) -> Iterator[MirrorRule]:
    """Debian's archives are this machine's mirrors of them, where the mirrors file says no more."""
    for name in (DEBIAN, SECURITY):
        target = _archive(apt, name)
        if target and mirrors.redirect(apt, name) == name:
            yield MirrorRule(kind="apt", source=name, target=target)


def _mirror_lines(rules: Iterable[MirrorRule], logins: Logins) -> Iterator[str]:
    """Return the lines for render/templates/bin/mirrored; git and base images need none."""
    for rule in rules:
        if rule.kind not in {"git", "oci"}:
            yield f"{rule.source} {logins.without(rule.target)}\n"


def _without_logins(key: str, value: str, logins: Logins) -> str:
    """Return a setting of pip without logins: pip passes its indexes on command lines."""
    if key not in pip_settings.PIP_PLACES:
        return value
    return " ".join(logins.without(word) for word in value.split())


def _git_lines(rules: Iterable[MirrorRule]) -> Iterator[str]:
    for key, value in mirrors.git_config(rule for rule in rules if rule.kind == "git"):
        section, _, rest = key.partition(".")
        name, _, variable = rest.rpartition(".")
        yield f'[{section} "{name}"]\n\t{variable} = "{value}"\n'


def _write_private(path: Path, text: str) -> None:
    """Settings can hold passwords: readable by nobody else from the first byte on."""
    path.touch(mode=0o600)
    path.write_text(text)


def _apt_settings() -> str:
    """Return apt's proxies and retries, without its mirrors and this machine's keys."""
    if shutil.which("apt-config") is None:
        return ""
    lines = processes.capture(["apt-config", "dump"]).stdout.splitlines()
    return "".join(f"{line}\n" for line in lines if _ACQUIRE.match(line))


def _debootstrap_proxy(apt_settings: str) -> dict[str, str]:
    """Debootstrap reads the environment only: give it apt's proxy if there is no other."""
    match = re.search(r'^Acquire::http::Proxy "(http[^"]+)";$', apt_settings, re.MULTILINE)
    if match is None or os.environ.get("http_proxy"):
        return {}
    return {"http_proxy": match.group(1)}
