"""The building machine's own settings: what a build needs of them, and nothing in the image."""

import dataclasses
import os
import re
import shlex
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from sifwright.catalog import mirrors
from sifwright.catalog.mirrors import MirrorRule
from sifwright.host.network import debian_archive, pip_settings
from sifwright.host.network.apt_mirror import DEBIAN, SECURITY
from sifwright.host.network.pip_settings import Binds
from sifwright.make_image.resolve_request.base_image import BaseImage
from sifwright.system import files, ids, processes
from sifwright.system.netrc_file import Logins

PROXIES = ("http_proxy", "https_proxy", "no_proxy", "all_proxy")
_NONE: Mapping[str, str] = MappingProxyType({})
_PROXY_NAMES = (*PROXIES, *(name.upper() for name in PROXIES))
# Settings to reach mirrors; certificates and keys are files of this machine and handled apart.
_ACQUIRE = re.compile(
    r'^Acquire::(http|https|ftp|Retries)\b(?!.*(CaInfo|Cert|Key)).*";$', re.IGNORECASE
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Settings:
    """The settings of the building machine.

    `env` are variables for the engine's process. `machine` is the folder that a step reads; `binds`
    are the folders that its programs read below /mnt. `secrets` are for the steps that name them.
    """

    env: Mapping[str, str]
    machine: Path
    mounts: Path
    binds: tuple[str, ...]
    secrets: Mapping[str, bytes] = dataclasses.field(default_factory=dict, repr=False)

    @property
    def definition_binds(self) -> tuple[str, ...]:
        """Return the binds of a whole definition file, which finds `machine` at /mnt/machine."""
        return f"{self.mounts}:/mnt", f"{self.machine}:/mnt/machine:ro", *self.binds[1:]


def values(base: BaseImage) -> dict[str, str]:
    """Return the values of this machine that a definition file needs.

    That is where Debian's archives are, and lines of the header that lead to a mirror, by their
    keyword.
    """
    rules, header, lines = mirrors.load(), base.step.header, base.step.layer.bootstrap
    archives = (line.keyword for line in lines if line.machine == "debian-mirror")
    mirror, named = debian_archive.address(DEBIAN), header.get(next(archives, ""), "")
    url = header.get("MirrorURL", "")
    redirected = rules.redirect(url, "apt")
    addresses = {
        "debian-mirror": mirror,
        "debian-security-mirror": debian_archive.address(SECURITY)
        or debian_archive.derive_security_address(named or mirror),
        "MirrorURL": redirected if redirected != url else "",
        "From": str(base.reference) if base.is_redirected else "",
    }
    return {name: address for name, address in addresses.items() if address}


def prepare(
    folder: Path,
    record: Mapping[str, str] = _NONE,
    proxies: Mapping[str, str] = _NONE,
    *,
    locked: bool = False,
) -> Settings:
    """Write the settings into `folder` for step.sh of render/templates.

    `record` has the digests of unpinned sources at their first use, for the program fetch-source.
    `proxies` are values of variables that the environment does not set.
    """
    machine, binds = folder / "machine", Binds(mounts=folder / "mnt")
    machine.mkdir()
    pip = pip_settings.bound(pip_settings.settings(), binds)
    rules = list(_bound_rules(binds))
    apt_rules = [rule for rule in rules if rule.kind == "apt"]
    # Debian's archives are this machine's mirrors of them, where the mirrors file says no more.
    for name in (DEBIAN, SECURITY):
        target = debian_archive.address(name, apt_rules)
        if target and mirrors.redirect(apt_rules, name) == name:
            rules.append(MirrorRule(kind="apt", source=name, target=target))
    apt = _apt_settings()
    if ids.are_one():
        # It would become another user to download.
        apt += 'APT::Sandbox::User "root";\n'
    if locked:
        # The repository of a lock has no signature: the lock has the digest of each package.
        apt += 'Acquire::AllowInsecureRepositories "true";\n'
        apt += 'APT::Get::AllowUnauthenticated "true";\n'
        # Its date is that of the lock, and a clock may be behind.
        apt += 'Acquire::Check-Date "false";\n'
    _write(machine, pip, rules, {**proxies, **_compiler_cache(binds)})
    files.write_private(machine / "apt.conf", apt.encode())
    pins = "".join(f"{key} {value}\n" for key, value in record.items())
    files.write_private(machine / "pins", pins.encode())
    if bundle := pip_settings.ca_bundle():
        shutil.copyfile(bundle, machine / "ca.crt")
    (binds.mounts / "machine").mkdir(parents=True)
    return Settings(
        env=_debootstrap_proxy(apt), machine=machine, mounts=binds.mounts, binds=binds.all()
    )


def note_epoch(machine: Path, time: int) -> None:
    """Have the next step's programs write this time instead of today's.

    That is for steps with a packed result: pip writes other bytecode then, which packing mends.
    """
    (machine / "epoch").write_text(f"{time}\n", encoding="utf-8")


def prepare_native(folder: Path) -> Path:
    """Write the settings for steps on the host itself; return their folder."""
    machine = folder / "machine"
    machine.mkdir()
    _write(machine, pip_settings.settings(), list(mirrors.load().rules), _NONE)
    return machine


def _compiler_cache(binds: Binds) -> dict[str, str]:
    """Bind this machine's cache of compiled files; return the variables that lead ccache there.

    With it, a step that compiles for hours goes on where an earlier build was stopped.
    """
    named = os.environ.get("CCACHE_DIR", "")
    if not named or not Path(named).is_dir():
        return {}
    folder = str(binds.bound(Path(named).resolve(), "rw"))
    # The same compiler has another time in an unpacked layer.
    return {"CCACHE_DIR": folder, "CCACHE_COMPILERCHECK": "content"}


def _write(
    machine: Path, pip: Mapping[str, str], rules: Sequence[MirrorRule], proxies: Mapping[str, str]
) -> None:
    logins = Logins()
    # For render/templates/bin/mirrored; git and base images need no line.
    table = [
        f"{rule.source} {logins.without(rule.target)}\n"
        for rule in rules
        if rule.kind not in {"git", "oci"}
    ]
    exports = _exports(pip_settings.of_step(pip, logins), proxies)
    texts = {
        "environment": "".join(exports),
        "mirrors": "".join(table),
        "netrc": logins.text(),
        "gitconfig": "".join(_git_lines(rules)),
    }
    for name, text in texts.items():
        files.write_private(machine / name, text.encode())


def _exports(pip: Mapping[str, str], proxies: Mapping[str, str]) -> Iterator[str]:
    own = {name: os.environ[name] for name in _PROXY_NAMES if os.environ.get(name)}
    named = {name.lower() for name in own}
    environment = {
        **{name: value for name, value in proxies.items() if name.lower() not in named},
        **own,
        "MAX_JOBS": os.environ.get("MAX_JOBS", ""),
    }
    for name, value in {**environment, **pip}.items():
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


def _git_lines(rules: Iterable[MirrorRule]) -> Iterator[str]:
    for key, value in mirrors.git_config(rule for rule in rules if rule.kind == "git"):
        section, _, rest = key.partition(".")
        name, _, variable = rest.rpartition(".")
        yield f'[{section} "{name}"]\n\t{variable} = "{value}"\n'


def _apt_settings() -> str:
    """Return apt's proxies and retries, without its mirrors and this machine's keys."""
    lines = processes.capture(["apt-config", "dump"]).stdout.splitlines()
    return "".join(f"{line}\n" for line in lines if _ACQUIRE.match(line))


def _debootstrap_proxy(apt_settings: str) -> dict[str, str]:
    """Give debootstrap apt's proxy if the environment has none: it reads only this."""
    match = re.search(r'^Acquire::http::Proxy "(http[^"]+)";$', apt_settings, re.MULTILINE)
    return {} if match is None or os.environ.get("http_proxy") else {"http_proxy": match[1]}
