"""The image that is built, and its plan."""  # noqa: INP001  # run.py's folder is on sys.path

from __future__ import annotations

from typing import TYPE_CHECKING

from sifwright.catalog.load_catalog import load_catalog
from sifwright.plan.resolve import resolve

if TYPE_CHECKING:
    from figures import Settings

    from sifwright.plan.model import Plan

__all__ = ["IMAGE", "SITE", "plan"]

SITE, IMAGE = "local", "pytorch"


def plan(settings: Settings) -> Plan:
    catalog = load_catalog(settings.project / "defs", settings.project)
    return resolve(catalog, SITE, IMAGE, [])
