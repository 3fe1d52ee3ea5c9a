"""The repositories of RPM packages that an image names, in the files of dnf and zypper."""

import configparser
import re
from collections.abc import Iterator, Mapping

from sifwright.images.contents.inventory import Inventory

# Makers of repositories with a list of mirrors leave the plain address as a comment.
_COMMENTED = re.compile(r"^#[ \t]*(?=baseurl[ \t]*=)", re.MULTILINE)
_VARIABLE = re.compile(r"\$(?:\{(\w+)\}|(\w+))")
_VARIABLES = ("etc/dnf/vars/", "etc/yum/vars/")


def repositories(contents: Inventory) -> Iterator[tuple[str, str]]:
    """Yield name and address of the enabled repositories; the address is empty if none is known."""
    values = _values(contents)
    for path, text in contents.sources.items():
        if not path.endswith(".repo"):
            continue
        parser = configparser.RawConfigParser(strict=False)
        try:
            parser.read_string(_COMMENTED.sub("", text))
        except configparser.Error:
            continue
        for name in parser.sections():
            section = parser[name]
            if section.get("enabled", "1").strip().lower() in {"1", "true", "yes"}:
                url = next(iter(section.get("baseurl", "").split()), "")
                address = _VARIABLE.sub(
                    lambda match: values.get(match[1] or match[2], match[0]), url
                )
                yield name, "" if "$" in address else address.rstrip("/")


def _values(contents: Inventory) -> Mapping[str, str]:
    """Return the variables of dnf: its own, and those of the image's files."""
    system, release = contents.system, contents.system.get("VERSION_ID", "")
    # 9 of 9.4, but the whole of 15.6: SUSE names its repositories by both numbers.
    is_suse = "suse" in f"{system.get('ID', '')} {system.get('ID_LIKE', '')}"
    architectures = {package.architecture for package in contents.of("rpm")} - {"noarch"}
    own = {
        "releasever": release if is_suse else release.partition(".")[0],
        "basearch": next(iter(sorted(architectures)), ""),
    }
    own["arch"] = own["basearch"]
    files = {
        path.rpartition("/")[2]: text.strip()
        for path, text in contents.sources.items()
        if path.startswith(_VARIABLES)
    }
    return {**own, **files}
