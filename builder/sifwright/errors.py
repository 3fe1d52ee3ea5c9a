"""Every way sifwright can refuse or fail: one class, one exit code, and what to do next."""

import os
from dataclasses import dataclass
from typing import ClassVar, Literal, Self


def quoted(value: object, limit: int = 80) -> str:
    """Return a value as a message shows it: on one line of limited length, bytes as text."""
    text = repr(os.fsdecode(value) if isinstance(value, bytes) else value)
    return text if len(text) <= limit else f"{text[:limit]}…"


@dataclass(frozen=True, kw_only=True, slots=True)
class Problem:
    """One finding: where it is, what is wrong, what to do about it, and how severe it is.

    A note is reported; only an error ends a command.
    """

    what: str
    where: str = ""
    fix: str = ""
    severity: Literal["error", "note"] = "error"

    def __str__(self) -> str:
        first = f"{self.where}: {self.what}" if self.where else self.what
        return f"{first}\n    {self.fix}" if self.fix else first


class ErrorWithFix(Exception):
    """Base of errors that the caller turns into a problem; `fix` says what to do."""

    fix = ""

    def __init__(self, message: str, fix: str = "") -> None:
        super().__init__(message)
        self.fix = fix or self.fix


class SifwrightError(Exception):
    """Base of all errors a user can cause or meet; only the command line turns it into an exit."""

    exit_code: ClassVar[int] = 1

    def __init__(self, *problems: Problem) -> None:
        super().__init__(*problems)
        self.problems = problems

    @classmethod
    def of(cls, message: str, *, where: str = "", fix: str = "") -> Self:
        return cls(Problem(what=message, where=where, fix=fix))

    def __str__(self) -> str:
        return "\n".join(map(str, self.problems))


class UsageError(SifwrightError):
    """The command line asks for something that does not exist or has the wrong type."""

    exit_code = 2


class CatalogError(SifwrightError):
    """A file under ``defs/``, or the mirrors file, is wrong."""

    exit_code = 3


class PlanError(SifwrightError):
    """The layers and options do not go together."""

    exit_code = 4


class MachineError(SifwrightError):
    """This machine lacks something the build needs."""

    exit_code = 5


class BuildError(SifwrightError):
    """The engine failed while building."""

    exit_code = 6


class TestError(SifwrightError):
    """The image was built, but a layer's test failed in it."""

    __test__ = False  # pytest takes the name for that of a test class
    exit_code = 7


class Interrupted(SifwrightError):
    """The user or the scheduler stopped the build; 128 + SIGINT by shell convention."""

    exit_code = 130
