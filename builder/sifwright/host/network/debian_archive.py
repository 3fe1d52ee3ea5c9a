"""Archives of Debian and Ubuntu as this machine reaches them, and the packages that they list."""

import gzip
import hashlib
import lzma
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from sifwright.catalog import mirrors
from sifwright.catalog.mirrors import MirrorRule
from sifwright.host.network import apt_mirror
from sifwright.host.network.http import read_file, refusal

_UNPACK: Mapping[str, Callable[[bytes], bytes]] = {
    ".xz": lzma.decompress,
    ".gz": gzip.decompress,
    "": bytes,
}
_FIELD = re.compile(r"^([!-9;-~]+):[ \t]*(.*(?:\n[ \t].*)*)", re.MULTILINE)


@dataclass(frozen=True, kw_only=True, slots=True)
class Release:
    """The Release file of a suite: its date, and its files by their path below dists/SUITE.

    A folder of indexes without InRelease has neither.
    """

    address: str
    suite: str
    date: str = ""
    sha256: Mapping[str, str] = field(default_factory=dict)


def address(archive: str, rules: Sequence[MirrorRule] | None = None) -> str:
    """Return this machine's address of an archive, by the mirrors file or by apt, or nothing.

    `rules` are other ones than those of the mirrors file.
    """
    rules = mirrors.load().of("apt") if rules is None else rules
    target = mirrors.redirect(rules, archive)
    return target if target != archive else mirrors.redirect(rules, apt_mirror.mirror(archive))


def derive_security_address(mirror: str) -> str:
    """Return where mirrors of Debian have the security archive, as layer base-debian takes it."""
    return f"{mirror.rstrip('/')}-security" if mirror else ""


def release(archive: str, suite: str) -> Release:
    """Read InRelease at an address (or file:// folder) of an archive; raises `MachineError`.

    Its signature is not checked: apt does that for what it installs.
    """
    data = read_file(f"{archive.rstrip('/')}/dists/{suite}/InRelease")
    if data is None and mirrors.local_path(archive) is None:
        raise refusal(archive, f"it has no suite {suite}")
    fields = next(stanzas((data or b"").decode(errors="replace").partition("\n\n")[2]), {})
    if data is not None and "SHA256" not in fields:
        raise refusal(archive, f"InRelease of {suite} lists no files")
    lines = (line.split() for line in fields.get("SHA256", "").splitlines())
    sums = {words[2]: words[0] for words in lines if len(words) == 3}  # noqa: PLR2004  # sum, size, path
    date = fields.get("Date", "")
    return Release(address=archive.rstrip("/"), suite=suite, date=date, sha256=sums)


def packages(of: Release, architecture: str, component: str = "main") -> list[dict[str, str]]:
    """Return all packages of a suite for an architecture; raises `MachineError`."""
    stem = f"{component}/binary-{architecture}/Packages"
    for suffix, unpack in _UNPACK.items():
        path = stem + suffix
        if of.sha256 and path not in of.sha256:
            continue
        if (data := read_file(f"{of.address}/dists/{of.suite}/{path}")) is None:
            continue
        if of.sha256 and hashlib.sha256(data).hexdigest() != of.sha256[path]:
            message = f"{path} of {of.suite} is not what InRelease says; it may just be changing"
            raise refusal(of.address, message)
        try:
            return list(stanzas(unpack(data).decode()))
        except (lzma.LZMAError, OSError, EOFError, ValueError) as error:
            raise refusal(of.address, f"{path} of {of.suite} is damaged: {error}") from None
    raise refusal(of.address, f"{of.suite} has no {stem}")


def has(of: Release, architecture: str, component: str) -> bool:
    """Tell whether a suite lists a component, as far as it says what it lists."""
    start = f"{component}/binary-{architecture}/Packages"
    if of.sha256:
        return any(path.startswith(start) for path in of.sha256)
    folder = mirrors.local_path(f"{of.address}/dists/{of.suite}/{component}/binary-{architecture}")
    return folder is not None and folder.is_dir()


def stanzas(text: str) -> Iterator[dict[str, str]]:
    """Yield the stanzas of a control file, each as field -> text with the lines that go on."""
    for stanza in re.split(r"\n(?:[ \t]*\n)+", text):
        if fields := dict(_FIELD.findall(stanza)):
            yield fields
