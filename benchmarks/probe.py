"""Run by planning.py in a fresh interpreter: nothing is loaded, compiled or cached before."""  # noqa: INP001  # run.py's folder is on sys.path

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import jsonschema  # noqa: F401  # sifwright imports it when first needed; the goal is "after import"
from facts import megabytes_peak

from sifwright.catalog import load
from sifwright.errors import PlanError
from sifwright.plan.resolve import resolve
from sifwright.render.definition import definition

if TYPE_CHECKING:
    from sifwright.catalog.model import Catalog

MACHINE = {"debian-mirror": "http://mirror.invalid/debian"}


def main(defs: Path, project: Path, prefix: str = "") -> None:
    """Load, then render every site x image whose names have the prefix; print what it took."""
    start = time.perf_counter()
    catalog = load.load_catalog(defs, project)
    loaded = time.perf_counter()
    sizes = [
        size for site, image in _pairs(catalog, prefix) if (size := _rendered(catalog, site, image))
    ]
    end = time.perf_counter()
    facts = {"pairs": len(sizes), "bytes": sum(sizes), "peak_mb": megabytes_peak()}
    times = {"load": loaded - start, "render": end - loaded, "seconds": end - start}
    print(json.dumps(facts | times))


def _pairs(catalog: Catalog, prefix: str) -> list[tuple[str, str]]:
    sites = [name for name in catalog.sites if name.startswith(prefix)]
    images = [name for name in catalog.images if name.startswith(prefix)]
    return [(site, image) for site in sites for image in images]


def _rendered(catalog: Catalog, site: str, image: str) -> int:
    """Return the length of the definition file; 0 for an image that is not for this site."""
    try:
        return len(definition(resolve(catalog, site, image, []), MACHINE))
    except PlanError:
        return 0


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), *sys.argv[3:])
