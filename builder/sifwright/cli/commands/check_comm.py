"""The command `check-comm`: the speed of collectives, and the network that they use."""

from argparse import Namespace
from pathlib import Path

from sifwright.catalog.model import Site
from sifwright.cli.options import arguments as shared
from sifwright.cli.options import matrix
from sifwright.cli.options.context import built, load, resolve_plan
from sifwright.errors import TestError
from sifwright.install.native.native_folder import refuse_moved_environment
from sifwright.launch.comm import check, results, start
from sifwright.make_image.resolve_request.image_folder import ImageFolder
from sifwright.plan.resolve import get_or_suggest
from sifwright.system.terminal import console, note, print_json, print_line, print_line_flushed

HELP = "time the collectives in the image, and prove its network"
GROUP = "run"

_QUICK = 16 << 20
ARGUMENTS = (
    shared.SITE,
    shared.IMAGE,
    shared.OUTPUT_FOLDER,
    shared.argument("--nodes", type=int, default=0, help="nodes to use (all of the allocation)"),
    shared.argument(
        "--ranks-per-node", type=int, default=0, metavar="N", help="ranks per node (one per GPU)"
    ),
    shared.argument(
        "--backend",
        default="",
        choices=("gloo", "mpi", "nccl"),
        help="backend of torch; default: nccl with GPUs",
    ),
    shared.argument(
        "--min-size", default="1K", metavar="SIZE", help="smallest size in bytes, or K, M, G (1K)"
    ),
    shared.argument("--max-size", default="512M", metavar="SIZE", help="largest size (512M)"),
    shared.text("--launch", "COMMAND", "launcher and options, instead of the site's"),
    shared.text("--environment", "DIR", "run on the host, in this environment"),
    shared.JSON,
    shared.defaults(settings=[]),
)


def run(arguments: Namespace) -> None:
    """Measure, and print the result; raises `TestError` if the network is not the site's."""
    matrix.read_name(arguments)
    request = check.request(arguments)
    site, output = _on_host(arguments) if request.environment else _in_image(arguments)
    is_slow = request.backend == "gloo" or site.vendor == "cpu"
    if is_slow and request.max_size > _QUICK:
        note("this takes about five minutes on CPUs; --max-size 16M takes a minute")
    result = check.check_comm(
        site, output, request, (lambda _: None) if arguments.json else print_line_flushed
    )
    if arguments.json:
        print_json(result.document)
    else:
        _print(result)
    if problems := check.failures(result):
        raise TestError(*problems)


def _in_image(arguments: Namespace) -> tuple[Site, ImageFolder]:
    plan = resolve_plan(arguments)
    start.require_images(plan.site)
    return plan.site, built(arguments, plan)


def _on_host(arguments: Namespace) -> tuple[Site, ImageFolder]:
    """Return the folder of the results beside those of images; the environment is no image."""
    start.require_environment(arguments.environment)
    refuse_moved_environment(Path(arguments.environment))
    site = get_or_suggest(load(arguments).sites, arguments.site, "site")
    folder = Path(arguments.output, site.name, "host")
    folder.mkdir(parents=True, exist_ok=True)
    return site, ImageFolder(folder=folder, name="host")


def _print(result: check.BenchmarkResult) -> None:
    console().print(results.summary(result.document))
    print_line(f"network: {result.verdict.state}: {result.verdict.text}")
    print_line(f"results: {' '.join(map(str, result.files))}")
    if not results.can_plot():
        print_line("no picture: matplotlib is not installed (pip install 'sifwright[plot]')")
