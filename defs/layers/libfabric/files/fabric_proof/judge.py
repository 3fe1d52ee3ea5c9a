"""Tell from the facts of a process whether the plugin will be loaded, and name what is broken."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from fabric_proof.finding import Finding, broken, proved

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["judge", "memory"]

KIND = {"amd": "RCCL", "nvidia": "NCCL"}
# NCCL's own numbering: 2.8 and before had one digit less.
_LONG = 10000


def judge(facts: dict[str, Any], gpu: str, folder: str) -> Iterator[Finding]:
    """Yield what is proved and what is not. `folder`: where the plugin was installed."""
    yield from _library(facts, gpu)
    for group in facts.get("opened", ()):
        yield _opened(group, folder)
        if group["file"]:
            yield _interface(group, facts["interfaces"], KIND[gpu])
    if facts.get("library") and not facts["asked"]:
        yield broken("b", f"{facts['library']} holds no name of a network plugin: it takes none")
    for name, files in facts["copies"].items():
        if len(files) > 1:
            yield broken("c", f"one process gets {len(files)} {name}: {', '.join(files)}")
    yield from memory(facts["memory"])


def _library(facts: dict[str, Any], gpu: str) -> Iterator[Finding]:
    torch, kind, library = facts["torch"], KIND[gpu], facts.get("library")
    if torch["state"] == "there" and torch["gpu"] not in (gpu, "cpu"):
        yield broken("a", f"torch {_torch(torch)}, but the plugin is for {gpu}")
    if not library:
        yield broken("a", f"no {kind} in the image: torch {_torch(torch)}; {facts.get('why', '')}")
        return
    text = f"{facts['how']} {library}, {kind} {_version(facts['version'])}; torch {_torch(torch)}"
    if torch.get("gpu") == gpu and not facts["how"].startswith("torch"):
        yield broken("a", f"torch maps no {kind}: it was built without; {text}")
        return
    yield proved("a", text)


def _torch(torch: dict[str, Any]) -> str:
    if torch["state"] == "there":
        return f"{torch['version']} is for {torch['gpu']}"
    return "is absent" if torch["state"] == "absent" else f"cannot be imported: {torch['why']}"


def _version(number: int) -> str:
    if not number:
        return "of unknown version"
    base = _LONG if number >= _LONG else _LONG // 10
    return f"{number // base}.{number % base // 100}.{number % 100}"


def _opened(group: dict[str, Any], folder: str) -> Finding:
    if not group["file"]:
        return broken("b", f"it looks for {group['name']}, which does not load: {group['why']}")
    text = f"it looks for {group['name']} and gets {group['file']}"
    if Path(folder).resolve() in Path(group["file"]).parents:
        return proved("b", text)
    return broken("b", f"{text}, not the plugin in {folder}")


def _interface(group: dict[str, Any], wanted: list[int], kind: str) -> Finding:
    asked = ", ".join(f"ncclNetPlugin_v{number}" for number in wanted)
    there = group["interfaces"]
    if there:
        return proved("d", f"it asks for {asked}, and the plugin's v{there[0]} is used")
    return broken("d", f"{group['file']} exports none of what this {kind} asks for: {asked}")


def memory(facts: dict[str, Any]) -> Iterator[Finding]:
    """Tell whether libfabric reaches the GPU's memory."""
    if facts["state"] == "found":
        yield proved("e", f"{facts['libfabric']} reaches GPU memory through {facts['file']}")
    if facts["state"] == "not built":
        text = f"it never opens {facts['runtime']}"
        yield broken("e", f"{facts['libfabric']} was built without GPU memory: {text}")
    if facts["state"] == "not found":
        text = f"does not find {facts['runtime']} for GPU memory: {facts['why']}"
        yield broken("e", f"{facts['libfabric']} {text}")
