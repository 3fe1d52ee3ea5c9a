"""The proof that a network plugin will load, on real libraries: good, and broken in each way."""

from __future__ import annotations

import re
import shutil
from typing import TYPE_CHECKING

import pytest

from tests.conftest import ROOT, run
from tests.system.fabric.toys import FABRIC, FI_INFO, LIBRARY, PROOF, World, make_world

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

SHARE = ROOT / "defs" / "layers" / "aws-ofi-nccl" / "files" / "share-hsa-runtime"


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> World:
    return make_world(tmp_path_factory.mktemp("world"))


@pytest.fixture
def world(whole: World, tmp_path: Path) -> World:
    """Make a world to spoil."""
    shutil.copytree(whole.folder, tmp_path / "world", symlinks=True)
    return World(folder=tmp_path / "world")


def test_a_good_plugin_is_proved_line_by_line(whole: World) -> None:
    done = whole.prove()
    assert (done.returncode, done.stderr) == (0, "")
    output = done.stdout.replace(str(whole.folder), "")
    asked = ", ".join(f"ncclNetPlugin_v{number}" for number in (10, 9, 8, 7, 6))
    fabric = "/libfabric/lib/libfabric.so.1"
    assert output.splitlines() == [
        "ok     (a) torch maps /system/libnccl.so.2, NCCL 2.27.5; torch 2.8.0+cu126 is for nvidia",
        "ok     (b) it looks for libnccl-net.so and gets /plugin/lib/libnccl-net.so",
        f"ok     (d) it asks for {asked}, and the plugin's v10 is used",
        f"ok     (e) {fabric} reaches GPU memory through /libfabric/lib/libcudart.so",
        "ok     (c) /plugin/lib/libnccl-net.so finds its 5 libraries without LD_LIBRARY_PATH",
        "ok     (e) fi_info lists cxi, tcp",
    ]


def torch_of_another_vendor(world: World) -> None:
    world.torch(world.system / "libnccl.so.2", cuda=None, hip="6.4")


def torch_without_nccl(world: World) -> None:
    world.torch()


def no_nccl(world: World) -> None:
    world.torch(cuda=None)
    (world.system / "libnccl.so.2").unlink()


def wrong_name(world: World) -> None:
    (world.plugins / "libnccl-net.so").rename(world.plugins / "librccl-net.so")


def another_before_it(world: World) -> None:
    shutil.copy(world.plugins / "libnccl-net.so", world.system)
    (world.plugins / "libnccl-net.so").rename(world.plugins / "libnccl-net-ofi.so")


def takes_no_plugins(world: World) -> None:
    world.nccl("")


def dependency_missing(world: World) -> None:
    (world.system / "libhwtoy.so.1").unlink()


def symbol_missing(world: World) -> None:
    world.library(world.system / "libhwtoy.so.1", "int other(void) { return 0; }\n")


def found_by_luck(world: World) -> None:
    """Leave only LD_LIBRARY_PATH to find it, which the site may change."""
    world.library(world.folder / "elsewhere" / "libluck.so.1", "int luck(void) { return 0; }\n")
    fabric = world.fabric / "lib" / "libfabric.so.1"
    source = FABRIC + "int luck(void);\nint lucky(void) { return luck(); }\n"
    luck = world.folder / "elsewhere" / "libluck.so.1"
    world.compile(fabric, source, "-shared", "-fPIC", "-Wl,-soname,libfabric.so.1", str(luck))
    shutil.copy(luck, world.system)


def two_libfabrics(world: World) -> None:
    """Load another libfabric into the process, as MPI may do."""
    other = world.folder / "mpi" / "libfabric.so.9"
    world.library(other, FABRIC)
    world.torch(world.system / "libnccl.so.2", other)


def two_hip_runtimes(world: World) -> None:
    """Add the wheel's own, and another ROCm at /opt/rocm, which the plugin was linked with."""
    wheel, rocm = world.folder / "wheel", world.folder / "rocm"
    world.library(wheel / "libamdhip64.so", "int hip = 7;\n", soname="libamdhip64.so.7")
    world.library(rocm / "libamdhip64.so.6", "int hip = 6;\n")
    world.library(
        world.system / "libhwtoy.so.1",
        "int hwloc(void) { return 0; }\n",
        rocm / "libamdhip64.so.6",
    )
    world.torch(world.system / "libnccl.so.2", wheel / "libamdhip64.so")


