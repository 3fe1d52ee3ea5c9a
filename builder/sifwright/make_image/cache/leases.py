"""Leases of the entries that running builds use, so that `cache prune` leaves them alone."""

from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from sifwright.make_image.cache import claims
from sifwright.make_image.cache.manifest import Entries
from sifwright.system import cache_folder, liveness
from sifwright.system.cache_folder import LEASES
from sifwright.system.liveness import ProcessIdentity

# Seconds of silence after which a build on another machine counts as gone. It is longer than a
# claim's. A claim lost too early costs time; a lease lost too early costs an entry in use.
LIFETIME = 600.0


@contextmanager
def lease(store: Entries, keys: Iterable[str]) -> Iterator[str]:
    """Keep these entries from being pruned; enter it before you look the entries up.

    Yields the lease's token. A prune claims an entry before it reads the leases. A lease is written
    before the claims are read. So when the body starts, a prune has removed the entry or has seen
    the lease. In a read-only cache, no lease is written.
    """
    own = ProcessIdentity.here(keys=tuple(keys))
    if store.is_read_only:
        yield own.token
        return
    temporary, path = (store.root / LEASES / name for name in (f".{own.token}", own.token))
    with ExitStack() as stack:
        with cache_folder.translate_errors(store.root):
            stack.enter_context(liveness.hold(temporary, own))
            temporary.rename(path)
            stack.callback(path.unlink, missing_ok=True)
            claims.wait_for_prunes(store.root, own.keys)
        yield own.token


def is_leased(root: Path, key: str) -> bool:
    """Return whether a running build uses the entry; True if a lease cannot be read."""
    # Names with a dot are files that are being written.
    paths = (path for path in (root / LEASES).iterdir() if not path.name.startswith("."))
    held = (seen for seen in map(liveness.read_holder, paths) if seen)
    return any(
        (seen.holder is None or key in seen.holder.keys) and not seen.is_stale(root, LIFETIME)
        for seen in held
    )


def remove_stale(root: Path) -> None:
    """Remove the leases of builds that were killed."""
    for path in (root / LEASES).iterdir():
        seen = liveness.read_holder(path)
        if seen is not None and seen.is_stale(root, LIFETIME):
            path.unlink(missing_ok=True)
