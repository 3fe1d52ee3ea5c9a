"""For every rule about an image at a site: what breaks it, and the same without the mistake."""

from typing import Any

from tests.unit.broken import SCRIPT, Change, append, layers, write
from tests.unit.lint_cases import AMD, BARE, FACTS, Broken, site


def _layer(name: str, header: str) -> tuple[Change, ...]:
    return (
        write(f"layers/{name}/layer.yaml", f"summary: A layer to test with\n{header}"),
        write(f"layers/{name}/install.sh", SCRIPT),
    )


def _wheel(version: str, cuda: str) -> tuple[Change, ...]:
    options = f'  version: {{type: string, description: Any, default: "{version}"}}\n'
    options += (
        f"  variant: {{type: string, description: Any, default: cu{cuda.replace('.', '')}}}\n"
    )
    facts = f'  wheel-torch: {{option: version}}\n  torch-cuda: {{text: "{cuda}"}}\n'
    header = f"options:\n{options}facts:\n{facts}"
    return (*_layer("pytorch-wheel", header), layers("base", "pytorch-wheel"))


def _toolkit(name: str, version: str) -> tuple[Change, ...]:
    return (*_layer(f"base-{name}", f'facts: {{{name}: {{text: "{version}"}}}}\n'),)


def _stack(layer: str, **facts: str) -> tuple[Change, ...]:
    """Return an image with a network plugin and those facts."""
    given = ", ".join(f'{name}: {{text: "{value}"}}' for name, value in facts.items())
    header = f"provides: [net-plugin]\nfacts: {{{given}}}\n"
    return (*_layer(layer, header), layers("base", layer))


def _fabric(version: str, provides: str = "net-plugin") -> tuple[Change, ...]:
    """Return an image with a plugin over a libfabric of this version."""
    facts = f'facts: {{libfabric: {{text: "{version}"}}}}\n'
    table = "libfabric: {'1.18.0': {symbols: '1.6'}, '1.22.0': {symbols: '1.7'}}\n"
    plugin = _layer("plugin", f"provides: [{provides}]\n")
    image = layers("base", "libfabric", "plugin")
    return (*_layer("libfabric", facts), *plugin, append("versions.yaml", table), image)


def _ubuntu(image: str) -> tuple[Change, ...]:
    header = f"bootstrap: {{Bootstrap: docker, From: '{image}'}}\nprovides: [base]\n"
    return (*_layer("ubuntu", header), layers("ubuntu"))


def _both(changes: tuple[Change, ...], bad: Change, good: Change, where: str = "") -> Broken:
    """Return the same image at two sites."""
    return Broken(
        bad=(*changes, bad), good=(*changes, good), where=where or "defs/sites/here.yaml:"
    )


_VOLTA, _OLD_DRIVER = site(arch="sm_70"), site(driver={"cuda": "12.7"})
_PLUGIN = _stack("aws-ofi-nccl", plugin="1.20.0")
_LIBFABRIC = {"NCCL_NET": "AWS Libfabric"}
_WHEEL = "pytorch-wheel.variant="
_PLUGINS = "aws-ofi-nccl: {'1.19.2': {better: '1.20.0'}, '1.20.0': {gpu: [nvidia]}}\n"
_EAGER = {"FI_CXI_RDZV_THRESHOLD": "0", "FI_CXI_RDZV_GET_MIN": "0"}
_GH200: dict[str, Any] = {"arch": "sm_90", "processor": "aarch64"}
_HOST = {"source": "us", "library-path": ["/opt/mpi"]}


def _hosted(version: str = "", **more: str) -> Change:
    mpi = {"name": "cray-mpich", "host": {**_HOST, **more}}
    return site(mpi=mpi, network=FACTS["network"] | ({"libfabric": version} if version else {}))


