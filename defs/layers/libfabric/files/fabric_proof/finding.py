"""One line of the proof."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Finding", "broken", "proved"]


@dataclass(frozen=True)
class Finding:
    """An answer to one of the questions.

    - a: which NCCL or RCCL
    - b: which plugin it looks for and gets
    - c: whether all libraries are found, and once
    - d: which interface is used
    - e: what libfabric offers
    """

    question: str
    good: bool
    text: str

    def __str__(self) -> str:
        return f"{'ok    ' if self.good else 'BROKEN'} ({self.question}) {self.text}"


def proved(question: str, text: str) -> Finding:
    return Finding(question=question, good=True, text=text)


def broken(question: str, text: str) -> Finding:
    return Finding(question=question, good=False, text=text)
