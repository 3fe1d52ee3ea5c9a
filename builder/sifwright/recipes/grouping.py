"""Which pieces of a recipe share a layer, and what their layers' headers say."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from sifwright.recipes.draft import Piece
from sifwright.recipes.env_rules import merged

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from sifwright.catalog.model import EnvRule

__all__ = ["groups", "headers", "pending_env_rules"]

# A layered SIF has places for 48 objects (sif/layout.py), of which layers are not all.
MAX_LAYERS = 24


def groups(pieces: Sequence[Piece]) -> list[list[Piece]]:
    """A layer ends with a RUN, as in Docker's cache, so that what changed runs again, and after it.

    Pieces that use a place which no step keeps stay in one layer, with all between them.
    """
    found: list[list[Piece]] = []
    current: list[Piece] = []
    for number, piece in enumerate(pieces):
        current.append(piece)
        if piece.is_run and not _is_used_later(pieces, number):
            found, current = [*found, current], []
    if current:
        found.append(current)
    _, left = _one_each(_rules(pieces))
    found = _fewer(found, MAX_LAYERS - bool(left))
    return [*found, *_last(found)]


def headers(found: Sequence[Sequence[Piece]]) -> list[list[EnvRule]]:
    """The rules of each layer's header, in which a variable has one.

    What has no place goes into the next header: what is put before a list and what is put behind it
    may come in any order. The steps have it from their install.sh.
    """
    *made, (_, left) = _walk(found)
    own = [rules for rules, _ in made]
    return [*own, left] if left else own


def pending_env_rules(found: Sequence[Sequence[Piece]]) -> list[list[EnvRule]]:
    """The rules of earlier layers that no header before a layer's own has, for each layer."""
    return [left for _, left in _walk(found)]


def _walk(found: Sequence[Sequence[Piece]]) -> list[tuple[list[EnvRule], list[EnvRule]]]:
    """The header of each layer, and what was left over before it; at the end what is left."""
    made: list[tuple[list[EnvRule], list[EnvRule]]] = []
    left: list[EnvRule] = []
    for pieces in found:
        before = left
        own, left = _one_each([*before, *_rules(pieces)])
        made.append((own, before))
    return [*made, ([], left)]


def _one_each(rules: Iterable[EnvRule]) -> tuple[list[EnvRule], list[EnvRule]]:
    """One rule for each variable, and those that take another header."""
    found: dict[str, EnvRule] = {}
    left: list[EnvRule] = []
    for rule in rules:
        both = merged(found.get(rule.name), rule)
        if both is None:
            left.append(rule)
            continue
        if rule.action == "set":
            left = [one for one in left if one.name != rule.name]
        found[rule.name] = both
    return list(found.values()), left


def _rules(pieces: Iterable[Piece]) -> list[EnvRule]:
    return [rule for piece in pieces for rule in piece.rules]


def _last(found: Sequence[Sequence[Piece]]) -> list[list[Piece]]:
    """A layer that does nothing, if there is a header more than layers."""
    if len(headers(found)) == len(found):
        return []
    said = [piece for pieces in found for piece in pieces if piece.rules][-1]
    return [[Piece(line=said.line, says=said.says)]]


def _is_used_later(pieces: Sequence[Piece], number: int) -> bool:
    """Whether something that is there up to here is needed later."""
    before = {use for piece in pieces[: number + 1] for use in piece.uses}
    return any(_is_needed(use, pieces[number + 1 :]) for use in before)


def _is_needed(use: str, later: Iterable[Piece]) -> bool:
    first = next((piece for piece in later if use in piece.uses), None)
    return first is not None and use not in first.anew


def _fewer(found: list[list[Piece]], most: int) -> list[list[Piece]]:
    """Join neighbours until there are places for all, the smallest first."""
    while len(found) > most:
        sizes = [len(one) + len(two) for one, two in pairwise(found)]
        place = min(range(len(sizes)), key=lambda n: sizes[n])
        found[place : place + 2] = [found[place] + found[place + 1]]
    return found