def old_interface(world: World) -> None:
    world.plugin("libnccl-net.so", "5 4")


def no_provider(world: World) -> None:
    source = FI_INFO.replace("cxi:", "shm:")
    world.program(world.fabric / "bin" / "fi_info", source, world.fabric / "lib" / "libfabric.so.1")


def another_release(world: World) -> None:
    source = FI_INFO.replace("2.3.1", "2.1.0")
    world.program(world.fabric / "bin" / "fi_info", source, world.fabric / "lib" / "libfabric.so.1")


def fi_info_of_another(world: World) -> None:
    other = world.folder / "usr" / "libfabric.so.1"
    world.library(other, FABRIC)
    world.program(world.fabric / "bin" / "fi_info", FI_INFO, other)


def no_gpu_memory(world: World) -> None:
    fabric = world.fabric / "lib" / "libfabric.so.1"
    world.library(fabric, FABRIC.replace("libcudart", "libother"))


def no_gpu_runtime(world: World) -> None:
    """Hide it; the machine that runs this test may have a CUDA of its own."""
    (world.fabric / "lib" / "libcudart.so").write_text("no library")


BROKEN: list[tuple[Callable[[World], None], str]] = [
    (torch_of_another_vendor, r"\(a\) torch 2.8.0\+cu126 is for amd, but the plugin is for nvidia"),
    (torch_without_nccl, r"\(a\) torch maps no NCCL: it was built without"),
    (no_nccl, r"\(a\) no NCCL in the image: .*libnccl.so.2: cannot open shared object"),
    (wrong_name, r"\(b\) it looks for libnccl-net.so, which does not load: .*No such file"),
    (another_before_it, r"\(b\) .* gets \S*/system/libnccl-net.so, not the plugin in"),
    (takes_no_plugins, r"\(b\) \S*libnccl.so.2 holds no name of a network plugin"),
    (dependency_missing, r"\(c\) .*libhwtoy.so.1 => not found"),
    (symbol_missing, r"\(c\) .*undefined symbol: hwloc"),
    (found_by_luck, r"\(c\) .*libluck.so.1 => not found"),
    (two_hip_runtimes, r"\(c\) one process gets 2 libamdhip64: \S*rocm\S*, \S*wheel"),
    (two_libfabrics, r"\(c\) one process gets 2 libfabric: "),
    (old_interface, r"\(d\) \S*libnccl-net.so exports none of what this NCCL asks for"),
    (no_provider, r"\(e\) fi_info lists shm, tcp, not cxi"),
    (another_release, r"\(e\) libfabric is not release 2.3.1: libfabric: 2.1.0"),
    (fi_info_of_another, r"\(e\) \S*libnccl-net.so takes \S*, but \S*fi_info \S*usr"),
    (no_gpu_memory, r"\(e\) \S*libfabric.so.1 was built without GPU memory"),
    (no_gpu_runtime, r"\(e\) \S*libfabric.so.1 does not find libcudart.so for GPU memory"),
]


@pytest.mark.parametrize(("spoil", "message"), BROKEN, ids=[spoil.__name__ for spoil, _ in BROKEN])
def test_the_broken_part_is_named(
    world: World, spoil: Callable[[World], None], message: str
) -> None:
    assert world.prove().returncode == 0
    spoil(world)
    done = world.prove()
    assert done.returncode == 1, done.stdout
    assert re.search(f"^BROKEN {message}", done.stdout, re.MULTILINE), done.stdout
    assert "findings are broken" in done.stderr


def test_a_torch_that_dies_fails_the_proof(world: World) -> None:
    text = world.folder / "packages" / "torch" / "__init__.py"
    text.write_text("import os, signal\nos.kill(os.getpid(), signal.SIGSEGV)\n")
    done = world.prove()
    assert done.returncode == 1
    assert "BROKEN (a) importing torch or loading the plugin ended with -11" in done.stdout


