#!/bin/bash
# Without a GPU, prove that the NCCL or RCCL that torch uses will load this plugin.
set -euo pipefail

python3 /opt/sifwright/fabric_proof/main.py plugin --folder /opt/aws-ofi-nccl/lib --gpu "$OPT_GPU" \
  --provider "$OPT_PROVIDER"

read -r libfabric < <(fi_info --version | sed -n 's/^libfabric: //p')
if [[ $OPT_PROVEN == *"$libfabric "* ]]; then
  echo "plugin $OPT_VERSION with libfabric $libfabric: known to run, $OPT_PROVEN"
else
  echo "plugin $OPT_VERSION with libfabric $libfabric: UNPROVEN on real networks; known to run: $OPT_PROVEN"
fi
