"""Render a modulefile in Lua or Tcl for an installation without EasyBuild."""

from typing import Literal

from sifwright.install.easyconfig import FILTERS
from sifwright.install.module import Module
from sifwright.render.templating import template

Syntax = Literal["lua", "tcl"]


def modulefile(module: Module, root: str, syntax: Syntax) -> str:
    """Return a modulefile for the installation in `root`, without EasyBuild."""
    return template(f"install/templates/modulefile.{syntax}.j2", *FILTERS).render(
        module=module, root=root
    )
