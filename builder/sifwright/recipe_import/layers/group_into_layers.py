"""Group the pieces of a recipe into layers, and write the headers of the layers."""

from collections.abc import Iterable, Sequence

from sifwright.catalog.model import EnvRule
from sifwright.recipe_import.draft import Piece
from sifwright.recipe_import.env_rules import merged

# A layered SIF has places for 48 objects (sif/layout.py), of which layers are not all.
MAX_LAYERS = 24


def groups(pieces: Sequence[Piece]) -> list[list[Piece]]:
    """Group pieces so that a layer ends with a RUN, as in Docker's cache.

    Pieces that share a temporary folder stay in one layer, with all pieces between them.
    """
    finished: list[list[Piece]] = [[]]
    for piece, may_end in zip(pieces, _ends(pieces), strict=True):
        finished[-1].append(piece)
        if piece.is_run and may_end:
            finished.append([])
    finished = [layer for layer in finished if layer]
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


def _ends(pieces: Sequence[Piece]) -> list[bool]:
    """Return for each piece whether a layer may end there.

    It may not while a later piece needs a temporary folder of a piece so far.
    """
    first_needed, last_user = [], dict[str, int]()
    for number, piece in enumerate(pieces):
        needed = (last_user.get(use, number) for use in piece.uses - piece.recreates)
        first_needed.append(min(needed, default=number))
        last_user |= dict.fromkeys(piece.uses, number)
    ends, needed_from = [], len(pieces)
    for number in reversed(range(len(pieces))):
        ends.append(needed_from > number)
        needed_from = min(needed_from, first_needed[number])
    return ends[::-1]


def _fewer(layers: list[list[Piece]], most: int) -> list[list[Piece]]:
    """Join neighbours, about as many for each, if there are too many layers."""
    joined: list[list[Piece]] = [[] for _ in range(min(most, len(layers)))]
    for number, layer in enumerate(layers):
        joined[number * len(joined) // len(layers)] += layer
    return joined
