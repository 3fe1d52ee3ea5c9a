"""The real catalog, which a process of the tests loads once."""

from pathlib import Path

from sifwright.catalog.load_catalog import load_catalog

__all__ = ["REAL"]

_CHECKOUT = Path(__file__).resolve().parents[1]
REAL = load_catalog(_CHECKOUT / "defs", _CHECKOUT)
