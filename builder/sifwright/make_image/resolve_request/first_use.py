"""The digests of unpinned sources at their first use, kept beside the image and enforced.

No pin is invented. The first build records the digest of a source that could not be looked up.
Later builds compare it, until `sifwright pins` writes a pin or the user removes the entry.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from pathlib import Path

from sifwright.errors import BuildError
from sifwright.plan.source_digest import ARCHIVE, SourceDigest
from sifwright.system import small_file

FILE = "pins.json"


def read_first_use(folder: Path) -> dict[str, str]:
    """Return the record of builds into this folder; nothing if there was none.

    Raises `BuildError` if the record is there and cannot be read: it would not be enforced.
    """
    path = folder / FILE
    try:
        return {key: str(value) for key, value in small_file.read_json(path).items()}
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, AttributeError) as error:
        message = "the record of what sources were when they were first used cannot be read"
        message += f": {error.strerror}" if isinstance(error, OSError) else ""
        fix = "Mend it, or remove it to record them again."
        raise BuildError.of(message, where=str(path), fix=fix) from None


def text(record: Mapping[str, str], used: Iterable[SourceDigest]) -> str:
    """Return the record with new sources, one a line so that one can be taken out."""
    new = {source.key: source.digest for source in used if source.source != ARCHIVE}
    return json.dumps(dict(sorted({**record, **new}.items())), indent=1) + "\n"


def documents(used: Iterable[SourceDigest]) -> dict[str, list[dict[str, str]]]:
    """Return what a build used as the record has it: its sources, and the archives as they were."""
    sources = list(dict.fromkeys(used))
    return {
        "sources": [asdict(source) for source in sources if source.source != ARCHIVE],
        "archives": [
            {"layer": source.layer, "suite": source.ref, "date": source.digest}
            for source in sources
            if source.source == ARCHIVE
        ],
    }
