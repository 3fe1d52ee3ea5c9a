"""The command `test`: the tests of all layers, in the image that was built."""

from argparse import ArgumentParser, Namespace

from sifwright.cli.options import arguments as shared
from sifwright.cli.options import emulation, matrix
from sifwright.cli.options.context import built, progress_of, resolve_plan
from sifwright.make_image.test_image.run_tests import rerun_tests

HELP = "run the tests of all layers in the SIF that was built"
GROUP = "build"


def add_arguments(parser: ArgumentParser) -> None:
    shared.add_site_and_image(parser)
    shared.add_output_folder(parser)
    shared.add_progress(parser)


def run(arguments: Namespace) -> None:
    """Run the tests; raises `TestError` if one fails."""
    arguments.settings = []
    matrix.read_name(arguments)
    plan = resolve_plan(arguments)
    emulation.start(plan, progress_of(arguments), compilers=True)
    rerun_tests(built(arguments, plan), progress_of(arguments))
