#!/bin/bash
# Install Debian's Python and make the virtual environment that later layers install into.
set -euo pipefail

apt-get update -qq
apt-get install -y -qq --no-install-recommends python3 python3-venv
apt-get clean
rm -rf /var/lib/apt/lists/* /var/cache/debconf/*-old

python3 -m venv /opt/venv
/opt/venv/bin/python -m pip install "pip==$OPT_PIP"
