"""The policy of a site for builds: on login nodes, in jobs or elsewhere, and with which ids."""

from collections.abc import Iterator

from sifwright.catalog.model import Site
from sifwright.catalog.site import Builds
from sifwright.errors import Problem

ELSEWHERE = "docs/how-to/build-elsewhere.md"
_WHERE = {
    "login": "users build images on login nodes",
    "batch": "users build images in jobs",
    "elsewhere": "users build no images there",
}
_IDS = {"many": ", with subordinate ids", "one": ", with one uid and gid", "none": "", "": ""}


def facts(site: Site) -> Iterator[tuple[str, str]]:
    """Yield what `show` says of it."""
    if builds := site.builds:
        yield "builds", _text(builds)
        yield " ", f"read in {builds.source}"


def line(site: Site) -> list[str]:
    """Return the line that `check` and `build` begin with; none if the site does not say."""
    if not (builds := site.builds):
        return []
    end = f". Build on another machine, copy, install: {ELSEWHERE}"
    return [f"{site.name}: {_text(builds)}{end if builds.where == 'elsewhere' else ''}"]


def _text(builds: Builds) -> str:
    return f"{_WHERE[builds.where]}{_IDS[builds.ids]}: {builds.why}"


def lead(site: Site, lacking: list[Problem]) -> list[Problem]:
    """Return what is missing, after the site's word on it if it allows no more.

    The advice for each is an administrator's, who can be asked on a machine of one's own only.
    """
    builds = site.builds
    if not lacking or builds is None or builds.ids == "many":
        return lacking
    message = f"site '{site.name}' gives users no more there: {builds.why}"
    fix = f"There: build on another machine, copy, install ({ELSEWHERE}). On your own machine:"
    return [Problem(where=builds.source, what=message, fix=fix), *lacking]
