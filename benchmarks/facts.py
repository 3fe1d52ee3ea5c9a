"""The machine that was measured on: what the figures depend on, and nothing that names it."""  # noqa: INP001  # run.py's folder is on sys.path

from __future__ import annotations

import os
import platform
import re
from pathlib import Path

from sifwright.host.engines import apptainer

__all__ = ["machine"]


def machine() -> dict[str, object]:
    engine = apptainer.find()
    return {
        "processor": _match(r"^model name\s*: (.*)$", "/proc/cpuinfo") or platform.machine(),
        "cores": len(os.sched_getaffinity(0)),
        "memory_gb": round(int(_match(r"^MemTotal:\s*(\d+)", "/proc/meminfo") or 0) / 1e6, 1),
        "kernel": platform.release(),
        "system": platform.freedesktop_os_release().get("PRETTY_NAME", ""),
        "engine": f"{engine.product} {engine.version}" if engine else "none",
        "python": platform.python_version(),
    }


def _match(pattern: str, file: str) -> str:
    match = re.search(pattern, Path(file).read_text(encoding="utf-8"), re.MULTILINE)
    return match.group(1).strip() if match else ""
