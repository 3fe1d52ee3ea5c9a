#!/bin/bash
# No link of the prefix leads nowhere, and its compiler makes code for a GPU.
set -euo pipefail

lost=$(find /opt/rocm-*/ -xtype l)
[[ -z $lost ]] || { echo "links that lead nowhere: $lost" >&2; exit 1; }
