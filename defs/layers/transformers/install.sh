#!/bin/bash
# Install transformers; torch is held at its version by the constraint file.
set -euo pipefail

pip install "transformers==$OPT_VERSION"
