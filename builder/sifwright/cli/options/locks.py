"""The options that name a lock and its files, for the commands that build from them."""

from argparse import Namespace
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

from sifwright.catalog.project_folder import project_folder
from sifwright.cli.options import arguments as shared
from sifwright.errors import UsageError
from sifwright.make_image.resolve_request.build_request import BuildRequest
from sifwright.system.progress import Progress

if TYPE_CHECKING:
    from sifwright.make_image.lock_format.lock_file import Lock

ARGUMENTS = (
    shared.argument(
        "--locked",
        nargs="?",
        const="",
        metavar="FILE",
        help="build exactly what a lock names, or say the difference;"
        " default: locks/pylock.SITE-IMAGE.toml",
    ),
    shared.argument(
        "--bundle",
        metavar="FILE",
        help="take lock and files from a bundle that 'sifwright bundle' has written",
    ),
    shared.switch(
        "--offline", "with --bundle or --locked: use no network for the files of the lock"
    ),
)


def lock_of(arguments: Namespace, site: str, image: str) -> "Lock | None":
    """Return the lock that the arguments name; the command `extend` has none."""
    named, bundled = getattr(arguments, "locked", None), getattr(arguments, "bundle", None)
    if named is None and not bundled:
        if getattr(arguments, "offline", False):
            fix = "Name a bundle with --bundle, or a lock with --locked."
            raise UsageError.of("only a lock says what is needed", where="--offline", fix=fix)
        return None
    from sifwright.make_image.lock import locked_build  # noqa: PLC0415  # takes 0.2 s to load

    default = locked_build.default_path(project_folder(arguments.project), site, image)
    file = None if named is None else Path(named) if named else default
    return locked_build.lock_of(Path(bundled) if bundled else None, file)


def follows_tag(arguments: Namespace) -> bool:
    """Return whether the base image is to be what its tag names now: lock --update [base]."""
    return getattr(arguments, "update", None) in ([], ["base"])


def base_facts(arguments: Namespace, site: str, image: str) -> Mapping[str, str]:
    """Return what the named lock says of the base image, which then is not inspected again.

    The image may be on no network, and its tag may name another one now.
    """
    lock = lock_of(arguments, site, image)
    return lock.facts if lock else {}


def with_files(
    request: BuildRequest, arguments: Namespace, progress: Progress
) -> AbstractContextManager[BuildRequest]:
    """Return the request, with the files of its lock if it has one."""
    if request.options.lock is None:
        return nullcontext(request)
    from sifwright.make_image.lock.locked_build import locked_request  # noqa: PLC0415  # as above

    bundled = Path(arguments.bundle) if arguments.bundle else None
    return locked_request(request, bundled, progress, offline=arguments.offline)
