"""The processes above this one, as far as a container shows them."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Iterator, List


class Process:
    """A process: its id, its name (cut to 15 characters by Linux), its start in clock ticks."""

    def __init__(self, number: str, name: str, started: str) -> None:
        self.number = number
        self.name = name
        self.started = started

    def words(self) -> "List[str]":
        """Return its command line; none if it has ended."""
        return read("/proc/{}/cmdline".format(self.number)).split("\0")


def above() -> "Iterator[Process]":
    """Yield this process and its ancestors, the nearest first."""
    number = "self"
    while number not in ("0", "1"):
        text = read("/proc/{}/stat".format(number))
        if not text:
            return
        # "pid (name) state ppid ...": a name may hold blanks and brackets.
        fields = text[text.rindex(")") :].split()
        yield Process(number, text[text.index("(") + 1 : text.rindex(")")], fields[20])
        number = fields[2]


def read(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()
    except OSError:
        return ""
