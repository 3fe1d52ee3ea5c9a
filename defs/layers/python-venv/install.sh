#!/bin/bash
# Make the virtual environment into which later layers install. An image uses the distribution's Python. A host
# uses its own, which must be the plan's.
set -euo pipefail

if [[ -z $IMAGE_ROOT ]]; then
  apt-install python3 python3-venv
  # Not `python`: in an image from a registry another Python may come first on PATH.
  python=/usr/bin/python3
else
  python=$HOST_PYTHON
  version=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
  if [[ $version != "$HOST_PYTHON_VERSION" ]]; then
    echo "$(command -v "$python") is Python $version, and the plan is for $HOST_PYTHON_VERSION:" \
      "load a module of that Python, or plan with --set host.python=$version" >&2
    exit 1
  fi
  "$python" -c 'import ensurepip, venv' || {
    echo "$(command -v "$python") has no venv: load a module of a Python with venv and ensurepip" >&2
    exit 1
  }
fi
"$python" -m venv "$INSTALL_PREFIX/venv"
"$INSTALL_PREFIX/venv/bin/python" -m pip install "pip==$OPT_PIP"
