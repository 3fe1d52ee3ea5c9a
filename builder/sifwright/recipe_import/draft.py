"""A recipe as it was read: what it does, in its order, and what cannot be carried."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from sifwright.catalog.model import EnvRule, ImageStart, LayerFile
from sifwright.errors import Problem, UsageError

# Most mistakes of a file that are reported.
_MOST_PROBLEMS = 50
# The characters that the variables of one recipe put into it.
MAX_VALUES = 4 << 20
Value = TypeVar("Value", bound=str | None)


@dataclass(frozen=True, kw_only=True, slots=True)
class Wanted:
    """The user's wishes for a recipe: the stage to build, and values of its arguments."""

    target: str = ""
    arguments: Mapping[str, str] = field(default_factory=dict)


AS_IT_IS = Wanted()


@dataclass(frozen=True, kw_only=True, slots=True)
class Argument:
    """An ARG that RUN sees: an option of the layers that come after it."""

    name: str
    option: str
    default: str
    line: int


@dataclass(frozen=True, kw_only=True, slots=True)
class DraftDownload:
    """A file that ADD takes from the network; `name` is that of the source in pins.yaml."""

    name: str
    url: str
    sha256: str
    line: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Piece:
    """The result of one instruction: lines of install.sh, files, changes of the environment.

    `uses` names temporary folders; pieces that share one go into one step. `recreates` names the
    folders that the piece creates itself.
    """

    line: int
    says: str = ""
    code: tuple[str, ...] = ()
    files: tuple[LayerFile, ...] = ()
    rules: tuple[EnvRule, ...] = ()
    argument: Argument | None = None
    download: DraftDownload | None = None
    is_run: bool = False
    uses: frozenset[str] = frozenset()
    recreates: frozenset[str] = frozenset()


@dataclass(kw_only=True, slots=True)
class Draft:
    """`is_live`: whether the environment holds while building, as ENV and not as %environment."""

    bootstrap: Mapping[str, str]
    base_line: int
    is_live: bool
    pieces: list[Piece] = field(default_factory=list)
    test: str = ""
    start: ImageStart | None = None
    help: list[str] = field(default_factory=list)
    description: str = ""
    remarks: list[str] = field(default_factory=list)


@dataclass(kw_only=True, slots=True)
class Findings:
    """`problems` refuse the recipe, all at once; `notes` are said and change nothing."""

    file: str
    problems: list[Problem] = field(default_factory=list)
    _notes: dict[tuple[int, str], None] = field(default_factory=dict)
    _left: int = MAX_VALUES

    def location(self, line: int) -> str:
        return f"{self.file}:{line}"

    def refuse(self, line: int, message: str, fix: str) -> None:
        problem = Problem(where=self.location(line), what=message, fix=fix)
        if problem not in self.problems and len(self.problems) < _MOST_PROBLEMS:
            self.problems.append(problem)

    def in_order(self) -> list[Problem]:
        """Return the problems in the order of the file."""
        return sorted(self.problems, key=lambda problem: int(problem.where.rpartition(":")[2]))

    def note(self, line: int, text: str) -> None:
        self._notes[line, text] = None

    def count(self, line: int, value: Value) -> Value:
        """Return the value of a variable; raises `UsageError` if all values are too long."""
        self._left -= 0 if value is None else len(value)
        if self._left < 0:
            message = f"the values of variables have more than {MAX_VALUES >> 20} MiB together"
            raise UsageError.of(message, where=self.location(line), fix="Use fewer variables.")
        return value

    @property
    def notes(self) -> list[str]:
        """Return the notes in the order of the file."""
        return [f"{self.location(line)}: {text}" for line, text in sorted(self._notes)]
