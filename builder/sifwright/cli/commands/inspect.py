"""The command `inspect`: what an image is, as a page or as JSON."""

import platform
from argparse import Namespace
from collections.abc import Iterator
from dataclasses import asdict
from functools import partial
from pathlib import Path

from rich.console import Console

from sifwright.cli.options import arguments as shared
from sifwright.cli.options.output import print_answer
from sifwright.errors import UsageError
from sifwright.images.contents.image_facts import ImageFacts, Python
from sifwright.images.sif import sif_file
from sifwright.images.sources.inspect_image import facts_of
from sifwright.make_image.attest.write_statements import PROVENANCE, SBOM
from sifwright.make_image.resolve_request import adapt_base
from sifwright.system.progress import QuietProgress, TextProgress
from sifwright.system.terminal import escape_name, print_line

HELP = "say what an image is: in a registry, archive, engine or SIF"
GROUP = "look"

_LONGEST = 100
ARGUMENTS = (
    shared.argument(
        "image",
        metavar="IMAGE",
        help="docker://NAME, oci-archive:FILE, oci:FOLDER, docker-archive:FILE, docker-daemon:NAME,"
        " or a SIF",
    ),
    shared.text("--processor", "NAME", "as aarch64; default: this machine's"),
    shared.one_of(
        shared.switch("--labels", "print its labels only"),
        shared.switch("--sbom", "print a SIF's bill of materials"),
        shared.switch("--provenance", "print what a SIF was made from"),
    ),
    shared.JSON,
)


def run(arguments: Namespace) -> None:
    """Print the facts, the labels or a statement of the image."""
    if arguments.sbom or arguments.provenance:
        print_line(_statement(arguments.image, SBOM if arguments.sbom else PROVENANCE))
        return
    facts = _facts(arguments)
    labels = (escape_name(f"{name}  {facts.labels[name]}") for name in sorted(facts.labels))
    if arguments.labels:
        print_answer(arguments, lambda: facts.labels, labels)
    else:
        print_answer(arguments, partial(asdict, facts), lines(facts))


def _statement(image: str, name: str) -> str:
    """Return a JSON document in a SIF; raises `UsageError` without one."""
    text = sif_file.data_of(sif_file.read(Path(image)), name)
    if not text:
        fix = f"Build it with this release; of an image of an engine, {name} is beside its record."
        raise UsageError.of(f"has no {name}", where=image, fix=fix)
    return text.decode(errors="replace").rstrip()


def _facts(arguments: Namespace) -> ImageFacts:
    """Inspect the image, with progress on standard error so that JSON stays JSON."""
    progress = QuietProgress() if arguments.json else TextProgress(lambda: Console(stderr=True))
    processor = arguments.processor or platform.machine()
    return facts_of(arguments.image, processor=processor, progress=progress)


def lines(facts: ImageFacts) -> Iterator[str]:
    """Yield one fact on a line, its name first."""
    for name, value in _rows(facts):
        if value:
            yield f"{name:<11}  {escape_name(value)}"
    yield f"{'as a base':<11}  {escape_name(_as_base(facts))}"


def _rows(facts: ImageFacts) -> list[tuple[str, str]]:
    by = {item.path: f" (by {item.set_by})" if item.set_by else "" for item in facts.plugins}
    unread = facts.unread_environment
    return [
        ("image", facts.source),
        ("digest", facts.digest),
        ("size", f"{facts.bytes / 1e6:.1f} MB"),
        ("processor", facts.processor),
        ("system", " ".join(filter(None, (facts.os, facts.os_version))) or "not said"),
        ("libc", facts.libc),
        ("user", facts.user),
        *(("python", _python(item)) for item in facts.pythons),
        ("cuda", facts.cuda),
        ("rocm", facts.rocm),
        *(("mpi", item) for item in facts.mpi),
        *(("plugin", f"{path}{how}") for path, how in by.items()),
        *(("env", _short(f"{name}={value}")) for name, value in facts.environment.items()),
        *(("env", f"{name}: only a shell can read its value") for name in unread),
        *(("label", _short(f"{name}={value}")) for name, value in sorted(facts.labels.items())),
    ]


def _python(python: Python) -> str:
    torch = python.torch
    has = ""
    if torch is not None:
        of = [
            f"CUDA {torch.cuda}" if torch.cuda else "",
            f"ROCm {torch.rocm}" if torch.rocm else "",
        ]
        has = f", torch {torch.version} ({' '.join(filter(None, of)) or 'for CPUs'})"
    return f"{python.path} {python.version} ({python.kind}){has}"


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


def _as_base(facts: ImageFacts) -> str:
    """Return what a plan that starts from the image does."""
    why = "; ".join(
        problem.what for problem in adapt_base.problems_at_every_site(facts, facts.source)
    )
    used = adapt_base.preferred_python(facts)
    if why or used is None:
        return f"refused: {why}"
    uses = f"a plan on it uses {used.path} {used.version}".rstrip()
    if used.torch is None:
        return f"{uses}, and installs torch"
    return f"{uses} and its torch {used.torch.version}"
