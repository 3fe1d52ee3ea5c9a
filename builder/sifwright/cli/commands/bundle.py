"""The command `bundle`: all that a locked build downloads, in one file."""

from argparse import Namespace
from pathlib import Path

from sifwright.catalog.project_folder import project_folder
from sifwright.cli.options import arguments as shared
from sifwright.cli.options.context import output_of, progress_of, resolve_plan
from sifwright.errors import UsageError
from sifwright.make_image.resolve_request.build_request import BuildOptions, request_build

HELP = "write a lock and its files into one file for offline builds"
GROUP = "build"
ARGUMENTS = (
    *shared.PLAN,
    shared.argument("-o", dest="target", required=True, metavar="FILE", help="the new bundle"),
    shared.PROGRESS,
    shared.text("--lock", "FILE", "the lock; default: locks/pylock.SITE-IMAGE.toml"),
    shared.argument("--audit", metavar="DIR", help="put the data of 'sifwright audit' in it, too"),
    shared.defaults(output="build"),
)


def run(arguments: Namespace) -> None:
    """Write the bundle of a lock."""
    from sifwright.make_image.lock.locked_build import default_path, write_bundle  # noqa: PLC0415
    from sifwright.make_image.lock_format import lock_file  # noqa: PLC0415  # takes 0.2 s

    arguments.locked = arguments.lock
    plan, progress = resolve_plan(arguments), progress_of(arguments)
    audit = Path(arguments.audit) if arguments.audit else None
    if audit and not audit.is_dir():
        raise UsageError.of("there is no such folder", where=str(audit))
    file = Path(
        arguments.lock
        or default_path(project_folder(arguments.project), plan.site.name, plan.image.name)
    )
    lock = lock_file.read(file)
    options = BuildOptions(layout=plan.site.layout, lock=lock)
    request = request_build(plan, output_of(arguments, plan), options)
    target = Path(arguments.target)
    write_bundle(request, lock, target, audit)
    progress.note(f"bundled: {target} ({target.stat().st_size / 1e6:.0f} MB)")
