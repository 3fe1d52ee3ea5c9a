#!/bin/bash
# libfabric is the release asked for, has the provider of the site's network, and finds all it needs.
set -euo pipefail

python3 /opt/sifwright/fabric_proof/main.py libfabric --release "$OPT_VERSION" --provider "$OPT_PROVIDER" \
  --gpu "$OPT_GPU"
