"""Loaded by the process that forks (tests/forked.py), before it does: all that its forks share."""

from sifwright.host.network import apt_mirror
from tests import forked

__all__ = ["forked"]

apt_mirror.mirror(apt_mirror.DEBIAN)  # apt needs half a second to answer
