"""The modulefile of a native installation, for Lmod and for Environment Modules."""

from __future__ import annotations

from dataclasses import dataclass

from sifwright.templating import template

__all__ = ["Native", "modulefile"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Native:
    """What the module brings. `packages` is a folder below `prefix`, `loads` what it needs."""

    module: str
    prefix: str
    packages: str
    loads: tuple[str, ...]
    site: str

    @property
    def name(self) -> str:
        return self.module.rpartition("/")[0]


def modulefile(made: Native, syntax: str) -> str:
    """The text in that syntax: lua or tcl."""
    return template(f"native/module.{syntax}.j2").render(native=made)
