"""Run in the container as every rank of a launch: says when its first all-reduce was done."""  # noqa: INP001  # a script

from __future__ import annotations

import importlib
import sys
import time
from typing import Any

torch: Any = importlib.import_module("torch")  # only the image has it
dist: Any = importlib.import_module("torch.distributed")

dist.init_process_group("gloo")
tensor = torch.ones(1)
dist.all_reduce(tensor)
done = time.time()
assert int(tensor[0]) == dist.get_world_size()
sys.stdout.write(f"all-reduced at {done:.4f}\n")  # in one piece: torchrun's ranks share a pipe
sys.stdout.flush()
dist.destroy_process_group()
