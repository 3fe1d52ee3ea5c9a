"""Lint rules about an image at a site, for layers that go together.

The rules read the facts that the layers of a plan give, and its steps.
"""

import re
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import PurePosixPath

from packaging.version import InvalidVersion, Version

from sifwright.plan.lint.rule import Violation, on_several_nodes
from sifwright.plan.lint.site_rules import INTERNAL_NETWORKS
from sifwright.plan.model import Plan, Step

# Facts with a version: torch's build, the image's toolkit, or that of a base image with torch.
_CUDA = ("torch-cuda", "cuda", "toolkit")
_ROCM = ("torch-rocm", "rocm", "toolkit")
# The oldest architecture of CUDA 13, and of the wheels that have lost Volta: CUDA and torch.
_TURING = 75
_VOLTA_LEFT = ((Version("12.8"), Version("2.11")), (Version("0"), Version("2.15")))
# The first plugin that takes the name that NCCL_NET asks for, if it is one of three.
_MANY_NAMES = Version("1.13")
# The first NCCL that takes the protocol LL128 between nodes by itself.
_LL128 = Version("2.27")
_UBUNTU_22 = re.compile(r"ubuntu-?22\.04")  # as AMD names its images
# Values of NCCL_NET_PLUGIN with layer aws-ofi-nccl: its files, and the word of the last of them.
_PLUGIN_NAMES = (
    *("libnccl-net.so", "librccl-net.so"),
    *("libnccl-net-ofi.so", "librccl-net-ofi.so", "ofi"),
)


def _fact(plan: Plan, *names: str) -> Version | None:
    """Return the first of these facts that is a version; 1.12.1 for 1.12.1-aws."""
    text = next(filter(None, (plan.facts.get(name) for name in names)), "")
    try:
        return Version(text.partition("-")[0]) if text else None
    except InvalidVersion:
        return None


def _plugin(plan: Plan) -> Step | None:
    return next((step for step in plan.steps if "net-plugin" in step.layer.provides), None)


def _option_origins(plan: Plan, layer: str, *options: str) -> str:
    """Return the deciding options as `layer.option=value (origin)`, else the image."""
    step = plan.step(layer)
    decisive = (
        [(name, step.options[name]) for name in options if name in step.options] if step else []
    )
    origins = (f"{layer}.{name}={value.text} ({value.origin})" for name, value in decisive)
    return ", ".join(origins) or f"image '{plan.image.name}'"


def _architecture(plan: Plan) -> Iterator[Violation]:
    arch, cuda, wheel = plan.site.arch, _fact(plan, *_CUDA), _fact(plan, "wheel-torch")
    if not arch.startswith("sm_") or int(arch[3:]) >= _TURING or cuda is None:
        return
    at = _option_origins(plan, "pytorch-wheel", "version", "variant")
    if cuda.major >= 13:  # noqa: PLR2004
        yield Violation(at=at, what=f"CUDA {cuda} has no code for {arch}")
    elif wheel and any(cuda >= since and wheel >= gone for since, gone in _VOLTA_LEFT):
        message = f"the wheels of torch {wheel} for CUDA {cuda} have no code for {arch}"
        yield Violation(at=at, what=message)


def _driver(plan: Plan) -> Iterator[Violation]:
    cuda, driver = _fact(plan, *_CUDA), plan.site.driver.cuda
    # A base image may bring the driver's compat libraries itself.
    if cuda is None or not driver or plan.step("base-image"):
        return
    if cuda.major > Version(driver).major:
        at = _option_origins(plan, "pytorch-wheel", "variant")
        message = f"CUDA {cuda}, and the driver of site '{plan.site.name}' runs CUDA {driver}"
        fix = f"Use a build for CUDA {Version(driver).major}, or a base image with cuda-compat."
        yield Violation(at=at, what=message, fix=fix)


def _plugin_name(plan: Plan) -> Iterator[Violation]:
    path, name = on_several_nodes(plan.site, "NCCL_NET_PLUGIN")
    if name and plan.step("aws-ofi-nccl") and PurePosixPath(name).name not in _PLUGIN_NAMES:
        message = f"NCCL_NET_PLUGIN={name}: layer 'aws-ofi-nccl' installs no plugin of that name"
        fix = f"Leave it out, or set {_PLUGIN_NAMES[0]} for several nodes."
        yield Violation(path=path, what=message, fix=fix)


def _plugin_hangs(plan: Plan) -> Iterator[Violation]:
    """Yield a plugin with a known hang, by the column `better` of its table."""
    step = plan.step("aws-ofi-nccl")
    version = plan.facts.get("plugin", "")
    better = plan.versions.get("aws-ofi-nccl", {}).get(version, {}).get("better")
    if step and better:
        at = _option_origins(plan, "aws-ofi-nccl", "version")
        message = f"plugin {version} is known to hang, and {better[0]} is better"
        yield Violation(at=at, what=message, fix=f"Use aws-ofi-nccl.version={better[0]} or later.")


