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

from sifwright import aptmirror, baseheader, baseimage, mirrors, pipsettings, runner
from sifwright.binds import Binds
from sifwright.mirrors import Rule

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from sifwright.mirrors import Mirrors
    from sifwright.model import Plan

__all__ = ["Settings", "prepare", "values"]

PROXIES = ("http_proxy", "https_proxy", "no_proxy", "all_proxy")
_NONE: Mapping[str, str] = MappingProxyType({})
_PROXY_NAMES = (*PROXIES, *(name.upper() for name in PROXIES))
# Debian's archive, in the mirrors file: whichever mirror a machine has, this is what it is one of.
DEBIAN = "debian"
# How to reach mirrors; certificates and keys are files of this machine and handled apart.
_ACQUIRE = re.compile(
    r'^Acquire::(http|https|ftp|Retries)\b(?!.*(CaInfo|Cert|Key)).*";$', re.IGNORECASE
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Settings:
    """What to hand to the engine: variables for its process, and folders to bind."""

    env: Mapping[str, str]
    binds: tuple[str, ...]


def values(plan: Plan) -> dict[str, str]:
    """What a definition file needs to know of this machine.

    That is the Debian mirror, and lines of the header that lead to a mirror, by their keyword.
    """
    rules = mirrors.load()
    redirected = rules.redirect(DEBIAN, "apt")
    mirror = (
        redirected if redirected != DEBIAN else rules.redirect(aptmirror.debian_mirror(), "apt")
    )
    found = {"debian-mirror": mirror} if mirror else {}
    return found | dict(_redirected_header(plan, rules))


def _redirected_header(plan: Plan, rules: Mirrors) -> Iterator[tuple[str, str]]:
    for keyword, value in baseheader.header(plan.steps[0]).items():
        if keyword == "MirrorURL" and rules.redirect(value, "apt") != value:
            yield keyword, rules.redirect(value, "apt")
    if (image := baseimage.of(plan)) and image.is_redirected:
        yield "From", str(image.reference)


def prepare(folder: Path, record: str = "", proxies: Mapping[str, str] = _NONE) -> Settings:
    """Write the settings into `folder` as templates/setup.sh and templates/step.sh read them.

    `record` is what sources without a pin were when they were first used; `proxies` are for what
    the environment does not set.
    """
    machine, binds = folder / "machine", Binds(mounts=folder / "mnt")
    machine.mkdir()
    pip = pipsettings.bound(pipsettings.settings(), binds)
    # As a file of this machine it means nothing in the image; templates/step.sh names the copy.
    pip.pop("cert", None)
    rules = list(_bound_rules(binds))
    rules += _archive_rule(rules)
    apt = _apt_settings()
    _write_private(machine / "environment", "".join(_exports(pip, proxies)))
    _write_private(machine / "apt.conf", apt)
    _write_private(machine / "mirrors", "".join(_mirror_lines(rules)))
    _write_private(machine / "gitconfig", "".join(_git_lines(rules)))
    _write_private(machine / "pins", record)
    if bundle := pipsettings.ca_bundle():
        shutil.copyfile(bundle, machine / "ca.crt")
    env = {"SIFWRIGHT_MACHINE": str(machine), **_debootstrap_proxy(apt)}
    return Settings(env=env, binds=binds.all())


def _exports(pip: Mapping[str, str], proxies: Mapping[str, str]) -> Iterator[str]:
    own = {name: os.environ[name] for name in _PROXY_NAMES if os.environ.get(name)}
    named = {name.lower() for name in own}
    environment = {
        **{name: value for name, value in proxies.items() if name.lower() not in named},
        **own,
        "MAX_JOBS": os.environ.get("MAX_JOBS", ""),
    }
    for name, value in (environment | pipsettings.environment(pip)).items():
        if value:
            yield f"export {name}={shlex.quote(value)}\n"


def _bound_rules(binds: Binds) -> Iterator[Rule]:
    """The mirrors file's rules as the build sees them, in the image."""
    for rule in mirrors.load().rules:
        place = mirrors.local_path(rule.target)
        if place is None:
            yield rule
            continue
        folder = place if place.is_dir() else place.parent
        target = f"file://{binds.bound(folder) / place.relative_to(folder)}"
        yield dataclasses.replace(rule, target=target)
        if rule.kind == "apt":
            # debootstrap runs on this machine and writes its own path into the image's sources.
            yield dataclasses.replace(rule, source=rule.target, target=target)


def _archive_rule(rules: Sequence[Rule]) -> Iterator[Rule]:
    """Debian's archive is this machine's mirror of it, unless the mirrors file says more."""
    apt = [rule for rule in rules if rule.kind == "apt"]
    target = mirrors.redirect(apt, aptmirror.debian_mirror())
    if target and mirrors.redirect(apt, DEBIAN) == DEBIAN:
        yield Rule(kind="apt", source=DEBIAN, target=target)


def _mirror_lines(rules: Iterable[Rule]) -> Iterator[str]:
    """What templates/bin/mirrored reads; git has its own, and base images come before the build."""
    for rule in rules:
        if rule.kind not in {"git", "oci"}:
            yield f"{rule.source} {rule.target}\n"


def _git_lines(rules: Iterable[Rule]) -> Iterator[str]:
    for key, value in mirrors.git_config(rule for rule in rules if rule.kind == "git"):
        section, _, rest = key.partition(".")
        name, _, variable = rest.rpartition(".")
        yield f'[{section} "{name}"]\n\t{variable} = "{value}"\n'


def _write_private(path: Path, text: str) -> None:
    """Settings can hold passwords: readable by nobody else from the first byte on."""
    path.touch(mode=0o600)
    path.write_text(text)


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
