"""The tests of layers, as Apptainer runs them in a SIF."""

from collections.abc import Sequence
from pathlib import Path

from sifwright.host.engines import apptainer
from sifwright.host.engines.apptainer import Apptainer
from sifwright.make_image.resolve_request.output_parser import OutputParser
from sifwright.system import processes


def run_in_sif(
    engine: Apptainer,
    sif: Path,
    layers: Sequence[str] | None,
    log: Path,
    watcher: OutputParser,
) -> int:
    """Run the tests of these layers, or of all, in a SIF; return the exit status."""
    command = engine.test_command(sif, layers)
    return processes.stream(command, log=log, on_line=watcher, env=apptainer.environment())
