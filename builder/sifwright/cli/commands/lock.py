"""The command `lock`: name all that an image is built from in one file."""

from argparse import Namespace
from dataclasses import replace
from pathlib import Path

from sifwright.catalog.project_folder import project_folder
from sifwright.cli.options import arguments as shared
from sifwright.cli.options.context import load, output_of, progress_of
from sifwright.cli.options.locks import follows_tag
from sifwright.cli.options.output import print_lines
from sifwright.make_image.resolve_request.build_request import BuildOptions, request_build
from sifwright.make_image.resolve_request.secrets import read_secrets
from sifwright.plan.base_request import inspected_facts
from sifwright.plan.resolve import resolve

HELP = "write the lock of an image: every package with its sha256"
GROUP = "build"
ARGUMENTS = (
    *shared.PLAN,
    shared.OUTPUT_FOLDER,
    shared.PROGRESS,
    shared.SECRET,
    shared.text("--file", "FILE", "the lock; default: locks/pylock.SITE-IMAGE.toml"),
    shared.argument(
        "--update",
        nargs="*",
        metavar="WHAT",
        help="take today's base (the image that its tag names), debian, python, or"
        " names of packages; default: everything",
    ),
)


def run(arguments: Namespace) -> None:
    """Write the lock, and print how it differs from the one before."""
    from sifwright.make_image.check_machine.lockable_base import refuse_rpm_updates  # noqa: PLC0415
    from sifwright.make_image.lock import compare_locks  # noqa: PLC0415  # takes 0.2 s
    from sifwright.make_image.lock.locked_build import default_path  # noqa: PLC0415
    from sifwright.make_image.lock.update_lock import is_of_base, update_lock  # noqa: PLC0415
    from sifwright.make_image.lock_format import lock_file  # noqa: PLC0415  # takes 0.2 s
    from sifwright.make_image.make_lock import make_lock  # noqa: PLC0415

    # An update changes packages only: the base image and its contents stay.
    arguments.locked = arguments.file if arguments.update and not follows_tag(arguments) else None
    catalog, progress = load(arguments), progress_of(arguments)
    plan = resolve(catalog, arguments.site, arguments.image, arguments.settings)
    refuse_rpm_updates(plan)
    names = plan.site.name, plan.image.name
    path = Path(arguments.file or default_path(project_folder(arguments.project), *names))
    update = arguments.update
    old = lock_file.read(path) if update is not None or path.exists() else None
    if old and update and not is_of_base(old, update):
        lock = update_lock(old, plan, update)
    else:
        # Steps on another base have other keys, so they are run anyway.
        options = BuildOptions(
            layout=plan.site.layout,
            cached=update != [],
            follow_tag=update is not None,
            secrets=read_secrets(arguments.secret),
        )
        lock = make_lock(request_build(plan, output_of(arguments, plan), options), progress)
        lock = replace(lock, facts=inspected_facts(catalog, plan))
    lines = compare_locks.changes(old, lock) if old else []
    print_lines(lines)
    lock_file.write(lock, path)
    counts = f"{len(lock.debs)} Debian packages, {len(lock.wheels)} wheels"
    same = ", as before" if old and not lines else ""
    progress.note(f"locked: {path} ({counts}, {len(lock.sources)} sources{same})")
