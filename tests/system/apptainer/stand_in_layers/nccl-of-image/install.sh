#!/bin/bash
# Look for it.
set -euo pipefail

[[ -f /usr/include/nccl.h ]]
