"""Leases of the entries that running builds use, so that `cache prune` leaves them alone."""

from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from sifwright.make_image.cache import claims
from sifwright.make_image.cache.claims import Entries
from sifwright.system import cache_folder, liveness
from sifwright.system.cache_folder import LEASES
from sifwright.system.liveness import HolderFile, ProcessIdentity

# Seconds of silence after which a build on another machine counts as gone. Longer than a claim's:
# a claim lost too early costs time, a lease lost too early an entry that is being read.
LIFETIME = 600.0


@contextmanager
def lease(store: Entries, keys: Iterable[str]) -> Iterator[str]:
    """Keep these entries from being pruned; to be entered before they are looked for.

    Yields the lease's token. A prune that is about to remove one of them has done so, or has seen
    us, when the body starts: it claims an entry before it looks at leases, we look at claims after
    we wrote ours. In a cache that can only be read, no lease is written.
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
    # Those with a dot are being written.
    paths = (path for path in (root / LEASES).iterdir() if not path.name.startswith("."))
    held = (seen for seen in map(liveness.read_holder, paths) if seen)
    return any(
        (seen.holder is None or key in seen.holder.keys) and not seen.is_stale(root, LIFETIME)
        for seen in held
    )


def find(root: Path, token: str) -> HolderFile | None:
    return liveness.read_holder(root / LEASES / token)


def remove_stale(root: Path) -> None:
    """Remove the leases of builds that were killed."""
    for path in (root / LEASES).iterdir():
        seen = liveness.read_holder(path)
        if seen is not None and seen.is_stale(root, LIFETIME):
            path.unlink(missing_ok=True)
