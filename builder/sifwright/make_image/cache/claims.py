"""Claims on entries: one build makes an entry while the others wait.

Claims save work; the rename of an entry keeps the cache right. Two builds may make one key at the
same time. So a claim may be lost or taken over at any moment.
"""

import os
import secrets
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from sifwright.errors import MachineError
from sifwright.make_image.cache.manifest import Entries
from sifwright.system import cache_folder, liveness
from sifwright.system.cache_folder import CLAIMS
from sifwright.system.files import NO_LINKS
from sifwright.system.liveness import ProcessIdentity

# Seconds of silence after which a holder on another machine counts as gone: twelve missed beats.
LIFETIME = 60.0
_SHORTEST, _LONGEST = 0.05, 0.5
_OTHER_CACHE = "Choose another folder with SIFWRIGHT_CACHE."


@contextmanager
def claim(store: Entries, key: str, *, on_wait: Callable[[str], None]) -> Iterator[bool]:
    """Yield True if we are to make the entry, False once it is there.

    While another build makes it, wait; `on_wait` is called once with its owner. If that build
    dies, take over: within a second if it was on this machine, after `LIFETIME` otherwise.
    """
    since, is_told = time.monotonic(), False
    while store.peek(key) is None:
        with ExitStack() as stack:
            with cache_folder.translate_errors(store.root):
                ours = stack.enter_context(try_claim(store.root, key))
            if ours:
                # Look again: the last holder may have finished since the look above.
                yield store.peek(key) is None
                return
        with cache_folder.translate_errors(store.root):
            seen = liveness.read_holder(store.root / CLAIMS / key)
        if seen and not is_told:
            on_wait(str(seen.holder or "another build"))
            is_told = True
        # In proportion: a short step gets a tenth longer, a long one is seldom asked for.
        time.sleep(min(max((time.monotonic() - since) / 10, _SHORTEST), _LONGEST))
    yield False


@contextmanager
def try_claim(
    root: Path, key: str, *, prunes: bool = False, fix: str = _OTHER_CACHE
) -> Iterator[bool]:
    """Hold the claim inside; yields False, at once, if another process has it.

    `fix` says how to choose another folder, if the file system of `root` has no hard links.
    """
    path = root / CLAIMS / key
    if not _is_free(root, path):
        yield False
        return
    own = ProcessIdentity.here(prunes=prunes)
    # Under a name of its own first, so that nobody ever reads half of it.
    with liveness.hold(path.with_name(f".{own.token}"), own):
        ours = _link(path.with_name(f".{own.token}"), path, fix)
        try:
            yield ours
        finally:
            # The work is done: a claim that cannot be removed now ends with this process.
            with suppress(OSError):
                _take_away(path, own.encoded())


def is_claimed(root: Path, key: str) -> bool:
    """Return whether a build makes the entry, or a prune removes it."""
    return not _is_free(root, root / CLAIMS / key)


def remove_stale(root: Path) -> None:
    """Remove stale claims, and files of claims that killed processes were making."""
    for path in (root / CLAIMS).iterdir():
        _is_free(root, path)


def wait_for_prunes(root: Path, keys: Collection[str]) -> None:
    """Wait until nobody is about to remove one of these entries."""
    for path in (root / CLAIMS / key for key in keys):
        while (seen := liveness.read_holder(path)) and seen.holder and seen.holder.prunes:
            if _is_free(root, path):
                break
            time.sleep(_SHORTEST)


def _is_free(root: Path, path: Path) -> bool:
    """Return whether the claim is free; remove a stale one."""
    seen = liveness.read_holder(path)
    if seen is None:
        return True
    if not seen.is_stale(root, LIFETIME):
        return False
    _take_away(path, seen.content)
    return True


def _link(temporary: Path, path: Path, fix: str) -> bool:
    """Give our file the claim's name, if it is free; one step also on NFS, see open(2), O_EXCL."""
    try:
        os.link(temporary, path)
    except FileExistsError:
        pass
    except OSError as error:
        if error.errno not in NO_LINKS:
            raise
        message = "it is on a file system without hard links"
        raise MachineError.of(message, where=str(path.parent), fix=fix) from error
    # Not by the answer: NFS may repeat a request that was carried out, and report that it failed.
    return temporary.stat().st_nlink > 1


def _take_away(path: Path, content: bytes) -> None:
    """Remove the claim if it still has this content.

    The second look is under another name, where no other build can exchange the claim. The first
    look avoids most renames: during a rename, another build may claim the key.
    """
    seen = liveness.read_holder(path)
    if seen is None or seen.content != content:
        return
    aside = path.with_name(f".{secrets.token_hex(8)}")
    # Another build may rename the claim, or make a new one, at the same time.
    with suppress(FileNotFoundError, FileExistsError):
        path.rename(aside)
        holder = liveness.read_holder(aside)
        if holder is None or holder.content != content:
            os.link(aside, path)
    aside.unlink(missing_ok=True)
