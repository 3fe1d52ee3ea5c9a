#!/bin/bash
# The host has the Python that the plan names.
set -euo pipefail

"$HOST_PYTHON" --version
