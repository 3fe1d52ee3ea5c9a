#!/bin/bash
# Install torchdata; torch is held at its version by the constraint file.
set -euo pipefail

pip install "torchdata==$OPT_VERSION"
