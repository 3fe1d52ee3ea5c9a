"""The claim on an installation's folder: one process at a time installs or uninstalls there."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from sifwright.errors import MachineError
from sifwright.install.native.native_folder import NativeFolder
from sifwright.make_image.cache import claims
from sifwright.system import liveness
from sifwright.system.tempdirs import NO_ROOM

_CLAIM = "install"


@contextmanager
def claimed(
    folder: NativeFolder, new: Iterable[str] = (), *, on_full_disk: bool = False
) -> Iterator[list[str]]:
    """Hold the folder inside; raises `MachineError` if another process does.

    Yields the paths of the root and of folders above it that are made for the claim. If it has no
    record at the end, remove these and those in `new`, where they are empty.
    If `on_full_disk`, no claim is needed where none can be written and no other process has one.
    A process that comes later is not kept out then.
    """
    missing = [str(path) for path in (folder.root, *folder.root.parents) if not path.exists()]
    try:
        with ExitStack() as stack:
            try:
                _claim(folder, stack)
            except OSError as error:
                is_needless = on_full_disk and error.errno in NO_ROOM
                if not is_needless or liveness.read_holder(folder.claims / _CLAIM):
                    raise
            yield missing
    finally:
        if not folder.record.exists():
            _remove_empty(folder, (*new, *missing))


def _claim(folder: NativeFolder, stack: ExitStack) -> None:
    """Claim the folder until the stack ends."""
    fix = "Choose another --prefix."
    try:
        folder.claims.mkdir(mode=0o755, parents=True, exist_ok=True)
        is_ours = stack.enter_context(claims.try_claim(folder.private, _CLAIM, fix=fix))
    except FileNotFoundError:  # another process has just removed the folder of claims
        is_ours = False
    if not is_ours:
        message = "another process installs or uninstalls there"
        raise MachineError.of(message, where=str(folder.root), fix="Wait for its end.")


def _remove_empty(folder: NativeFolder, new: Iterable[str]) -> None:
    """Remove the folders that are empty; one that another process has claimed stays."""
    with suppress(OSError):
        folder.claims.rmdir()
        folder.clock.unlink(missing_ok=True)
    for path in (folder.private, *map(Path, new)):
        with suppress(OSError):
            path.rmdir()