IMAGES = {
    "host-libfabric": _both(
        _fabric("1.22.0"), _hosted("1.20.5"), _hosted("1.22.1"), where="image 'small'"
    ),
    "host-libfabric that comes with the host's MPI": _both(
        _fabric("1.22.0"), _hosted("1.20.5"), _hosted("1.20.5", libfabric="1.22.0"), "image 'small'"
    ),
    "host-libfabric of no host's MPI": _both(
        _fabric("1.22.0"),
        _hosted("1.20.5"),
        site(network=FACTS["network"] | {"libfabric": "1.20.5"}),
        where="image 'small'",
    ),
    "host-libfabric with the same symbols": Broken(
        bad=(*_fabric("1.22.0"), _hosted("1.18.0")),
        good=(*_fabric("1.21.0"), _hosted("1.18.0")),
        where="image 'small'",
    ),
    "host-libfabric without a plugin": Broken(
        bad=(*_fabric("1.22.0"), _hosted("1.18.0")),
        good=(*_fabric("1.22.0", "other"), _hosted("1.18.0")),
        where="image 'small'",
    ),
    "gpu-arch": Broken(
        bad=(*_wheel("2.10.0", "13.0"), _VOLTA),
        good=(*_wheel("2.10.0", "12.6"), _VOLTA),
        where=_WHEEL,
    ),
    "gpu-arch of CUDA 12.8": Broken(
        bad=(*_wheel("2.11.0", "12.8"), _VOLTA),
        good=(*_wheel("2.10.0", "12.8"), _VOLTA),
        where="pytorch-wheel.version=2.11.0 (layer default)",
    ),
    "gpu-arch of torch 2.15": Broken(
        bad=(*_wheel("2.15.0", "12.6"), _VOLTA),
        good=(*_wheel("2.14.1", "12.6"), _VOLTA),
        where="pytorch-wheel.version=",
    ),
    "gpu-arch of a toolkit": Broken(
        bad=(*_toolkit("cuda", "13.0"), layers("base", "base-cuda"), _VOLTA),
        good=(*_toolkit("cuda", "13.0"), layers("base", "base-cuda"), site()),
        where="image 'small'",
    ),
    "driver-cuda": _both(_wheel("2.10.0", "13.0"), _OLD_DRIVER, site(), where=_WHEEL),
    "driver-cuda of a minor version": Broken(
        bad=(*_wheel("2.10.0", "13.0"), _OLD_DRIVER),
        good=(*_wheel("2.10.0", "12.8"), _OLD_DRIVER),
        where=_WHEEL,
    ),
    "driver-cuda with compat libraries": Broken(
        bad=(*_wheel("2.10.0", "13.0"), _OLD_DRIVER),
        good=(
            *_layer("base-image", 'facts: {cuda: {text: "13.0"}}\n'),
            layers("base", "base-image"),
            _OLD_DRIVER,
        ),
        where=_WHEEL,
    ),
    "plugin-name": _both(
        _PLUGIN,
        site(several={"NCCL_NET_PLUGIN": "spectrum-x"}),
        site(several={"NCCL_NET_PLUGIN": "ofi"}),
    ),
    "plugin-name of another layer": Broken(
        bad=(*_PLUGIN, site(several={"NCCL_NET_PLUGIN": "spectrum-x"})),
        good=(*_stack("our-own-plugin"), site(several={"NCCL_NET_PLUGIN": "spectrum-x"})),
    ),
    "plugin-name as a file": _both(
        _PLUGIN,
        site(several={"NCCL_NET_PLUGIN": "/opt/x/libnccl-net-x.so"}),
        site(several={"NCCL_NET_PLUGIN": "/opt/aws-ofi-nccl/lib/libnccl-net.so"}),
    ),
    "plugin-hangs": Broken(
        bad=(*_stack("aws-ofi-nccl", plugin="1.19.2"), append("versions.yaml", _PLUGINS), site()),
        good=(*_PLUGIN, append("versions.yaml", _PLUGINS), site()),
        where="image 'small'",
    ),
    "network-name": _both(
        _PLUGIN, site(several={"NCCL_NET": "Slingshot"}), site(several=_LIBFABRIC)
    ),
    "network-name of old plugins": Broken(
        bad=(*_stack("aws-ofi-nccl", plugin="1.12.1-aws"), site(several={"NCCL_NET": "OFI"})),
        good=(*_PLUGIN, site(several={"NCCL_NET": "ofi"})),
    ),
    "network-missing": Broken(
        bad=(BARE, site(several=_LIBFABRIC)), good=(*_PLUGIN, site(several=_LIBFABRIC))
    ),
    "network-missing in no container": Broken(
        bad=(BARE, site(several=_LIBFABRIC)), good=(BARE, site(several=_LIBFABRIC, run_in=["host"]))
    ),
    "network-missing for sockets": Broken(
        bad=(BARE, site(several=_LIBFABRIC)), good=(BARE, site(several={"NCCL_NET": "Socket"}))
    ),
    "ll128-corrupts": _both(
        _stack("nccl", nccl="2.27.3"), site(**_GH200), site({**_EAGER}, **_GH200)
    ),
    "ll128-corrupts with half of the pair": _both(
        _stack("nccl", nccl="2.30.7"),
        site({"FI_CXI_RDZV_GET_MIN": "0"}, **_GH200),
        site(several={"NCCL_PROTO": "^LL128"}, **_GH200),
    ),
    "ll128-corrupts with other protocols out": _both(
        _stack("nccl", nccl="2.27.3"),
        site({"NCCL_PROTO": "^LL"}, **_GH200),
        site({"NCCL_PROTO": "^LL,LL128"}, **_GH200),
    ),
    "ll128-corrupts with protocols named": _both(
        _stack("nccl", nccl="2.27.3"),
        site({"NCCL_PROTO": "LL128,Simple"}, **_GH200),
        site({"NCCL_PROTO": "Simple"}, **_GH200),
    ),
    "ll128-corrupts since NCCL 2.27": Broken(
        bad=(*_stack("nccl", nccl="2.27.3"), site(**_GH200)),
        good=(*_stack("nccl", nccl="2.26.2"), site(**_GH200)),
    ),
    "ll128-slow": _both(_stack("nccl", nccl="2.27.3"), site(), site({**_EAGER})),
    "ll128-slow of other vendors": _both(_stack("nccl", nccl="2.27.3"), site(), site(**AMD)),
    "host-rocm": _both(
        _ubuntu("rocm/dev-ubuntu-22.04:6.2.4-complete"),
        site(**AMD),
        site(**AMD, container={"gpu-libraries": {"of": "image", "why": "so", "source": "us"}}),
        where="image 'small'",
    ),
    "host-rocm in a newer image": Broken(
        bad=(*_ubuntu("rocm/pytorch:rocm6.2_ubuntu22.04_py3.10"), site(**AMD)),
        good=(*_ubuntu("rocm/pytorch:rocm6.4.2_ubuntu24.04_py3.12"), site(**AMD)),
        where="image 'small'",
    ),
    "gpu-direct-level": Broken(
        bad=(*_stack("aws-ofi-nccl", rocm="7.0"), site({"NCCL_NET_GDR_LEVEL": "3"}, **AMD)),
        good=(*_stack("aws-ofi-nccl", rocm="6.4"), site({"NCCL_NET_GDR_LEVEL": "3"}, **AMD)),
    ),
}
