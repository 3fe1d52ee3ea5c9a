"""Parts of a requirements file that a layer cannot carry, each with reason and remedy."""

import re
from collections.abc import Sequence
from urllib.parse import SplitResult, urlsplit

from packaging.requirements import Requirement

from sifwright.errors import Problem, quoted
from sifwright.host.network.http import redact_url

_VARIABLE = re.compile(r"\$\{[A-Z0-9_]+\}")
_ARCHIVE = re.compile(r"\.(whl|zip|tar|tar\.gz|tgz|tar\.bz2|tar\.xz)$", re.IGNORECASE)
# pip takes what follows the last @ of the path, and the first of the fragment's hashes.
_COMMIT = re.compile(r"@[0-9a-f]{40}$")
_HASH = re.compile(r"(?:^|&)(md5|sha1|sha224|sha256|sha384|sha512)=([^&]*)")
_SHA256 = re.compile(r"[0-9a-f]{64}")
_WHEEL = (
    "Put the wheel into a folder of this machine's pip (PIP_FIND_LINKS, or find-links in pip.conf)."
    " Then name the package with its version."
)


def of_text(text: str) -> Problem | None:
    """Refuse text that no line may hold."""
    if variable := _VARIABLE.search(text):
        message = f"{variable[0]} would be replaced by this machine's environment"
        return Problem(what=message, fix="Write the value itself; pip's settings go into pip.conf.")
    if not text.isprintable():
        message = f"{quoted(text)} holds a character that cannot be printed"
        return Problem(what=message, fix="Write it in plain text.")
    if "{" in text:
        return Problem(what=f"{quoted(text)} holds a brace", fix="Leave it out.")
    return None


def of_path(text: str) -> Problem | None:
    """Refuse a folder or file of this machine, which no other machine has."""
    is_path = text.startswith((".", "/", "~", "file:")) or "@ file:" in text
    if is_path or (_ARCHIVE.search(text) and "://" not in text):
        message = (
            f"{quoted(text)} is a path of this machine, which the definition file cannot carry"
        )
        return Problem(what=message, fix=_WHEEL)
    if re.match(r"[a-z+]+://", text):
        message = f"{quoted(text)} does not say which package that is"
        return Problem(what=message, fix="Write NAME @ ADDRESS.")
    return None


def of_url(requirement: Requirement, hashes: Sequence[str]) -> Problem | None:
    """Refuse an address with a login, or one that may lead to other bytes tomorrow."""
    if not requirement.url:
        return None
    try:
        parts = urlsplit(requirement.url)
    except ValueError as error:
        message = f"{quoted(redact_url(requirement.url))} is no address: {error}"
        return Problem(what=message, fix="Name one that begins with https:// or git+https://.")
    if "@" in parts.netloc and parts.scheme != "git+ssh":
        message = (
            f"the address of {requirement.name} holds a login, which the image would show to all"
        )
        return Problem(what=message, fix="Leave it out; pip's settings or ~/.netrc have logins.")
    if parts.scheme not in {"http", "https", "git+https"}:
        message = f"{requirement.name} comes by {parts.scheme or 'no scheme'}"
        fix = "Name an address that begins with https:// or git+https://."
        return Problem(what=message, fix=fix)
    if _is_pinned(parts, hashes):
        return None
    fix = "End the address in #sha256= and its digits."
    if parts.scheme == "git+https":
        fix = f"Write {requirement.name} @ git+https://…@ and all 40 digits of the commit."
    message = f"what the address of {requirement.name} leads to may change"
    return Problem(what=message, fix=fix)


def _is_pinned(parts: SplitResult, hashes: Sequence[str]) -> bool:
    if parts.scheme == "git+https":
        return _COMMIT.search(parts.path) is not None and not parts.query
    digest = _HASH.search(parts.fragment)
    if digest is None:
        return bool(hashes)
    return digest[1] == "sha256" and _SHA256.fullmatch(digest[2]) is not None


# Options of pip that are not for a layer: their names, the reason and the remedy.
_OPTIONS = (
    (
        {
            "-i",
            "--index-url",
            "--extra-index-url",
            "-f",
            "--find-links",
            "--no-index",
            "--pypi-url",
        },
        "{}: where packages come from is this machine's setting, not the image's",
        (
            "Set it in pip.conf, as PIP_INDEX_URL, PIP_EXTRA_INDEX_URL or PIP_FIND_LINKS, or in the"
            " mirrors file: docs/how-to/mirrors.md."
        ),
    ),
    (
        {"--trusted-host", "--proxy", "--cert", "--client-cert"},
        "{} is this machine's setting, not the image's",
        "Set it in pip.conf or in the environment.",
    ),
    (
        {"-e", "--editable"},
        "{} installs a folder of this machine, which the definition file cannot carry",
        f"Build a wheel of it (pip wheel .). {_WHEEL}",
    ),
    ({"--pre"}, "{} takes the newest version", "Name the version: NAME==2.0rc1."),
)


def of_option(name: str) -> Problem:
    """Refuse an option of pip that is not for a layer."""
    for names, message, fix in _OPTIONS:
        if name in names:
            return Problem(what=message.format(name), fix=fix)
    message = f"{name} is an option that a layer has no use for"
    fix = "Leave it out; -r, -c, --hash, --no-binary, --only-binary are read."
    return Problem(what=message, fix=fix)
