"""The command `test`: the tests of all layers, in an image or an installation."""

from argparse import Namespace

from sifwright.cli.options import arguments as shared
from sifwright.cli.options import emulation, matrix
from sifwright.cli.options.context import built, progress_of, resolve_plan
from sifwright.errors import UsageError
from sifwright.install.native.native_folder import native_folder
from sifwright.install.native.rerun_tests import rerun_tests as rerun_on_host
from sifwright.make_image.test_image.run_tests import rerun_tests

HELP = "run the tests of all layers in an image or an installation"
GROUP = "build"
ARGUMENTS = (
    shared.OPTIONAL_SITE,
    shared.IMAGE,
    shared.text("--prefix", "DIR", "a native installation, in place of SITE and IMAGE"),
    shared.OUTPUT_FOLDER,
    shared.PROGRESS,
    shared.defaults(settings=[]),
)


def run(arguments: Namespace) -> None:
    """Run the tests; raises `TestError` if one fails."""
    if bool(arguments.site) == bool(arguments.prefix):
        fix = "sifwright test SITE [IMAGE], or sifwright test --prefix DIR"
        raise UsageError.of("name a site or a prefix", fix=fix)
    if arguments.prefix:
        rerun_on_host(native_folder(arguments.prefix), progress_of(arguments))
        return
    matrix.read_name(arguments)
    plan = resolve_plan(arguments)
    emulation.start(plan, progress_of(arguments), compilers=True)
    rerun_tests(built(arguments, plan), progress_of(arguments))
