"""Errors of an engine: those of a lost one, its words in one line, and advice on pulls."""

import re

import requests
import urllib3

from sifwright.catalog import mirrors
from sifwright.host.network import registry

_STATUS = r"(?:http|status:?|code:?) "
# Advice by the words of the engine: the first that fits. This machine's causes come first, because
# the other words may be anywhere in a message. If none fits, it is the network's doing.
_ADVICE = {
    rf"proxyconnect|proxy authentication required|{_STATUS}407\b": (
        "See to the proxy of the engine's service: HTTPS_PROXY and NO_PROXY in its environment, or"
        " its settings. Add a name and password if it wants them."
    ),
    r"docker-credential-": (
        "Install that program where the engine finds it, or remove its name from the settings"
        " (credHelpers, credsStore, credential-helpers)."
    ),
    r"/etc/sub[ug]id|insufficient uids": (
        "Give the engine's user a range of ids in /etc/subuid and /etc/subgid:"
        " 'usermod --add-subuids 100000-165535 --add-subgids 100000-165535 USER'."
        " Then run 'podman system migrate'."
    ),
    r"(?:failed to register layer|adding layer with blob|processing tar file)"
    r"(?!.*unexpected eof)": (
        "It came, and the engine cannot store it: the log of the engine may say more."
    ),
    rf"toomanyrequests|too many requests|rate limit|{_STATUS}429\b": registry.BUSY_FIX,
    r"http response to https client|x509: ": (
        "Tell the engine that the registry has no TLS (insecure-registries), or give it the"
        " registry's certificate (/etc/docker/certs.d)."
    ),
    r"accept header": (
        "The engine does not ask for an image of this format. Push it in Docker's own (skopeo copy"
        " --format v2s2), or use a later engine."
    ),
    r"no matching manifest|no image found in .*(?:list|index)": (
        "Name an image for {processor}: the registry has this one for others."
    ),
    r"failed for digest|digest did not match|digest.* mismatch"
    r"|digest .*does not match|does not match .*digest": (
        "The registry sent another image than the one named. See whether a proxy or a cache changes"
        f" it, or name another mirror in the file of {mirrors.VARIABLE}."
    ),
    r"manifest unknown|(?<!host )not found": registry.ABSENT_FIX,
    # "permission denied" is what the system of the engine says, not a registry.
    r"unauthorized|no basic auth|authentication required|(?<!permission )denied"
    rf"|{_STATUS}40[13]\b": "{login}",
    "": mirrors.NETWORK_FIX,
}
# Errors of an engine that ends, or is stopped, during a request.
LOST = (requests.RequestException, urllib3.exceptions.HTTPError, OSError)
_NO_ROOM = ("no space left on device", "disk quota exceeded")


def one_line(error: Exception) -> str:
    text = str(getattr(error, "explanation", "") or error)
    return " ".join(text.split()) or type(error).__name__


def is_full(why: str) -> bool:
    return any(words in why.lower() for words in _NO_ROOM)


def advice_for(why: str, name: str, processor: str) -> str:
    """Return advice for the engine's message on a pull; `processor` is the engine's."""
    text = why.lower()
    advice = next(advice for words, advice in _ADVICE.items() if re.search(words, text))
    return advice.format(login=registry.login_fix(registry.parse(name)), processor=processor)
