"""Findings while reading a recipe: parts that cannot be carried, and notes."""

from __future__ import annotations

from dataclasses import dataclass, field

from sifwright.errors import Problem

# Of a file full of mistakes, the first.
MAX_PROBLEMS = 50


@dataclass(kw_only=True, slots=True)
class Findings:
    """`problems` refuse the recipe, all at once; `notes` are said and change nothing."""

    file: str
    problems: list[Problem] = field(default_factory=list)
    _notes: list[tuple[int, str]] = field(default_factory=list)

    def location(self, line: int) -> str:
        return f"{self.file}:{line}"

    def refuse(self, line: int, message: str, fix: str) -> None:
        problem = Problem(where=self.location(line), what=message, fix=fix)
        if problem not in self.problems and len(self.problems) < MAX_PROBLEMS:
            self.problems.append(problem)

    def in_order(self) -> list[Problem]:
        """Return the problems in the order of the file."""
        return sorted(self.problems, key=lambda problem: int(problem.where.rpartition(":")[2]))

    def note(self, line: int, text: str) -> None:
        if (line, text) not in self._notes:
            self._notes.append((line, text))

    @property
    def notes(self) -> list[str]:
        """Return the notes in the order of the file."""
        return [f"{self.location(line)}: {text}" for line, text in sorted(self._notes)]
