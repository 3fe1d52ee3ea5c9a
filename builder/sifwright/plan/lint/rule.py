"""Rules of the linter and their violations, and look-ups of variables in a site's file."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Generic, Literal, TypeVar

from sifwright.catalog.model import Site
from sifwright.catalog.yaml_file import Path

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True, slots=True)
class Violation:
    """One place that breaks a rule: a path in the site's file, or `at`, what is no line of it."""

    what: str
    fix: str
    path: Path = ()
    at: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Rule(Generic[T]):
    """A rule about a site, or about a plan, with its reason and its source.

    The reason of a variable makes a note of a warning that it names as `despite`.
    """

    name: str
    severity: Literal["error", "warning"]
    why: str
    source: str
    find: Callable[[T], Iterator[Violation]]


def placed(site: Site, name: str) -> Iterator[tuple[Path, str]]:
    """Yield each path in the site's file that sets a variable, with the value."""
    for group, values in site.environment.groups.items():
        if name in values:
            yield ("environment", group, name), values[name]


def on_several_nodes(site: Site, name: str) -> tuple[Path, str]:
    """Return path and value of a variable for launches on several nodes; '' if unset."""
    for path, value in placed(site, name):
        if path[1] != "one-node":
            return path, value
    return ("environment", "not-set", name), ""


def of_host_mpi(site: Site, name: str) -> Iterator[tuple[Path, str]]:
    """Yield paths and values of a variable for ranks that use the site's own MPI."""
    if name in site.mpi_environment:
        yield ("mpi", "environment", name), site.mpi_environment[name]
    if site.host_mpi and name in site.host_mpi.environment:
        yield ("mpi", "host", "environment", name), site.host_mpi.environment[name]
