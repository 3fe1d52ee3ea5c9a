"""Images pytorch-full and pytorch-horovod of site local, as they are; two ranks train."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests import stacks
from tests.stacks import Sif, opened

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.image, pytest.mark.build, pytest.mark.slow]

TRAIN = r"""
import gc, os, time
os.environ["HOME"] = "/tmp"  # DeepSpeed writes there, and the container has no home
import accelerate, deepspeed, torch, torch.distributed as dist, transformers
import torch.distributed.nn  # before there is a group, which it would keep for good

def tell(name, weights):
    every = [torch.empty_like(weights) for _ in range(2)]
    dist.all_gather(every, weights.detach().clone())
    # In one call: the ranks write at the same time.
    os.write(1, f"{dist.get_rank()} {name} {torch.equal(*every)}\n".encode())

def with_accelerate():
    accelerator = accelerate.Accelerator(cpu=True)
    rank, sizes = accelerator.process_index, {"n_layer": 1, "n_head": 2, "n_embd": 8}
    config = transformers.GPT2Config(**sizes, vocab_size=16, n_positions=8)
    model = transformers.GPT2LMHeadModel(config)
    model, optimizer = accelerator.prepare(model, torch.optim.SGD(model.parameters(), lr=0.1))
    words = torch.tensor([[1, 2, 3 + rank]])
    for _ in range(3):
        accelerator.backward(model(input_ids=words, labels=words).loss)
        optimizer.step()
        optimizer.zero_grad()
    tell("accelerate", next(accelerator.unwrap_model(model).parameters()))

def with_deepspeed():
    settings = {"train_micro_batch_size_per_gpu": 2, "zero_optimization": {"stage": 1}}
    settings["optimizer"] = {"type": "Adam", "params": {"lr": 0.01, "torch_adam": True}}
    net = torch.nn.Linear(4, 1)
    engine, *_ = deepspeed.initialize(
        model=net, model_parameters=net.parameters(), config=settings, dist_init_required=False
    )
    for _ in range(3):
        engine.backward(engine(torch.full((2, 4), 1.0 + dist.get_rank())).pow(2).mean())
        engine.step()
    tell("deepspeed", next(engine.module.parameters()))
    engine.destroy()  # or its hooks keep it, and the group with it

def is_of_gloo(task):
    try:
        with open(f"/proc/self/task/{task}/comm") as name:
            return name.read() == "pt_gloo_runloop\n"
    except OSError:  # it ended just now
        return False

def without_gloo():
    for _ in range(100):  # Linux names a thread for a moment after its end
        if not any(map(is_of_gloo, os.listdir("/proc/self/task"))):
            return True
        time.sleep(0.1)
    return False

with_accelerate()
with_deepspeed()
# A thread of gloo that drops a tensor while Python shuts down aborts the rank. The message is
# "terminate called without an active exception" (pytorch#190489). The thread ends with the last
# reference to its group.
gc.collect()
deepspeed.comm.destroy_process_group()  # drops DeepSpeed's own references, too
os.write(1, f"{os.environ['RANK']} ended {without_gloo()}\n".encode())
"""


@pytest.fixture(scope="module")
def full(engine: str, tmp_path_factory: pytest.TempPathFactory) -> Sif:
    path = stacks.whole("pytorch-full")
    return opened(engine, path, tmp_path_factory.mktemp("full"))


@pytest.mark.builds(
    "accelerate", "transformers", "deepspeed", by="make test-slow", depth="ran on CPUs"
)
def test_two_ranks_train(full: Sif) -> None:
    (full.workdir / "train.py").write_text(TRAIN)
    output = full.says("conda-python-distributed", "--nproc-per-node", "2", "train.py")
    lines = [line for line in output.splitlines() if line.endswith(("True", "False"))]
    names = ("accelerate", "deepspeed", "ended")
    assert sorted(lines) == [f"{rank} {name} True" for rank in (0, 1) for name in names]


@pytest.mark.builds("torchdata", by="make test-slow", depth="ran on CPUs")
def test_a_loader_resumes(full: Sif) -> None:
    """Run the layer's own test, which resumes a loader and refuses another version."""
    done = full.test("torchdata", version="0.11.0")
    assert done.returncode == 0, done.stdout + done.stderr
    other = full.test("torchdata", version="0.10.0")
    assert other.returncode == 1
    assert "torchdata is 0.11.0, not 0.10.0" in other.stderr


def test_horovod_adds_up(engine: str, tmp_path: Path) -> None:
    sif = opened(engine, stacks.whole("pytorch-horovod"), tmp_path)
    for options, controller in (((), "MPI"), (("--gloo",), "Gloo")):
        sums = [(str(rank), "[3.0]", controller) for rank in (0, 1)]
        assert stacks.sums_of_horovod(sif, *options) == sums
