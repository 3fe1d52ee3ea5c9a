"""The command `check`: what this machine lacks for building an image."""

from argparse import Namespace

from sifwright.catalog.project_folder import project_folder
from sifwright.cli.options import arguments as shared
from sifwright.cli.options import emulation, submission
from sifwright.cli.options.context import output_of, resolve_plan
from sifwright.cli.options.output import print_lines
from sifwright.errors import SifwrightError
from sifwright.make_image.check_machine import disk_space, host_checks, limit_checks, preflight
from sifwright.plan import site_policy
from sifwright.plan.lint import apply_rules as lint
from sifwright.plan.model import Plan
from sifwright.system import ids
from sifwright.system.progress import Progress
from sifwright.system.terminal import print_line

HELP = "say what this machine lacks for building an image"
GROUP = "build"
ARGUMENTS = (
    *shared.PLAN,
    shared.OUTPUT_FOLDER,
)


def run(arguments: Namespace) -> None:
    """Print what a build would use; raises all that is missing."""
    limit_checks.require()
    plan = resolve_plan(arguments)
    emulation.start(plan, Progress(), compilers=True)
    print_lines((*site_policy.line(plan.site), *submission.way_out(arguments, plan.site)))
    build = preflight.cold_build(plan, output_of(arguments, plan).folder)
    preflight.require(build, print_line, _lint_refusal(arguments, plan))
    if engine := build.engine:
        print_line(f"ready: {engine.program} {engine.version} can build image '{plan.image.name}'")
    if why := ids.why_one():
        print_line(f"builds with one uid and gid: {why}")
    if build.estimate and (
        needs := disk_space.summary_line(build.estimate.needs, build.estimate.output)
    ):
        print_line(needs)
    for name in host_checks.SQUASHFS_TOOLS:
        print_line(f"{name} {host_checks.program_version(name)}")


def _lint_refusal(arguments: Namespace, plan: Plan) -> SifwrightError | None:
    try:
        lint.refuse_image(plan, project_folder(arguments.project) / "defs")
    except SifwrightError as error:
        return error
    return None
