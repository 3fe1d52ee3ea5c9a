"""Sums one value of every rank with torch's gloo and prints it on every rank.

all_reduce.py VALUE [COUNT]: a tensor of COUNT numbers, to see which network they take.
"""

import importlib
import os
import sys
from typing import Any

torch: Any = importlib.import_module("torch")  # only the image has it
dist: Any = importlib.import_module("torch.distributed")

dist.init_process_group("gloo")
count = int(sys.argv[2]) if len(sys.argv) > 2 else 1
tensor = torch.full((count,), int(sys.argv[1]), dtype=torch.int64)
dist.all_reduce(tensor)
size, port = dist.get_world_size(), os.environ["MASTER_PORT"]
# In one write: ranks of a node share the descriptor, and print() writes the line end apart.
sys.stdout.write(f"sum {int(tensor[-1])} of {size} at {port}\n")
dist.destroy_process_group()
