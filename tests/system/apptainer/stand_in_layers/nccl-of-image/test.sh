#!/bin/bash
# The loader gives that one.
set -euo pipefail

cached=$(/sbin/ldconfig -p | sed -n 's/^[[:blank:]]*libnccl\.so\.2 .* => //p')
[[ $cached == /*/x86_64-linux-gnu/libnccl.so.2 ]]
