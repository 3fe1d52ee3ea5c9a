"""The command `shell`: look around in the state before a layer."""

import sys
from argparse import Namespace

from sifwright.cli.options import arguments as shared
from sifwright.cli.options import emulation
from sifwright.cli.options.context import output_of, progress_of, resolve_plan
from sifwright.errors import BuildError
from sifwright.make_image.open_shell import open_shell
from sifwright.make_image.resolve_request.build_request import BuildOptions, request_build
from sifwright.make_image.resolve_request.secrets import read_secrets

HELP = "open a shell in the state before a layer"
GROUP = "build"
ARGUMENTS = (
    *shared.PLAN,
    shared.OUTPUT_FOLDER,
    shared.PROGRESS,
    shared.SECRET,
    shared.argument(
        "--before", required=True, metavar="LAYER", help="open the shell before this layer is built"
    ),
)


def run(arguments: Namespace) -> None:
    """Run the steps before the layer, then the shell; raises `BuildError` if a script fails."""
    plan = resolve_plan(arguments)
    emulation.start(plan, progress_of(arguments), compilers=True)
    output = output_of(arguments, plan)
    options = BuildOptions(
        layout=plan.site.layout,
        before=arguments.before,
        secrets=read_secrets(arguments.secret),
    )
    status = open_shell(request_build(plan, output, options), progress_of(arguments))
    # The exit status of an interactive shell is that of its last command, which is no error.
    if status and not sys.stdin.isatty():
        fix = (
            "This is the exit status of the last command read from standard input;"
            " see its output above."
        )
        raise BuildError.of(f"the shell ended with exit status {status}", fix=fix)
