"""What to do where an engine cannot pull: by what it says of the registry's answer."""

from __future__ import annotations

import re

from sifwright import mirrors, registry

__all__ = ["fix"]

_STATUS = r"(?:http|status:?|code:?) "
_BUSY = re.compile(rf"toomanyrequests|too many requests|rate limit|{_STATUS}429\b")
# "permission denied" is what the system of the engine says, not a registry.
_LOGIN = re.compile(
    rf"unauthorized|no basic auth|authentication required|(?<!permission )denied|{_STATUS}40[13]\b"
)
_SETTINGS = re.compile(r"http response to https client|x509: ")
_FORMAT = re.compile(r"accept header")
_OTHER = re.compile(r"failed for digest|digest did not match|digest.* mismatch")
_ABSENT = re.compile(r"manifest unknown|not found")
_SETTINGS_FIX = (
    "Tell the engine that the registry has no TLS (insecure-registries), or give it the registry's"
    " certificate (/etc/docker/certs.d)."
)
_FORMAT_FIX = (
    "The engine does not ask for an image of this format: push it in Docker's own (skopeo copy"
    " --format v2s2), or use a later engine."
)
_OTHER_FIX = (
    "What came is not the image that was named: see what changes it on its way (a proxy, a cache),"
    f" or name another mirror in the file of {mirrors.VARIABLE}."
)
# The first that fits.
_FIXES = (
    (_BUSY, registry.BUSY_FIX),
    (_SETTINGS, _SETTINGS_FIX),
    (_FORMAT, _FORMAT_FIX),
    (_OTHER, _OTHER_FIX),
    (_ABSENT, registry.ABSENT_FIX),
)


def fix(why: str, name: str) -> str:
    """What the engine said, and the image that was to be pulled; else it is the network's doing."""
    text = why.lower()
    if found := next((fix for words, fix in _FIXES if words.search(text)), ""):
        return found
    if _LOGIN.search(text):
        return registry.login_fix(registry.parse(name))
    return mirrors.NETWORK_FIX
