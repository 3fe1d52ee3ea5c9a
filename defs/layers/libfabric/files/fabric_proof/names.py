"""Names of the network plugin and of its interface, as a communications library asks for them.

They are read from the library itself, because they changed. NCCL has always asked for
libnccl-net.so. RCCL asks for librccl-net.so, but in ROCm 7.2 for libnccl-net.so
(ROCm/rocm-systems pull request 4201).
"""

from __future__ import annotations

from fabric_proof import elf

__all__ = ["asked_for", "interfaces"]

# src/net.cc and src/plugin/plugin_open.cc of NCCL 2.17 to 2.30 and of RCCL of ROCm 5.4 to 7.2.
_NAMES = rb"lib[nr]ccl-net(?:-%s)?(?:\.so)?"
_INTERFACES = rb"ncclNetPlugin_v[0-9]+"
# From this release on NCCL_NET_PLUGIN may be a file's name or path; before, it was a part of one.
_WHOLE_NAMES = 22100


def asked_for(library: str, version: int, setting: str = "") -> list[list[str]]:
    """Return names to open, in groups; one of each must exist. `setting` is NCCL_NET_PLUGIN."""
    texts = elf.words(library, _NAMES)
    prefix = _prefix(texts)
    if setting:
        return [_as_set(item, prefix, version) for item in setting.split(",") if item]
    whole = [name for name in texts if name.endswith(".so") and "%" not in name]
    # A compiler may have hidden the short name in the code (NCCL 2.18, 2.21): the long one tells.
    return [[name] for name in whole or ([f"{prefix}.so"] if prefix else [])]


def interfaces(library: str) -> list[int]:
    """Return the versions of the interface that the library knows, the newest first."""
    numbers = (int(name.rpartition("_v")[2]) for name in elf.words(library, _INTERFACES))
    return sorted(numbers, reverse=True)


def _prefix(texts: list[str]) -> str:
    for name in texts:
        if "%" in name or not name.endswith(".so"):
            return name.partition("-net")[0] + "-net"
    return ""


def _as_set(item: str, prefix: str, version: int) -> list[str]:
    built = f"{prefix}-{item}.so"
    return [built] if 0 < version < _WHOLE_NAMES else [item, built]
