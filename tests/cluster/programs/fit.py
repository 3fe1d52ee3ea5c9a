"""Fits a line with DistributedDataParallel, from weights that torch keeps in its cache.

fit.py FILE: the weights are written there first, by every rank its own; each prints what it found.
"""

import contextlib
import importlib
import os
import sys
from pathlib import Path
from typing import Any

torch: Any = importlib.import_module("torch")  # only the image has it
dist: Any = importlib.import_module("torch.distributed")
parallel: Any = importlib.import_module("torch.nn.parallel")


def weights(source: Path) -> Any:
    """As a program that starts from a published model gets them: through the user's cache."""
    torch.save({"weight": torch.zeros(1, 1), "bias": torch.zeros(1)}, source)
    name = f"start-{os.environ['RANK']}.pt"
    with contextlib.redirect_stdout(sys.stderr):
        return torch.hub.load_state_dict_from_url(source.as_uri(), file_name=name, progress=False)


dist.init_process_group("gloo")
rank, size = dist.get_rank(), dist.get_world_size()
line = torch.nn.Linear(1, 1)
line.load_state_dict(weights(Path(f"{sys.argv[1]}-{rank}.pt")))
model = parallel.DistributedDataParallel(line)
descent = torch.optim.SGD(model.parameters(), lr=0.5)
# Every rank has one point of y = 2x + 1, which does not say which line it is.
x = torch.tensor([[rank / (size - 1)]])
for _ in range(100):
    descent.zero_grad()
    torch.nn.functional.mse_loss(model(x), 2 * x + 1).backward()
    descent.step()
found = f"{line.weight.item():.2f} x + {line.bias.item():.2f}"
sys.stdout.write(f"{found} on {size} ranks with {torch.__file__}\n")
dist.destroy_process_group()
