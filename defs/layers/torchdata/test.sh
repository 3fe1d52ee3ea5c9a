#!/bin/bash
# torchdata is the version asked for, and a loader resumes where another one stopped.
set -euo pipefail

python - <<'PYTHON'
import importlib.metadata
import os
import sys

from torchdata.stateful_dataloader import StatefulDataLoader

installed = importlib.metadata.version("torchdata")
if installed != os.environ["OPT_VERSION"]:
    sys.exit(f"torchdata is {installed}, not {os.environ['OPT_VERSION']}")
first = StatefulDataLoader(range(4), batch_size=1)
batches = iter(first)
next(batches)
second = StatefulDataLoader(range(4), batch_size=1)
second.load_state_dict(first.state_dict())
if [batch.item() for batch in second] != [1, 2, 3]:
    sys.exit("a loader does not resume after the first batch")
PYTHON
