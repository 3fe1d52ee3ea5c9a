"""The command `check-comm`: the speed of collectives, and the network that they use."""

from argparse import ArgumentParser, Namespace

from sifwright.cli import arguments as shared
from sifwright.cli.context import built, resolve_plan
from sifwright.errors import TestError
from sifwright.launch.comm import check, results, start
from sifwright.system.terminal import console, print_json, print_line, print_line_flushed

HELP = "time the collectives in the image, and prove its network"
GROUP = "run"


def add_arguments(parser: ArgumentParser) -> None:
    shared.add_site_and_image(parser)
    shared.add_output_folder(parser)
    add = parser.add_argument
    add("--nodes", type=int, default=0, help="nodes to use (all of the allocation)")
    add("--ranks-per-node", type=int, default=0, metavar="N", help="ranks per node (one per GPU)")
    add("--backend", default="", choices=("gloo", "mpi", "nccl"), help="default: nccl with GPUs")
    add("--min-size", default="1K", metavar="SIZE", help="smallest size in bytes, or K, M, G (1K)")
    add("--max-size", default="512M", metavar="SIZE", help="largest size (512M)")
    add("--launch", default="", metavar="COMMAND", help="start a rank per task with this instead")
    shared.add_json(parser)


def run(arguments: Namespace) -> None:
    """Measure, and print the result; raises `TestError` if the network is not the site's."""
    arguments.settings = []
    request, plan = check.request(arguments), resolve_plan(arguments)
    start.require_images(plan.site)
    output = built(arguments, plan)
    show = _ignore if arguments.json else print_line_flushed
    result = check.check_comm(plan.site, output, request, show)
    if arguments.json:
        print_json(result.document)
    else:
        _print(result)
    if problems := check.failures(result):
        raise TestError(*problems)


def _print(result: check.BenchmarkResult) -> None:
    console().print(results.summary(result.document))
    print_line(f"network: {result.verdict.state}: {result.verdict.text}")
    print_line(f"results: {' '.join(map(str, result.files))}")
    if not results.can_plot():
        print_line("no picture: matplotlib is not installed (pip install 'sifwright[plot]')")


def _ignore(_line: str) -> None: ...
