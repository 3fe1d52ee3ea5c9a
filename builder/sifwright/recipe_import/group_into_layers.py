"""Group the pieces of a recipe into layers, and write the headers of the layers."""

from collections.abc import Iterable, Sequence
from itertools import pairwise

from sifwright.catalog.model import EnvRule
from sifwright.recipe_import.draft import Piece
from sifwright.recipe_import.env_rules import merged

# A layered SIF has places for 48 objects (sif/layout.py), of which layers are not all.
MAX_LAYERS = 24


def groups(pieces: Sequence[Piece]) -> list[list[Piece]]:
    """Group pieces so that a layer ends with a RUN, as in Docker's cache.

    Pieces that share a temporary folder stay in one layer, with all pieces between them.
    """
    finished: list[list[Piece]] = []
    current: list[Piece] = []
    for number, piece in enumerate(pieces):
        current.append(piece)
        if piece.is_run and not _is_used_later(pieces, number):
            finished, current = [*finished, current], []
    if current:
        finished.append(current)
    _, left = _one_each(_rules(pieces))
    finished = _fewer(finished, MAX_LAYERS - bool(left))
    return [*finished, *_last(finished)]


def headers(layers: Sequence[Sequence[Piece]]) -> list[list[EnvRule]]:
    """Return the rules of each layer's header, in which a variable has one rule.

    A second rule of a variable goes into the next header: prepending and appending may come in any
    order. The steps read the rules from their install.sh.
    """
    *result, (_, left) = _walk(layers)
    own = [rules for rules, _ in result]
    return [*own, left] if left else own


def pending_env_rules(layers: Sequence[Sequence[Piece]]) -> list[list[EnvRule]]:
    """Return for each layer the rules of earlier layers that no header has yet."""
    return [left for _, left in _walk(layers)]


def _walk(layers: Sequence[Sequence[Piece]]) -> list[tuple[list[EnvRule], list[EnvRule]]]:
    """Return the header of each layer and the rules left over before it, then the last rest."""
    result: list[tuple[list[EnvRule], list[EnvRule]]] = []
    left: list[EnvRule] = []
    for pieces in layers:
        before = left
        own, left = _one_each([*before, *_rules(pieces)])
        result.append((own, before))
    return [*result, ([], left)]


def _one_each(rules: Iterable[EnvRule]) -> tuple[list[EnvRule], list[EnvRule]]:
    """Return one rule for each variable, and the rules that need another header."""
    by_name: dict[str, EnvRule] = {}
    left: list[EnvRule] = []
    for rule in rules:
        both = merged(by_name.get(rule.name), rule)
        if both is None:
            left.append(rule)
            continue
        if rule.action == "set":
            left = [other for other in left if other.name != rule.name]
        by_name[rule.name] = both
    return list(by_name.values()), left


def _rules(pieces: Iterable[Piece]) -> list[EnvRule]:
    return [rule for piece in pieces for rule in piece.rules]


def _last(layers: Sequence[Sequence[Piece]]) -> list[list[Piece]]:
    """Return an empty layer if a rule is left that needs one more header."""
    if len(headers(layers)) == len(layers):
        return []
    last = [piece for pieces in layers for piece in pieces if piece.rules][-1]
    return [[Piece(line=last.line, says=last.says)]]


def _is_used_later(pieces: Sequence[Piece], number: int) -> bool:
    """Return whether a later piece needs a temporary folder of these pieces."""
    before = {use for piece in pieces[: number + 1] for use in piece.uses}
    return any(_is_needed(use, pieces[number + 1 :]) for use in before)


def _is_needed(use: str, later: Iterable[Piece]) -> bool:
    first = next((piece for piece in later if use in piece.uses), None)
    return first is not None and use not in first.recreates


def _fewer(layers: list[list[Piece]], most: int) -> list[list[Piece]]:
    """Join the smallest neighbours until there are few enough layers."""
    while len(layers) > most:
        sizes = [len(first) + len(second) for first, second in pairwise(layers)]
        smallest = min(range(len(sizes)), key=lambda n: sizes[n])
        layers[smallest : smallest + 2] = [layers[smallest] + layers[smallest + 1]]
    return layers
