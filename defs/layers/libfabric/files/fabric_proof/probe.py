"""Load libraries as a training process does, and print the facts as JSON.

PyTorch comes first, then the plugin that its NCCL or RCCL would open. This runs in a process of its
own, because a broken library may end the process.
"""

from __future__ import annotations

import ctypes
import importlib
import importlib.util
import json
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from fabric_proof import elf, loading, names  # found only now

LIBRARIES = {"amd": "librccl.so.1", "nvidia": "libnccl.so.2"}
# Libraries that a process must have only once: each keeps the state of the GPU or of the adapter.
SINGLE = ("libamdhip64", "libhsa-runtime64", "libfabric", "libcxi", "libnccl", "librccl")
# Libraries that libfabric opens for GPU memory, by these names (src/hmem_rocr.c, src/hmem_cuda.c).
RUNTIMES = {"amd": "libhsa-runtime64.so", "nvidia": "libcudart.so"}

if TYPE_CHECKING:
    Facts = dict[str, object]


def probe(gpu: str, setting: str) -> Facts:
    """Return all facts; a failure is one, with its reason."""
    facts: Facts = {"torch": torch_facts()}
    library = library_facts(gpu, facts)
    if library:
        version = version_of(library)
        asked = names.asked_for(library, version, setting)
        facts.update(library=library, version=version, asked=asked)
        facts["interfaces"] = names.interfaces(library)
        facts["opened"] = [opened(library, group, facts["interfaces"]) for group in asked]
    libfabric = loading.mapped(r"libfabric\.so[.0-9]*")
    facts["memory"] = gpu_memory(gpu, libfabric[0]) if libfabric else {"state": "unknown"}
    facts["copies"] = {name: loading.mapped(rf"{name}\.so[.0-9]*") for name in SINGLE}
    return facts


def torch_facts() -> Facts:
    if importlib.util.find_spec("torch") is None:
        return {"state": "absent"}
    try:
        torch = importlib.import_module("torch")
    except (ImportError, OSError) as error:
        return {"state": "broken", "why": str(error)}
    version = getattr(torch, "version")  # noqa: B009  # as the module is not known to type checkers
    return {
        "state": "there",
        "version": torch.__version__,
        "gpu": "nvidia" if version.cuda else "amd" if version.hip else "cpu",
    }


def library_facts(gpu: str, facts: Facts) -> str:
    """Return the file of NCCL or RCCL that training would use; note its origin in `facts`."""
    if gpu not in LIBRARIES:
        return ""
    pattern = rf"{LIBRARIES[gpu].partition('.')[0]}\.so[.0-9]*"
    facts["how"] = "torch maps"
    if there := loading.mapped(pattern) or inside_torch(gpu):
        return there[0]
    if needed := needed_by_torch(gpu):
        facts["how"] = "torch would map"
        return needed
    facts["how"] = "the loader gives"
    try:
        return loading.path_of(ctypes.CDLL(LIBRARIES[gpu]))
    except OSError as error:
        facts["why"] = str(error)
        return ""


def torch_library(gpu: str) -> str:
    """Return the part of torch for the GPU, which a CPU build lacks."""
    spec = importlib.util.find_spec("torch")
    name = {"nvidia": "libtorch_cuda.so", "amd": "libtorch_hip.so"}[gpu]
    for folder in (spec and spec.submodule_search_locations) or ():
        path = Path(folder, "lib", name)
        if path.exists():
            return str(path.resolve())
    return ""


def inside_torch(gpu: str) -> list[str]:
    """Return torch itself, if NCCL is a part of it (the CUDA 11 wheels up to 2.2)."""
    path = torch_library(gpu)
    return [path] if path and elf.words(path, rb"ncclNetPlugin_v[0-9]+") else []


def needed_by_torch(gpu: str) -> str:
    """Return the file of NCCL for torch; ldd names it even if other libraries are missing."""
    path = torch_library(gpu)
    if not path:
        return ""
    command = ["ldd", path]
    lines = subprocess.run(command, capture_output=True, check=False, encoding="utf-8").stdout
    for line in lines.splitlines():
        name, arrow, path = line.strip().partition(" => /")
        if arrow and name == LIBRARIES[gpu]:
            return str(Path("/", path.split()[0]).resolve())
    return ""


def version_of(library: str) -> int:
    number = ctypes.c_int()
    try:
        ctypes.CDLL(library).ncclGetVersion(ctypes.byref(number))
    except (OSError, AttributeError):  # a part of torch, and not exported
        return 0
    return number.value


def opened(library: str, group: list[str], wanted: object) -> Facts:
    """Open the first of the names that there is, as the library would."""
    reasons = []
    for name in group:
        try:
            plugin = loading.open_for(library, name)
        except OSError as error:
            reasons.append(str(error))
            continue
        known = wanted if isinstance(wanted, list) else []
        there = [number for number in known if hasattr(plugin, f"ncclNetPlugin_v{number}")]
        return {"name": name, "file": loading.path_of(plugin), "interfaces": there}
    return {"name": " or ".join(group), "file": "", "why": "; ".join(reasons)}


def gpu_memory(gpu: str, libfabric: str) -> Facts:
    """Tell whether libfabric was built for GPU memory, and finds the runtime for it."""
    name = RUNTIMES.get(gpu, "")
    facts: Facts = {"libfabric": libfabric, "runtime": name, "state": "not built"}
    if not name or not Path(libfabric).exists():
        return {"state": "unknown"}
    if not elf.holds(libfabric, name.encode() + b"\0"):
        return facts
    try:
        file = loading.path_of(loading.open_for(libfabric, name))
    except OSError as error:
        return {**facts, "state": "not found", "why": str(error)}
    return {**facts, "state": "found", "file": file}


if __name__ == "__main__":
    sys.stdout.write(json.dumps(probe(*sys.argv[1:])) + "\n")
