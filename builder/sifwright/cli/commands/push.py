"""The command `push`: put a SIF into a registry, partition by partition."""

import platform
from argparse import Namespace
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from sifwright.cli.options import arguments as shared
from sifwright.cli.options.output import print_lines
from sifwright.errors import SifwrightError
from sifwright.images.sif import sif_file
from sifwright.images.sif.format import DataType
from sifwright.images.sources.inspect_image import facts_of
from sifwright.images.transfer import sif_registry
from sifwright.make_image.attest.redistribution import restricted
from sifwright.system.progress import QuietProgress
from sifwright.system.terminal import note, print_line

HELP = "push a SIF to a registry: only the partitions that it lacks"
GROUP = "install"
ARGUMENTS = (
    shared.argument("sif", metavar="SIF", help="an image"),
    shared.argument("target", metavar="oras://REGISTRY/NAME:TAG", help="its name in the registry"),
    shared.switch("--whole", "push it as one blob, too, which 'apptainer pull oras://' can read"),
    shared.NO_HTTPS,
)


def run(arguments: Namespace) -> None:
    """Push the image, and print how many bytes that took."""
    sif = Path(arguments.sif)
    target = sif_registry.reference(arguments.target, http=arguments.no_https)
    print_lines(_licences(sif), note)
    moved = sif_registry.push(sif, target, whole=arguments.whole, say=note)
    print_line(
        f"pushed: {arguments.target} ({moved.bytes} bytes sent, {moved.new} of {moved.blobs} blobs)"
    )
    if not arguments.whole:
        print_line(f"pull it: sifwright pull {arguments.target}; --whole is for 'apptainer pull'")


def _licences(sif: Path) -> Iterator[str]:
    """Yield notes about licences, by the SBOM of the image, else by its files."""
    sbom = sif_file.data_of(sif_file.read(sif), DataType.SBOM)
    with suppress(ValueError):
        if sbom and (names := restricted(sbom)):
            yield (
                f"licences restrict the distribution of {len(names)} packages, such as {names[0]}:"
                " push only where all readers may have them"
            )
            return
    try:
        facts = facts_of(str(sif), processor=platform.machine(), progress=QuietProgress())
    except SifwrightError:
        return
    torches = [python.torch for python in facts.pythons if python.torch]
    if facts.cuda or any(torch.cuda for torch in torches):
        yield (
            "it holds NVIDIA's CUDA, and its licence restricts distribution"
            " (docs.nvidia.com/cuda/eula): push only where all readers may have it"
        )