def test_without_torch_it_is_the_library_that_the_loader_gives(world: World) -> None:
    shutil.rmtree(world.folder / "packages")
    done = world.prove()
    assert done.returncode == 0, done.stdout
    assert (
        f"(a) the loader gives {world.system}/libnccl.so.2, NCCL 2.27.5; torch is absent"
        in done.stdout
    )


def test_a_torch_for_cpus_has_none_either(world: World) -> None:
    world.torch(cuda=None)
    done = world.prove()
    assert done.returncode == 0, done.stdout
    assert f"(a) the loader gives {world.system}/libnccl.so.2" in done.stdout


def test_nccl_inside_torch(world: World) -> None:
    """Find NCCL in libtorch_cuda.so, as in the wheels for CUDA 11."""
    inside = world.folder / "packages" / "torch" / "lib" / "libtorch_cuda.so"
    shutil.move(world.system / "libnccl.so.2", inside)
    world.torch(inside)
    done = world.prove()
    assert done.returncode == 0, done.stdout
    assert f"(a) torch maps {inside}, NCCL" in done.stdout


def test_a_torch_that_needs_the_driver_is_read_not_imported(world: World) -> None:
    """Read Debian's torch for CUDA, which needs the driver's libcuda.so.1."""
    world.library(world.folder / "driver" / "libcuda.so.1", "int cuda(void) { return 0; }\n")
    part = world.folder / "packages" / "torch" / "lib" / "libtorch_cuda.so"
    links = (world.system / "libnccl.so.2", world.folder / "driver" / "libcuda.so.1")
    declared = "int ncclGetVersion(int *); int cuda(void);\n"
    use = "int use(int *version) { return ncclGetVersion(version) + cuda(); }\n"
    world.library(part, declared + use, *links)
    links[1].unlink()
    world.torch(part)
    done = world.prove()
    assert done.returncode == 0, done.stdout
    assert f"(a) torch would map {links[0]}, NCCL 2.27.5; torch cannot be imported" in done.stdout
    assert "libcuda.so.1" in done.stdout


@pytest.mark.parametrize(
    ("names", "opened"),
    [
        ("libnccl-net libnccl-net.so", "libnccl-net.so"),
        # NCCL 2.18 to 2.23: the short name is not a string of its own (seen in NVIDIA's libraries).
        ("libnccl-net-%s.so -net.so", "libnccl-net.so"),
        # RCCL of ROCm 5 and 6, of ROCm 7.0 and 7.1, of 7.2.
        ("librccl-net-%s.so librccl-net.so", "librccl-net.so"),
        ("librccl-net", "librccl-net.so"),
        ("librccl-net libnccl-net.so", "libnccl-net.so"),
    ],
)
def test_the_name_is_the_one_in_the_library(world: World, names: str, opened: str) -> None:
    world.nccl(names)
    (world.plugins / "libnccl-net.so").rename(world.plugins / "plugin.so")
    (world.plugins / opened).symlink_to("plugin.so")
    done = world.prove()
    assert f"ok     (b) it looks for {opened} and gets" in done.stdout


@pytest.mark.parametrize(
    ("version", "setting", "good"),
    [
        (22705, "libnccl-net-ofi.so", True),
        (22705, "ofi", True),
        (22705, "none", False),
        (22705, "spectrum-x", False),
        # Older ones always put it between prefix and ending.
        (22005, "ofi", True),
        (22005, "libnccl-net-ofi.so", False),
    ],
)
def test_nccl_net_plugin_is_heeded(world: World, version: int, setting: str, *, good: bool) -> None:
    world.nccl("libnccl-net-%s.so libnccl-net", version=version)
    (world.plugins / "libnccl-net.so").rename(world.plugins / "libnccl-net-ofi.so")
    done = world.prove(NCCL_NET_PLUGIN=setting)
    assert (done.returncode == 0) is good, done.stdout


