"""Spoil YAML files the way editors, merges and attackers do, the same in every run."""

import random
from collections.abc import Callable

SEED = 9
NASTY = [
    *("../../../etc/passwd", "/etc/passwd", "..", ".", "/", "~", "a/../../b", "\\..\\"),
    "file:///x",
    *("null", "true", "~", "1e999", ".inf", "-.nan", "0x" + "f" * 5000, "1:" * 300 + "1.5", "0b_"),
    *("9" * 5000, "1_000", "0o17", "2.10", "2001-01-01", "=", "<<", "!!int x", "&a", "*a", "? x"),
    *("[" * 500, "{" * 500, "- " * 500, "'", '"', "|", ">", "%TAG ! x", "---", "...", "\t", "#"),
    *("{{ x }}", "%post", "$(touch x)", "'\n%post\n'", '"\\n"', '"\\ud800"', '"\\0"', "\\x00"),
    "[]",
    *("{}", "''", "x" * 5000, "é" * 500, "\U0001f600", "\u202e", "\ufeff", "\x1b[31m", "a: b: c"),
    *("[a, [b, [c]]]", "{a: {b: {c: d}}}", "(a+)+$", "[0-9", "a{99999999999}", "(" * 200),
]


def mutants(data: bytes, seed: int, count: int) -> list[bytes]:
    rng = random.Random(seed)  # noqa: S311  # repeatable, not secret
    return [_mutant(data, rng) for _ in range(count)]


def _mutant(data: bytes, rng: random.Random) -> bytes:
    for _ in range(rng.choice([1, 1, 1, 2, 4])):
        data = rng.choice(_MUTATIONS)(data, rng) or b"a"
    return data


def _flip(data: bytes, rng: random.Random) -> bytes:
    index = rng.randrange(len(data))
    return data[:index] + rng.randbytes(1) + data[index + 1 :]


def _truncate(data: bytes, rng: random.Random) -> bytes:
    return data[: rng.randrange(len(data))]


def _insert(data: bytes, rng: random.Random) -> bytes:
    index = rng.randrange(len(data))
    return data[:index] + rng.choice(NASTY).encode() + data[index:]


def _of_lines(change: Callable[[list[bytes], int, random.Random], None]) -> "Mutation":
    def mutation(data: bytes, rng: random.Random) -> bytes:
        lines = data.split(b"\n")
        change(lines, rng.randrange(len(lines)), rng)
        return b"\n".join(lines)

    return mutation


def _double(lines: list[bytes], index: int, rng: random.Random) -> None:
    lines[index:index] = [lines[index]] * rng.choice([1, 1, 5, 200])


def _delete(lines: list[bytes], index: int, rng: random.Random) -> None:
    del lines[index : index + rng.randint(1, 3)]


def _indent(lines: list[bytes], index: int, rng: random.Random) -> None:
    lines[index] = b" " * rng.randint(1, 4) + lines[index]


def _dedent(lines: list[bytes], index: int, rng: random.Random) -> None:
    lines[index] = lines[index][rng.randint(1, 4) :]


def _value(lines: list[bytes], index: int, rng: random.Random) -> None:
    key, _, _ = lines[index].partition(b":")
    lines[index] = key + b": " + rng.choice(NASTY).encode()


def _key(lines: list[bytes], index: int, rng: random.Random) -> None:
    _, colon, value = lines[index].partition(b":")
    lines[index] = rng.choice(NASTY).encode() + colon + value


def _swap(lines: list[bytes], index: int, rng: random.Random) -> None:
    other = rng.randrange(len(lines))
    lines[index], lines[other] = lines[other], lines[index]


Mutation = Callable[[bytes, random.Random], bytes]
_MUTATIONS: list[Mutation] = [
    _flip,
    _truncate,
    _insert,
    *map(_of_lines, (_double, _delete, _indent, _dedent, _value, _value, _key, _swap)),
]

# Most expensive documents: of the largest size that is read, and made for the worst case of every
# part.
_FULL, _MANY = 1 << 18, 9_900
BOMBS = {
    "anchors": b"a: &a [x,x]\n" + b"".join(b"b%d: &b%d [*a,*a]\n" % (n, n) for n in range(5000)),
    "values": b"requires: [" + b"a," * (_FULL // 2 - 10) + b"]",
    "flat list": b"requires: [" + b"a," * _MANY + b"]",
    "wrong list": b"requires: [" + b"1," * _MANY + b"]",
    "lists in a list": b"requires: [" + b"[1],[a]," * (_MANY // 4) + b"]",
    "downloads": b"downloads: [" + b"{what: 1}," * (_MANY // 2) + b"]",
    "unknown keys": b"".join(b"%0999d: 1\n" % n for n in range(_FULL // 1003)),
    "short keys": b"".join(b"a%d: 1\n" % n for n in range(_MANY)),
    "bad options": b"options:\n" + b"".join(b"  a%d: {}\n" % n for n in range(_MANY)),
    "bad names": b"options:\n" + b"".join(b"  A%d: {}\n" % n for n in range(_MANY)),
    "long text": b"summary: '" + b"a" * (_FULL - 20) + b"'",
    "long escapes": b'summary: "' + b"\\n" * (_FULL // 2 - 10) + b'"',
    "long number": b"disk_mb: " + b"9" * (_FULL - 20),
    "long sexagesimal": b"disk_mb: " + b"1:" * (_FULL // 2 - 20) + b"1",
    "long float": b"disk_mb: " + b"1:" * (_FULL // 2 - 20) + b"1.5",
    "long key": b"? " + b"a" * (_FULL - 20) + b"\n: b",
    "deep flow": b"summary: " + b"[" * (_FULL - 20),
    "deep block": b"".join(b" " * n + b"a:\n" for n in range(700)),
    "dashes": b"- " * (_FULL // 2 - 10),
    "question marks": b"? " * (_FULL // 2 - 10),
    "comments": b"#\n" * (_FULL // 2 - 10),
    "tags": b"!" * (_FULL - 10),
    "quotes": b"'" * (_FULL - 10),
    "pattern": b"options: {a: {pattern: '" + b"(" * (_FULL - 100) + b"'}}",
    "too big": b"a" * (1 << 22),
}
