"""The command line of the proof: `libfabric` proves that layer, `plugin` a network plugin."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fabric_proof.finding import Finding, broken
from fabric_proof.judge import judge, memory
from fabric_proof.libraries import providers, resolved, same_libfabric
from fabric_proof.probe import gpu_memory

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

__all__ = ["main"]

_SITE = Path("/etc/sifwright/site-environment")


def main(arguments: Sequence[str]) -> int:
    """Print the proof; return 1 if it fails."""
    parser = argparse.ArgumentParser(prog="fabric_proof", description=__doc__)
    parser.add_argument("what", choices=("libfabric", "plugin"))
    parser.add_argument("--libfabric", default="/opt/libfabric", help="its prefix")
    parser.add_argument("--release", default="", help="of libfabric")
    parser.add_argument("--provider", required=True, help="what fi_info must list")
    parser.add_argument("--gpu", choices=("amd", "nvidia", "cpu"), required=True)
    parser.add_argument("--folder", default="", help="where the plugin was installed")
    words = parser.parse_args(arguments)
    findings = list(_libfabric(words) if words.what == "libfabric" else _plugin(words))
    sys.stdout.writelines(f"{finding}\n" for finding in findings)
    bad = sum(not finding.good for finding in findings)
    if bad:
        sys.stderr.write(f"{words.what}: {bad} of {len(findings)} findings are broken\n")
    return 1 if bad else 0


def _plugin(words: argparse.Namespace) -> Iterator[Finding]:
    program = f"{words.libfabric}/bin/fi_info"
    files = Path(words.folder).glob("lib*ccl-net*.so")
    plugins = sorted({str(path.resolve()) for path in files if path.exists()})
    if not plugins:
        yield broken("b", f"{words.folder} holds no plugin")
    yield from _probed(words)
    yield from resolved(plugins)
    for plugin in plugins:
        yield from same_libfabric(plugin, program)
    yield from providers(program, words.provider, words.release)


def _libfabric(words: argparse.Namespace) -> Iterator[Finding]:
    prefix = Path(words.libfabric)
    program = f"{prefix}/bin/fi_info"
    files = sorted({str(path.resolve()) for path in prefix.glob("lib/lib*.so*")})
    yield from resolved([*(file for file in files if prefix in Path(file).parents), program])
    yield from providers(program, words.provider, words.release)
    yield from memory(gpu_memory(words.gpu, f"{prefix}/lib/libfabric.so.1"))


def _probed(words: argparse.Namespace) -> Iterator[Finding]:
    """Probe in a process of its own, which a broken library may end."""
    command = [sys.executable, str(Path(__file__).with_name("probe.py")), words.gpu, _setting()]
    done = subprocess.run(command, capture_output=True, check=False, encoding="utf-8")
    if done.returncode:
        output = " ".join((done.stdout + done.stderr).split())
        yield broken(
            "a", f"importing torch or loading the plugin ended with {done.returncode}: {output}"
        )
        return
    facts: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    yield from judge(facts, words.gpu, words.folder)


def _setting() -> str:
    """Return NCCL_NET_PLUGIN of the environment, else of the site."""
    if "NCCL_NET_PLUGIN" in os.environ or not _SITE.exists():
        return os.environ.get("NCCL_NET_PLUGIN", "")
    pairs = (line.partition("=") for line in _SITE.read_text(encoding="utf-8").splitlines())
    return next((value for name, _, value in pairs if name == "NCCL_NET_PLUGIN"), "")
