"""The real catalog, which a process of the tests loads once."""

from pathlib import Path

from sifwright.catalog import load

__all__ = ["REAL"]

_CHECKOUT = Path(__file__).resolve().parents[1]
REAL = load.load_catalog(_CHECKOUT / "defs", _CHECKOUT)
