"""Rules of the linter and their violations, and look-ups of variables in a site's file."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any, Generic, Literal, TypeVar

from sifwright.catalog import yaml_file
from sifwright.catalog.model import Site
from sifwright.catalog.yaml_document import Path

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

    The reason of a variable makes a note of a warning that it names as `despite`. The severity of
    a rule about some programs only is `note`.
    """

    name: str
    find: Callable[[T], Iterator[Violation]]

    @property
    def severity(self) -> Literal["error", "warning", "note"]:
        severity: Literal["error", "warning", "note"] = _texts()[self.name]["severity"]
        return severity

    @property
    def why(self) -> str:
        return str(_texts()[self.name]["why"])

    @property
    def source(self) -> str:
        return str(_texts()[self.name]["source"])


def rules(finders: Mapping[str, Callable[[T], Iterator[Violation]]]) -> tuple[Rule[T], ...]:
    """Return rules with their functions; rules.yaml has severity, reason and source of each."""
    return tuple(Rule(name=name, find=find) for name, find in finders.items())


@cache
def _texts() -> dict[str, dict[str, Any]]:
    name = "plan/lint/rules.yaml"
    data = resources.files("sifwright").joinpath(name).read_bytes()
    texts: dict[str, dict[str, Any]] = yaml_file.parse_yaml(data, name).data
    return texts


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
