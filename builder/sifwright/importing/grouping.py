"""Which pieces of a recipe share a layer."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from sifwright.importing.environment import merged

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sifwright.importing.draft import Piece
    from sifwright.model import EnvRule

__all__ = ["groups", "header_rules"]

# A layered SIF has places for 48 objects (sif/layout.py), of which layers are not all.
MAX_LAYERS = 24


def groups(pieces: Sequence[Piece]) -> list[list[Piece]]:
    """A layer ends with a RUN, as in Docker's cache, so that what changed runs again, and after it.

    Pieces that use a place which no step keeps stay in one layer, with all between them.
    """
    found: list[list[Piece]] = []
    current: list[Piece] = []
    for number, piece in enumerate(pieces):
        if header_rules([*current, piece]) is None:
            found, current = [*found, current], []
        current.append(piece)
        if piece.is_run and not _held(pieces, number):
            found, current = [*found, current], []
    if current:
        found.append(current)
    return _fewer(found)


def header_rules(pieces: Sequence[Piece]) -> list[EnvRule] | None:
    """The rules of the pieces, one for each variable; None if they take two layers."""
    found: dict[str, EnvRule] = {}
    for rule in (rule for piece in pieces for rule in piece.rules):
        both = merged(found.get(rule.name), rule)
        if both is None:
            return None
        found[rule.name] = both
    return list(found.values())


def _held(pieces: Sequence[Piece], number: int) -> bool:
    """Whether something is used up to here and again later."""
    before = {use for piece in pieces[: number + 1] for use in piece.uses}
    return any(before & piece.uses for piece in pieces[number + 1 :])


def _fewer(found: list[list[Piece]]) -> list[list[Piece]]:
    """Join neighbours until there are places for all, the smallest first."""
    while len(found) > MAX_LAYERS:
        sizes = [len(one) + len(two) for one, two in pairwise(found)]
        options = [n for n, _ in enumerate(sizes) if header_rules(found[n] + found[n + 1])]
        # Rules that take two layers are rare, and never as many as there are places.
        place = min(options or range(len(sizes)), key=lambda n: sizes[n])
        found[place : place + 2] = [found[place] + found[place + 1]]
    return found
