"""Violations of lint rules, the texts of the rules, and look-ups of variables in a site's file."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

from sifwright.catalog import yaml_file
from sifwright.catalog.model import Site
from sifwright.catalog.yaml_document import Path


@dataclass(frozen=True, kw_only=True, slots=True)
class Violation:
    """One place that breaks a rule: a path in the site's file, or `at`, what is no line of it.

    `fix` is empty for the one that rules.yaml has.
    """

    what: str
    fix: str = ""
    path: Path = ()
    at: str = ""


@cache
def texts() -> dict[str, dict[str, Any]]:
    """Return severity, reason (`why`) and source of each rule, by its name: rules.yaml.

    A rule with the same `fix` at all places has it there. The reason of a variable makes a note
    of a warning that it names as `despite`. The severity of a rule about some programs only is
    `note`.
    """
    name = "plan/lint/rules.yaml"
    data = resources.files("sifwright").joinpath(name).read_bytes()
    read: dict[str, dict[str, Any]] = yaml_file.parse_yaml(data, name).data
    return read


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
