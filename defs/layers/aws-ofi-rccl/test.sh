#!/bin/bash
# Without a GPU, prove that the RCCL that torch uses will load this plugin.
set -euo pipefail

python3 /opt/sifwright/fabric_proof/main.py plugin --folder /opt/aws-ofi-rccl/lib --gpu amd \
  --provider "$OPT_PROVIDER"