def _network_name(plan: Plan) -> Iterator[Violation]:
    path, network = on_several_nodes(plan.site, "NCCL_NET")
    step, plugin = _plugin(plan), _fact(plan, "plugin")
    if not network or step is None or network.lower() in INTERNAL_NETWORKS:
        return
    old = plugin and plugin < _MANY_NAMES
    known = ["AWS Libfabric"] if old else ["AWS Libfabric", "Libfabric", "OFI"]
    if network.lower() not in [name.lower() for name in known]:
        message = f"NCCL_NET={network}: the plugin of layer '{step.layer.name}' is not called that"
        yield Violation(path=path, what=message, fix=f"It answers to: {', '.join(known)}.")


def _network_missing(plan: Plan) -> Iterator[Violation]:
    path, network = on_several_nodes(plan.site, "NCCL_NET")
    if not network or network.lower() in INTERNAL_NETWORKS or _plugin(plan):
        return
    if "container" in plan.site.run_in:
        message = f"NCCL_NET={network}, and image '{plan.image.name}' has no network plugin"
        yield Violation(path=path, what=message)


def _gpu_direct(plan: Plan) -> Iterator[Violation]:
    path, level = on_several_nodes(plan.site, "NCCL_NET_GDR_LEVEL")
    rocm = _fact(plan, *_ROCM)
    if level and plan.site.vendor == "amd" and rocm and rocm.major >= 7:  # noqa: PLR2004
        yield Violation(path=path, what=f"NCCL_NET_GDR_LEVEL={level} with ROCm {rocm}")


def _eager_ll128(plan: Plan, *, on_gh200: bool) -> Iterator[Violation]:
    """Yield an NCCL with LL128 messages that may be eager ones of Slingshot's provider."""
    site, nccl = plan.site, _fact(plan, "nccl")
    path, protocols = on_several_nodes(site, "NCCL_PROTO")
    if on_gh200 != ((site.arch, site.processor) == ("sm_90", "aarch64")):
        return
    if site.fabric != "slingshot" or site.vendor != "nvidia" or nccl is None or nccl < _LL128:
        return
    limits = [f"FI_CXI_RDZV_{name}" for name in ("THRESHOLD", "GET_MIN")]
    if _has_ll128(protocols) and any(on_several_nodes(site, name)[1] != "0" for name in limits):
        message = f"NCCL {nccl} uses LL128 between nodes, and {' and '.join(limits)} are not both 0"
        yield Violation(path=path, what=message)


def _has_ll128(protocols: str) -> bool:
    """Return whether NCCL_PROTO allows LL128; ^ excludes what follows."""
    names = protocols.upper().removeprefix("^").split(",")
    return not protocols or ("LL128" in names) != protocols.startswith("^")


def _host_rocm(plan: Plan) -> Iterator[Violation]:
    """Yield an image with an older C library than the host's GPU libraries need."""
    base = plan.steps[0].header.get("From", "") if plan.steps else ""
    if "--rocm" in plan.site.gpu_flags and _UBUNTU_22.search(base):
        message = f"{base} with the host's ROCm libraries (--rocm)"
        yield Violation(at=_option_origins(plan, plan.steps[0].layer.name, "rocm"), what=message)


def _host_libfabric(plan: Plan) -> Iterator[Violation]:
    """Yield a host libfabric that is too old for the image's plugin and replaces its own."""
    host, step = plan.site.host_mpi, plan.step("libfabric")
    if host is None or step is None or _plugin(plan) is None:
        return
    own, of_host = plan.facts.get("libfabric", ""), host.libfabric or plan.site.libfabric
    wanted, there = _symbols(plan, own), _symbols(plan, of_host)
    if wanted and there and wanted > there:
        message = (
            f"libfabric {own} (symbols {wanted}), and {of_host} (symbols {there}) with --host-mpi"
        )
        yield Violation(at=_option_origins(plan, "libfabric", "version"), what=message)


def _symbols(plan: Plan, version: str) -> Version | None:
    """Return the newest symbol version of that release, by the table."""
    rows = plan.versions.get("libfabric", {})
    older = [name for name in rows if version and Version(name) <= Version(version)]
    cell = rows[max(older, key=Version)].get("symbols") if older else None
    return Version(cell[0]) if cell else None


RULES: dict[str, Callable[[Plan], Iterator[Violation]]] = {
    "gpu-arch": _architecture,
    "driver-cuda": _driver,
    "plugin-name": _plugin_name,
    "plugin-hangs": _plugin_hangs,
    "network-name": _network_name,
    "network-missing": _network_missing,
    "gpu-direct-level": _gpu_direct,
    "ll128-corrupts": partial(_eager_ll128, on_gh200=True),
    "ll128-slow": partial(_eager_ll128, on_gh200=False),
    "host-rocm": _host_rocm,
    "host-libfabric": _host_libfabric,
}