def test_the_hip_of_a_wheel_serves_a_plugin_for_the_same_release(world: World) -> None:
    """Compare the SONAME: PyTorch's wheels rename only the file (.ci/manywheel/build_common.sh)."""
    wheel, rocm = world.folder / "wheel", world.folder / "rocm"
    world.library(wheel / "libamdhip64.so", "int hip = 7;\n", soname="libamdhip64.so.7")
    world.library(rocm / "libamdhip64.so.7", "int hip = 7;\n")
    toy = world.system / "libhwtoy.so.1"
    world.library(toy, "int hwloc(void) { return 0; }\n", rocm / "libamdhip64.so.7")
    world.torch(world.system / "libnccl.so.2", wheel / "libamdhip64.so")
    done = world.prove()
    assert done.returncode == 0, done.stdout


def test_rocm_as_python_packages(world: World) -> None:
    """Give libfabric the HSA runtime of torch, in place of a second one in /opt/rocm."""
    packages, rocm = world.folder / "packages", world.folder / "rocm" / "libhsa-runtime64.so"
    runtime = packages / "_rocm_sdk_core" / "lib" / "libhsa-runtime64.so.1"
    rccl = packages / "_rocm_sdk_libraries" / "lib" / "librccl.so.1"
    for path in (runtime, rocm):
        world.library(path, "int hsa = 1;\n", soname=runtime.name)
    names = '"librccl-net", "libnccl-net.so", "ncclNetPlugin_v10"'
    source = LIBRARY.replace("NAMES", names).replace("VERSION", "22705")
    world.library(rccl, source, runtime)
    fabric = world.fabric / "lib" / "libfabric.so.1"
    world.library(fabric, FABRIC.replace("libcudart", "libhsa-runtime64"))
    (opened := fabric.with_name(rocm.name)).symlink_to(rocm)
    world.torch(rccl, cuda=None, hip="7.14")
    done = world.prove(gpu="amd")
    two = f"BROKEN (c) one process gets 2 libhsa-runtime64: {runtime}, {rocm}\n"
    assert two in done.stdout, done.stdout
    for _ in range(2):
        assert run([SHARE, packages, world.fabric]).returncode == 0
        assert world.prove(gpu="amd").returncode == 0
    assert (opened.resolve(), runtime.with_suffix("").readlink().name) == (runtime, runtime.name)


def test_an_rpath_of_nccl_comes_before_the_cache(world: World) -> None:
    """Search torch/lib first, as PyTorch's ROCm wheels do."""
    own = world.folder / "packages" / "torch" / "lib"
    own.mkdir(parents=True, exist_ok=True)
    shutil.copy(world.plugins / "libnccl-net.so", own)
    text = '"libnccl-net.so", "ncclNetPlugin_v8"'
    source = f"const char *const names[] = {{{text}}};\n"
    flags = ["-shared", "-fPIC", "-Wl,-soname,libnccl.so.2", "-Wl,--disable-new-dtags"]
    world.compile(own / "libnccl.so.2", source, *flags, "-Wl,-rpath,$ORIGIN")
    world.torch(own / "libnccl.so.2")
    done = world.prove()
    assert f"BROKEN (b) it looks for libnccl-net.so and gets {own}/libnccl-net.so" in done.stdout


def test_the_layer_libfabric_is_proved(world: World) -> None:
    options = ["--libfabric", world.fabric, "--provider", "cxi", "--release", "2.3.1"]
    words = ["libfabric", *options, "--gpu", "nvidia"]
    good = run(["python3", PROOF, *words])
    assert good.returncode == 0, good.stdout + good.stderr
    assert good.stdout.count("ok     (c)") == 3
    no_gpu_runtime(world)
    bad = run(["python3", PROOF, *words])
    assert bad.returncode == 1
    assert "does not find libcudart.so" in bad.stdout


def test_a_real_library_is_read() -> None:
    """Read the C library of this machine, whose name and needs are known."""
    script = (
        "import sys; sys.path.insert(0, sys.argv[1]); from fabric_proof import elf;"
        " import glob; print(elf.read(glob.glob('/lib*/*-linux-gnu/libm.so.6')[0]))"
    )
    done = run(["python3", "-c", script, ROOT / "defs" / "layers" / "libfabric" / "files"])
    assert "soname='libm.so.6'" in done.stdout, done.stderr
    assert "'libc.so.6'" in done.stdout
