"""Texts that mean something to a shell, YAML, Jinja, rich or Apptainer, in any combination."""

import random
import string

SEED = 20240607
PRINTABLE = [
    *("$(touch x)", "`touch x`", "; touch x;", "touch x", "| touch x", "&& touch x", "& touch x&"),
    *(">x", "<x", ">>x", "<<x", "2>x", "x=1 ", "=", "'", '"', "''", '""', "'\"'", "\\", "\\\\"),
    *("\\n", "\\x41", "$'\\n'", "$HOME", "${HOME}", "${#a[@]}", "${IFS}", "$$", "$?", "$("),
    "$((1))",
    *("`", "!", "!!", "!x", "~", "~root", "*", "?", "[a-z]", "{a,b}", "{1..9}", " ", "   "),
    *("-", "--", "-n", "--help", "#", " # ", "%", "%post", "%%", "%s", "%(x)s", "{", "}", "{{"),
    "}}",
    *("{{ '", "' }}", "{% if x %}", "{# x #}", "[bold]", "[/]", ":smile:", "SIFWRIGHT_EOF", "EOF"),
    *("é", "漢字", "…", "\U0001f600", "ß", "\u0301", "true", "null", "2.10", "0x10", "1:30", "~/x"),
    *("a", "Z", "0", ":", ",", ".", "/", "../", "@", "^", "+", "(", ")", "[", "]", "&", ";", "|"),
]
UNPRINTABLE = [
    *("\n", "\r", "\r\n", "\0", "\t", "\v", "\f", "\x1b[31m", "\x7f", "\x85", "\x1c", "\xa0"),
    "\xad",
    *("\u2028", "\u2029", "\u200b", "\u202e", "\ufeff", "\ud800", "\udcff", "\uffff", "\U0010ffff"),
    *("\n%post\n    touch x\n", "\n  %setup\n", "\nSIFWRIGHT_EOF\ntouch x\n", "{{ x }}", "{{x}}"),
    *("{{\nx\n}}", "'\ntouch x\n'", "\\\n", "\n#", "$(\ntouch x\n)"),
]


def texts(seed: int, count: int, *, share: float = 0.2) -> list[str]:
    """Return so many texts; about that `share` of them holds something that must be refused."""
    rng = random.Random(seed)  # noqa: S311  # repeatable, not secret
    return [_text(rng, share) for _ in range(count)]


def _text(rng: random.Random, share: float) -> str:
    pool = PRINTABLE + UNPRINTABLE if rng.random() < share else PRINTABLE
    parts = rng.choices(pool, k=rng.randint(0, 6))
    if rng.random() < 0.3:
        parts += rng.choices(string.printable[:95], k=rng.randint(1, 20))
        rng.shuffle(parts)
    return "".join(parts)


def contents(seed: int, count: int) -> list[bytes]:
    """Return bytes of files: lines of such texts with and without a last line end, and noise."""
    rng = random.Random(seed)  # noqa: S311  # repeatable, not secret
    return [_content(rng) for _ in range(count)]


def _content(rng: random.Random) -> bytes:
    if rng.random() < 0.2:
        return rng.randbytes(rng.randint(0, 300))
    lines = [_text(rng, 0.3) for _ in range(rng.randint(0, 5))]
    text = "\n".join(lines) + rng.choice(["", "\n", "\n\n"])
    return text.encode(errors="surrogatepass")
