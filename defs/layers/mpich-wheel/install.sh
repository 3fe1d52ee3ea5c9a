#!/bin/bash
# Install MPICH into a prefix of its own, out of the Python environment.
set -euo pipefail

pip install --no-deps --only-binary :all: --prefix "$INSTALL_PREFIX/mpich" "mpich==$OPT_VERSION"
