"""Slurm's host lists.

A list has elements (rack[0-1]node[0-3]), and an element has parts. A part is a fixed text (a str)
or a list of ranges, and a range is (low, high, width).
"""

from itertools import chain, product

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Iterator, List, Tuple, Union

    Range = Tuple[int, int, int]
    Part = Union[str, List[Range]]
    Element = List[Part]

# More than any machine has; Slurm itself refuses ranges over 64 K (MAX_RANGE in its hostlist.h).
MAX_HOSTS = 1000000
MAX_DIGITS = 18  # Slurm's numbers are 64 bits

# Separators of hostlist_create() in Slurm's src/common/hostlist.c: "\t, \n".
SEPARATORS = frozenset("\t, \n")
DIGITS = frozenset("0123456789")
NAME = DIGITS | frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz._-")


def parse(text: str) -> "List[Element]":
    """Read a list; raises `ValueError` that says what cannot be read."""
    elements: "List[Element]" = []
    position, fresh = 0, True
    while position < len(text):
        if text[position] in SEPARATORS:
            position, fresh = position + 1, True
            continue
        if fresh:
            elements.append([])
        part, position = next_part(text, position)
        elements[-1].append(part)
        fresh = False
    check(elements)
    return elements


def check(elements: "List[Element]") -> None:
    if not elements:
        raise ValueError("it names no host")
    for element in elements:
        if isinstance(element[0], str) and element[0].startswith("-"):
            raise ValueError("'{}' starts with a dash".format(element[0]))


def next_part(text: str, start: int) -> "Tuple[Part, int]":
    """Return the part that begins at `start`, and where it ends."""
    end = start
    if text[start] == "[":
        end = text.find("]", start)
        inside = text[start + 1 : end]
        if end < 0 or "[" in inside:
            raise ValueError(misfit(text, start))
        return [parse_range(item) for item in inside.split(",")], end + 1
    while end < len(text) and text[end] in NAME:
        end += 1
    if end == start:
        raise ValueError(misfit(text, start))
    return text[start:end], end


def misfit(text: str, position: int) -> str:
    return "character {} ('{}') fits nothing".format(position + 1, text[position])


def parse_range(text: str) -> "Range":
    first, dash, last = text.partition("-")
    if not is_digits(first) or (dash and not is_digits(last)):
        raise ValueError("'{}' is not a number or a range".format(text))
    low, high = int(first), int(last or first)
    if high < low:
        raise ValueError("the range '{}' goes down".format(text))
    return low, high, len(first)  # the low end's digits give the padding, as in Slurm


def is_digits(text: str) -> bool:
    return 0 < len(text) <= MAX_DIGITS and DIGITS.issuperset(text)


def part_size(part: "Part") -> int:
    return 1 if isinstance(part, str) else sum(high - low + 1 for low, high, _ in part)


def element_size(element: "Element") -> int:
    size = 1
    for part in element:
        size *= part_size(part)
    return size


def part_values(part: "Part") -> "List[str]":
    if isinstance(part, str):
        return [part]
    return [
        "{:0{}d}".format(number, width)
        for low, high, width in part
        for number in range(low, high + 1)
    ]


def expand_element(element: "Element") -> "Iterator[str]":
    """Yield every host in Slurm's order: the last bracket changes fastest, then the first on.

    See _push_range_list() in Slurm's hostlist.c. It takes the brackets before the last one from the
    right, each in a loop around the next.
    """
    brackets = [index for index, part in enumerate(element) if not isinstance(part, str)]
    order = brackets[-2::-1] + brackets[-1:]
    texts = [part if isinstance(part, str) else "" for part in element]
    for values in product(*(part_values(element[index]) for index in order)):
        for position, index in enumerate(order):
            texts[index] = values[position]
        yield "".join(texts)


def expand(elements: "List[Element]") -> "Iterator[str]":
    """Yield every host; raise `ValueError` for more than a million."""
    if sum(map(element_size, elements)) > MAX_HOSTS:
        raise ValueError("it names more than {} hosts".format(MAX_HOSTS))
    return chain.from_iterable(map(expand_element, elements))


def first_host(elements: "List[Element]") -> str:
    """Return the first host, from the lowest number of each part: n[0-99999999] costs nothing."""
    return "".join(
        part if isinstance(part, str) else "{:0{}d}".format(part[0][0], part[0][2])
        for part in elements[0]
    )
