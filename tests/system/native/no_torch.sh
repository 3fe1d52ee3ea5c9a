#!/bin/bash
# A package torch that says which libcuda.so.1 the loader would take, and ends.
set -euo pipefail

packages=$(python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
mkdir "$packages/torch"
cat >"$packages/torch/__init__.py" <<'PYTHON'
import os
import pathlib
import sys

folders = os.environ.get("LD_LIBRARY_PATH", "").split(":")
found = [pathlib.Path(folder, "libcuda.so.1") for folder in folders if folder]
sys.exit(f"the loader takes {next((x.resolve() for x in found if x.exists()), None)}")
PYTHON
