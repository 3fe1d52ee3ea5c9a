"""The environment definition file (EDF) of CSCS's Container Engine for a squashfs file.

The keys are those of eth-cscs/cscs-docs, docs/software/container-engine/edf.md.
"""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import tomli_w

from sifwright.catalog.model import Site
from sifwright.errors import Problem

# A variable of a path in a site's file; EDF files need the braces.
_VARIABLE = re.compile(r"\$([A-Za-z_]\w*)")
_FIX = "Deliver where the jobs run, or give --elsewhere."


def edf(site: Site, image: Path) -> str:
    """Return the file's text; mounts are the home directory and the binds of the site."""
    mounts = [_VARIABLE.sub(r"${\1}", mount) for mount in _mounts(site)]
    document: dict[str, Any] = {"image": str(image), "entrypoint": False, "mounts": mounts}
    if site.fabric == "slingshot":
        # The hook brings libfabric of the host and its devices.
        document["annotations"] = {"com": {"hooks": {"cxi": {"enabled": "true"}}}}
    return tomli_w.dumps(document)


def absent_mounts(site: Site, environment: Mapping[str, str]) -> Iterator[Problem]:
    """Yield each mount without its folder, or without the variable in its path."""
    for mount in _mounts(site):
        source = mount.partition(":")[0]
        unset = [name for name in _VARIABLE.findall(source) if not environment.get(name)]
        if unset:
            message = f"the EDF file would mount {source}, but {unset[0]} is not set"
        elif Path(_VARIABLE.sub(lambda match: environment[match[1]], source)).exists():
            continue
        else:
            message = f"the EDF file would mount {source}, which is not there"
        yield Problem(where=f"site '{site.name}'", what=message, fix=_FIX)


def _mounts(site: Site) -> list[str]:
    """Return the folders; a cache inside a bind needs no mount, and may not be there yet."""
    inside = any(site.cache.startswith(f"{bind}/") for bind in site.binds)
    folders = ["$HOME", *([site.cache] if site.cache and not inside else []), *site.binds]
    return [folder if ":" in folder else f"{folder}:{folder}" for folder in folders]
