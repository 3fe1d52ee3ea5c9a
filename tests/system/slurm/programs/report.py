"""Prints what a training script would read, one line of JSON."""

import json
import os
import sys

NAMES = (
    *("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "GROUP_RANK"),
    *("MASTER_ADDR", "MASTER_PORT", "OMP_NUM_THREADS"),
)
values = {name: os.environ.get(name) for name in NAMES} | {"host": os.uname().nodename}
sys.stdout.write(json.dumps(values) + "\n")
