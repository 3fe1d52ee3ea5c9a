"""The mirrors file: for sites without internet, other addresses for all downloads.

One file for everything that is downloaded, named by SIFWRIGHT_MIRRORS; see docs/how-to/mirrors.md.
"""

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from sifwright.catalog import schema, yaml_file
from sifwright.catalog.yaml_document import Document
from sifwright.errors import CatalogError, Problem
from sifwright.system import files, netrc_file, small_file

VARIABLE = "SIFWRIGHT_MIRRORS"
NETWORK_FIX = f"Check the network and proxies, or name a mirror in the file of {VARIABLE}."
DOWNLOADS = ("archives", "wheels", "conda", "apt")
KINDS = ("git", "oci", *DOWNLOADS)
# Characters that may follow a prefix: each ends a name.
_ENDS = "/?#:@"


@dataclass(frozen=True, kw_only=True, slots=True)
class MirrorRule:
    """Addresses that are `source`, or lie below it, are found at `target`."""

    kind: str
    source: str
    target: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Mirrors:
    """The rules of the mirrors file. A folder of this machine is a file:// target."""

    rules: tuple[MirrorRule, ...] = ()
    pip: Mapping[str, str] = field(default_factory=dict)

    def of(self, *kinds: str) -> tuple[MirrorRule, ...]:
        return tuple(rule for rule in self.rules if rule.kind in kinds)

    def redirect(self, address: str, *kinds: str) -> str:
        """Return the redirected address; the longest rule that fits decides."""
        return redirect(self.of(*kinds), address)


def redirect_download(address: str) -> str:
    """Return the address by the user's mirrors file, or '' for ''."""
    return load().redirect(address, *DOWNLOADS)


def redirect(rules: Iterable[MirrorRule], address: str) -> str:
    fitting = (rule for rule in rules if _lies_below(address, rule.source))
    best = max(fitting, key=lambda rule: len(rule.source), default=None)
    return best.target + address[len(best.source) :] if best else address


def _lies_below(address: str, source: str) -> bool:
    rest = address.removeprefix(source)
    return address.startswith(source) and (not rest or rest[0] in _ENDS or source.endswith(":"))


def local_path(address: str) -> Path | None:
    """Return the path on this machine that an address names, or None."""
    return Path(address.removeprefix("file://")) if address.startswith("file:///") else None


def git_config(rules: Iterable[MirrorRule]) -> Iterator[tuple[str, str]]:
    """Yield git's settings for the rules, as (key, value).

    It compares letters, not names: with a slash at the end, github.com is not github.company.com.
    A login is a header: git puts addresses into the arguments of its helpers.
    """
    for rule in rules:
        target, login = netrc_file.split(rule.target)
        if login:
            yield f"http.{target}/.extraHeader", login.header
        if rule.source.endswith(":"):
            yield f"url.{target}/.insteadOf", rule.source
            continue
        yield f"url.{target}/.insteadOf", f"{rule.source}/"
        if re.search(r"[^/:]/[^/]", rule.source):
            # A rule for one repository: its address has no slash at the end.
            yield f"url.{target}.insteadOf", rule.source


def load() -> Mirrors:
    """Read the file that the environment names; without one, nothing is redirected.

    Raises `CatalogError` with everything that is wrong with it, each with its line.
    """
    name = os.environ.get(VARIABLE, "")
    return _read(Path(name)) if name else Mirrors()


def _read(path: Path) -> Mirrors:
    document = _document(path)
    rules: list[MirrorRule] = []
    problems: list[Problem] = []
    for kind in KINDS:
        for source, target in document.data.get(kind, {}).items():
            # A rule fits where names end, so a slash at the end goes.
            address = _target(kind, target, path)
            rule = MirrorRule(kind=kind, source=source.rstrip("/"), target=address)
            where = f"{path}:{document.lines[kind, source]}"
            problems += _problems(rule, rules, where)
            rules.append(rule)
    if problems:
        raise CatalogError(*problems)
    pip = document.data.get("pip", {})
    return Mirrors(rules=tuple(rules), pip={key: _pip(str(pip[key]), path) for key in pip})


def _document(path: Path) -> Document:
    try:
        document = yaml_file.parse_yaml(small_file.read_bytes(path), str(path))
    except OSError as error:
        message = f"the mirrors file cannot be read: {error.strerror}"
        raise CatalogError.of(message, where=str(path), fix=f"Mend or unset {VARIABLE}.") from None
    if problems := tuple(schema.check_document(document, "mirrors", str(path))):
        # An invalid value may hold a password.
        login = re.compile("(['\"][a-z]+://).*@")
        raise CatalogError(
            *(replace(problem, what=login.sub(r"\1", problem.what)) for problem in problems)
        )
    return document


def _target(kind: str, text: str, file: Path) -> str:
    if kind == "oci" or re.match(r"[a-z]+://", text):
        return text.rstrip("/")
    return f"file://{_resolve_folder(text, file)}"


def _resolve_folder(text: str, file: Path) -> Path:
    """Return a folder of this machine.

    `./` is beside the mirrors file, which may travel with it.
    """
    path = files.expand_home(text)
    return Path(os.path.normpath(file.absolute().parent / path))


def _problems(rule: MirrorRule, earlier: list[MirrorRule], where: str) -> Iterator[Problem]:
    folder = local_path(rule.target)
    if folder is not None and not folder.exists():
        fix = "Make it, or mend the path."
        yield Problem(where=where, what=f"there is no folder {folder}", fix=fix)
    elif folder is not None and re.search("[:,%@]", str(folder)):
        message = f"{folder}: its name holds ':', ',', '@' or '%', which a bind cannot"
        yield Problem(where=where, what=message, fix="Rename it.")
    if not netrc_file.is_address(rule.target):
        message = f"where {rule.source} leads is no address"
        yield Problem(where=where, what=message, fix=netrc_file.FIX)
    for other in earlier:
        # The program `mirrored`, which layers call, does not know what an address is for.
        both = {rule.kind, other.kind} <= set(DOWNLOADS)
        if both and rule.source == other.source and rule.target != other.target:
            message = f"{rule.source} leads elsewhere under '{other.kind}'"
            yield Problem(where=where, what=message, fix="Let both lead to the same place.")


def _pip(text: str, file: Path) -> str:
    """Return the value of a setting, with folders beside the mirrors file written out."""
    below = ("./", "../", "~/")
    return " ".join(
        str(_resolve_folder(x, file)) if x.startswith(below) else x for x in text.split()
    )
