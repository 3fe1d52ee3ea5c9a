#!/bin/bash
# Install accelerate; torch is held at its version by the constraint file.
set -euo pipefail

pip install "accelerate==$OPT_VERSION"
