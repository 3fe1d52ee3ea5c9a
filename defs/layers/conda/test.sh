#!/bin/bash
# `python` is that of the environment, its packages fit together, and nothing comes from Anaconda's channel.
set -euo pipefail

python - <<'PYTHON'
import json
import os
import pathlib
import sys

environment = pathlib.Path(os.environ["CONDA_PREFIX"])
if sys.prefix != str(environment):
    sys.exit(f"python is {sys.executable}, not that of the environment 'pytorch'")
installed = f"{sys.version_info.major}.{sys.version_info.minor}"
if installed != os.environ["OPT_PYTHON"]:
    sys.exit(f"python is {installed}, not {os.environ['OPT_PYTHON']}")
for record in environment.parents[1].glob("**/conda-meta/*.json"):
    url = json.loads(record.read_text()).get("url", "")
    if "anaconda.com" in url or "/pkgs/main" in url:
        sys.exit(f"{record.name} came from Anaconda's own channel, which is not free for all: {url}")
PYTHON

python -m pip check
# Activation files read unset variables and rely on failing commands.
set +eu
$WITH_CONDA
set -eu
[[ $(command -v python) == $CONDA_PREFIX/bin/python ]]
