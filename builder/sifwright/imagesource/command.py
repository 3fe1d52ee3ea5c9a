"""The command `inspect`: what an image is, as a page or as JSON."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

from sifwright import adapting
from sifwright.imagesource.facts import facts_of
from sifwright.inspection.text import shown
from sifwright.progress import QuietProgress, TextProgress

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Iterator

    from rich.console import Console

    from sifwright.inspection.imagefacts import ImageFacts, Plugin, Python

__all__ = ["document", "lines", "run"]

_LONGEST = 100


def run(arguments: Namespace) -> ImageFacts:
    """Look at the image that is named; progress is on standard error, so JSON stays JSON."""
    import platform  # noqa: PLC0415  # only where it is not given

    progress = QuietProgress() if arguments.json else TextProgress(_console)
    processor = arguments.processor or platform.machine()
    return facts_of(arguments.image, processor=processor, progress=progress)


def _console() -> Console:
    from rich.console import Console  # noqa: PLC0415  # not needed for --json

    return Console(stderr=True)


def document(facts: ImageFacts) -> dict[str, object]:
    return asdict(facts)


def lines(facts: ImageFacts) -> Iterator[str]:
    """One fact on a line, its name first."""
    for name, value in _rows(facts):
        if value:
            yield f"{name:<11}  {shown(value)}"
    yield f"{'as a base':<11}  {shown(_as_base(facts))}"


def _rows(facts: ImageFacts) -> Iterator[tuple[str, str]]:
    yield "image", facts.source
    yield "digest", facts.digest
    yield "size", f"{facts.bytes / 1e6:.1f} MB"
    yield "processor", facts.processor
    yield "system", " ".join(filter(None, (facts.os, facts.os_version))) or "not said"
    yield "libc", facts.libc
    yield "user", facts.user
    yield from (("python", _python(one)) for one in facts.pythons)
    yield "cuda", facts.cuda
    yield "rocm", facts.rocm
    yield from (("mpi", one) for one in facts.mpi)
    yield from (("plugin", _plugin(one)) for one in facts.plugins)
    yield from (("env", _short(f"{one}={facts.environment[one]}")) for one in facts.environment)
    yield from (("label", _short(f"{one}={facts.labels[one]}")) for one in sorted(facts.labels))


def _python(one: Python) -> str:
    torch = one.torch
    has = ""
    if torch is not None:
        of = [
            f"CUDA {torch.cuda}" if torch.cuda else "",
            f"ROCm {torch.rocm}" if torch.rocm else "",
        ]
        has = f", torch {torch.version} ({' '.join(filter(None, of)) or 'for CPUs'})"
    return f"{one.path} {one.version} ({one.kind}){has}"


def _plugin(one: Plugin) -> str:
    return f"{one.path} (by {one.set_by})" if one.set_by else one.path


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


def _as_base(facts: ImageFacts) -> str:
    """What a plan that starts from it does."""
    why = "; ".join(problem.what for problem in adapting.nowhere(facts, facts.source))
    used = adapting.python(facts)
    if why or used is None:
        return f"refused: {why}"
    uses = f"a plan on it uses {used.path} {used.version}".rstrip()
    if used.torch is None:
        return f"{uses}, and installs torch"
    return f"{uses} and its torch {used.torch.version}"
