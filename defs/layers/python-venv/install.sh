#!/bin/bash
# Install the distribution's Python and make the virtual environment that later layers install into.
set -euo pipefail

apt-install python3 python3-venv

# Not `python`: in an image from a registry another Python may come first on PATH.
/usr/bin/python3 -m venv /opt/venv
/opt/venv/bin/python -m pip install "pip==$OPT_PIP"
