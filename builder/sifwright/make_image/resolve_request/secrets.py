"""The secrets of a build: files for single steps, in no image, key, log or record."""

import os
import re
from collections.abc import Iterable

from sifwright.errors import UsageError
from sifwright.system import files

_FORM = re.compile(r"id=([a-z0-9][a-z0-9_.-]{0,62})(?:,(src|env)=(.+))?", re.DOTALL)
_FIX = "Write --secret id=NAME,src=FILE or --secret id=NAME,env=VARIABLE."


def read_secrets(words: Iterable[str]) -> dict[str, bytes]:
    """Return the secrets of the option --secret; without a source, the variable of that name.

    Raises `UsageError`, which names no content.
    """
    return dict(map(_secret, words))


def _secret(word: str) -> tuple[str, bytes]:
    match = _FORM.fullmatch(word)
    if match is None:
        raise UsageError.of("is no secret", where="--secret", fix=_FIX)
    name, kind, source = match[1], match[2] or "env", match[3] or match[1]
    where = f"--secret id={name}"
    if kind == "env":
        if source not in os.environ:
            raise UsageError.of(f"there is no variable {source}", where=where, fix=_FIX)
        return name, os.fsencode(os.environ[source])
    try:
        return name, files.expand_home(source).read_bytes()
    except OSError as error:
        raise UsageError.of(f"{source}: {error.strerror}", where=where, fix=_FIX) from None
