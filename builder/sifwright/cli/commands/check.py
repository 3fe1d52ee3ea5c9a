"""The command `check`: what this machine lacks for building an image."""

from argparse import ArgumentParser, Namespace

from sifwright.build import forecast
from sifwright.build.checks import disk_space, host_checks, preflight, site_policy
from sifwright.build.request import host_settings
from sifwright.build.request.base_image import base_image_of
from sifwright.catalog.project_folder import project_folder
from sifwright.cli import arguments as shared
from sifwright.cli import emulation
from sifwright.cli.context import output_of, resolve_plan
from sifwright.host.engines import apptainer
from sifwright.plan.lint import run as lint
from sifwright.system import ids
from sifwright.system.progress import Progress
from sifwright.system.terminal import print_line

HELP = "say what this machine lacks for building an image"
GROUP = "build"


def add_arguments(parser: ArgumentParser) -> None:
    shared.add_site_and_image(parser)
    shared.add_set(parser)
    shared.add_output_folder(parser)


def run(arguments: Namespace) -> None:
    """Print what a build would use; raises all that is missing."""
    plan = resolve_plan(arguments)
    emulation.start(plan, Progress(), compilers=True)
    for line in site_policy.line(plan.site):
        print_line(line)
    lint.refuse_image(plan, project_folder(arguments.project) / "defs")
    folder = output_of(arguments, plan).folder
    future = forecast.estimate_cold_build(plan, folder)
    base = base_image_of(plan)
    engine = preflight.check(apptainer.find(), plan, base, host_settings.values(base), future)
    print_line(f"ready: {engine.program} {engine.version} can build image '{plan.image.name}'")
    if why := ids.why_one():
        print_line(f"builds with one uid and gid: {why}")
    if needs := disk_space.summary_line(future.needs, folder):
        print_line(needs)
    for name in host_checks.SQUASHFS_TOOLS:
        print_line(f"{name} {host_checks.program_version(name)}")
