"""Verdicts of import on its corpus in tests: python benchmarks/import_corpus.py."""  # noqa: INP001  # a program of its own

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.system.importing.corpus import Verdict, verdicts


def state(verdict: Verdict) -> str:
    if not verdict.is_right:
        return "WRONG"
    lines = ", ".join(map(str, verdict.refused))
    return f"refused at line {lines}" if verdict.refused else "imported"


def main() -> int:
    results = verdicts()
    for verdict in results:
        print(f"{verdict.name:36} {state(verdict):32} {verdict.spython[:40]}".rstrip())
    wrong = [verdict for verdict in results if not verdict.is_right]
    refused = [verdict for verdict in results if verdict.refused and verdict.is_right]
    silent = [verdict for verdict in refused if verdict.spython == "converted"]
    dockerfiles = [verdict for verdict in refused if verdict.spython]
    print(f"{len(results)} recipes: {len(results) - len(refused) - len(wrong)} imported, ", end="")
    print(f"{len(refused)} refused rightly, {len(wrong)} wrong")
    print(f"of {len(dockerfiles)} refused Dockerfiles, spython converts {len(silent)}")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
