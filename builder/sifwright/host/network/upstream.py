"""Lookups of sources upstream or at the mirror: the commit of a ref, the sha256 of a file."""

import os
import tempfile

from sifwright.catalog import mirrors
from sifwright.catalog.model import Source
from sifwright.host.network import http, pip_settings, sdist
from sifwright.plan.sources import fill
from sifwright.system import files, processes

_GIT_SECONDS, _FETCH_SECONDS = 60, 1800


class LookupFailedError(Exception):
    """An error for no answer, or for a version that is not there; the message says why."""


def digest(source: Source, version: str) -> str:
    """Return the current commit or sha256 of a version. Raise `LookupFailedError`."""
    url = fill(source.url, version)
    if source.kind == "git":
        return _commit(source, version)
    if source.kind == "pip":
        archive = sdist_of(url, version)
        if archive.sha256:
            return archive.sha256
        url = archive.address
    address = mirrors.redirect_download(url)
    path = mirrors.local_path(address)
    try:
        return files.sha256(path) if path else _sha256_of_download(address)
    except OSError as error:
        raise LookupFailedError(f"{http.redact_url(url)}: {http.root_cause(error)}") from None


def sdist_of(name: str, version: str) -> sdist.Sdist:
    """Return the address of a package's source archive. Raise `LookupFailedError`."""
    settings = pip_settings.environment(pip_settings.settings())
    try:
        return sdist.find(name, version, {"SSL_CERT_FILE": pip_settings.ca_bundle(), **settings})
    except sdist.NotFound as error:
        raise LookupFailedError(str(error)) from None


def _commit(source: Source, version: str) -> str:
    """Return the commit of an annotated tag, not the tag's own object (gitrevisions, `^{}`)."""
    url, ref = fill(source.url, version), fill(source.ref, version)
    tags = [f"refs/tags/{ref}^{{}}", f"refs/tags/{ref}"]
    names = [f"refs/heads/{ref}"] if source.branch else tags
    answer = git("ls-remote", "--", url, *names, seconds=_GIT_SECONDS)
    commits = {name: commit for commit, name in map(str.split, answer.splitlines())}
    for name in names:
        if name in commits:
            return commits[name]
    raise LookupFailedError(f"{url} has no {'branch' if source.branch else 'tag'} {ref}")


def has_commit(source: Source, version: str) -> bool:
    """Tell whether the repository still has the commit of a pinned version.

    Raises `LookupFailedError` if the repository gives nothing at all.
    """
    url = fill(source.url, version)
    commit = source.versions[version].digest
    with tempfile.TemporaryDirectory() as folder:
        here = ("-C", folder)
        git(*here, "init", "--quiet", "--bare")
        try:
            git(*here, "fetch", "--quiet", "--depth=1", "--", url, commit, seconds=_GIT_SECONDS)
        except LookupFailedError:
            # A plain web server gives no single commits, nor do old servers.
            refs = "+refs/heads/*:refs/heads/*"
            git(*here, "fetch", "--quiet", "--", url, refs, seconds=_GIT_SECONDS)
            kind = processes.capture(["git", *here, "cat-file", "-t", commit]).stdout
            return kind.strip() == "commit"
    return True


def git(*arguments: str, seconds: float = _FETCH_SECONDS) -> str:
    """Return the output of git, also of a long fetch, with the mirrors file's rules.

    Raises `LookupFailedError` with its complaint. The rules are variables, because every user can
    read a command line.
    """
    settings = list(mirrors.git_config(mirrors.load().of("git")))
    env = {"GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C", "GIT_CONFIG_COUNT": str(len(settings))}
    for number, (key, value) in enumerate(settings):
        env |= {f"GIT_CONFIG_KEY_{number}": key, f"GIT_CONFIG_VALUE_{number}": value}
    answer = processes.capture(["git", *arguments], env={**os.environ, **env}, timeout=seconds)
    if answer.returncode != 0:
        lines = answer.stderr.strip().splitlines() or [f"exit status {answer.returncode}"]
        raise LookupFailedError(http.redact_url(lines[-1]))
    return answer.stdout


def _sha256_of_download(address: str) -> str:
    """Return the sha256 of the stored bytes, without the transfer's compression."""
    with http.open_response(address, large=True) as answer:
        answer.raise_for_status()
        return files.sha256_of_blocks(http.pieces(answer))
