#!/bin/bash
# `python` is the virtual environment's, its packages fit together, their bytecode is used.
set -euo pipefail

python - <<'PYTHON'
import importlib.util
import pathlib
import sys
import sysconfig

if sys.prefix != "/opt/venv":
    sys.exit(f"python is {sys.executable}, not the one of /opt/venv")

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
[[ $(command -v python) == /opt/venv/bin/python ]]
