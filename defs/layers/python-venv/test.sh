#!/bin/bash
# `python` is the virtual environment's, its packages fit together, their bytecode is used.
set -euo pipefail

# On a host, another Python may have taken the place of the one that the environment links to.
if [[ -v HOST_PYTHON_VERSION ]]; then
  version=$(python -c 'import sys; print("%d.%d" % sys.version_info[:2])')
  if [[ $version != "$HOST_PYTHON_VERSION" ]]; then
    echo "$(command -v python) is Python $version, not $HOST_PYTHON_VERSION" >&2
    exit 1
  fi
fi

python - <<'PYTHON'
import importlib.util
import os
import pathlib
import sys
import sysconfig

venv = os.environ["VIRTUAL_ENV"]
if sys.prefix != venv:
    sys.exit(f"python is {sys.executable}, not the one of {venv}")

# A module whose bytecode is missing or stale is compiled at every start: import is twice as slow.
# That of what only installs is not kept.
installers = {"pip", "pkg_resources", "setuptools", "wheel"}
site = pathlib.Path(sysconfig.get_path("purelib"))
stale = []
for source in site.rglob("*.py"):
    if source.relative_to(site).parts[0] in installers:
        continue
    cached = pathlib.Path(importlib.util.cache_from_source(str(source)))
    if not cached.exists():
        stale.append(source)
        continue
    header = cached.read_bytes()[:16]
    mtime, size = (int.from_bytes(header[i : i + 4], "little") for i in (8, 12))
    status = source.stat()
    if header[:4] != importlib.util.MAGIC_NUMBER or (mtime, size) != (
        int(status.st_mtime) & 0xFFFFFFFF,
        status.st_size & 0xFFFFFFFF,
    ):
        stale.append(source)
# Some packages carry templates and files for other Pythons that do not compile.
if len(stale) > 20:
    sys.exit(f"{len(stale)} modules have no valid bytecode, for example {stale[0]}")
PYTHON

python -m pip check
$WITH_CONDA
[[ $(command -v python) == "$VIRTUAL_ENV/bin/python" ]]
