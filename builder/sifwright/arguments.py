"""The arguments of commands, in groups that several commands take."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import argparse

__all__ = ["ARGUMENTS"]


def _kind(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "kind", nargs="?", choices=("sites", "images", "layers"), help="only these"
    )


def _thing(command: argparse.ArgumentParser) -> None:
    command.add_argument("kind", choices=("site", "image", "layer"), help="what it is")
    command.add_argument("name", metavar="NAME", help="a name of 'sifwright list'")


def _image(command: argparse.ArgumentParser) -> None:
    command.add_argument("site", metavar="SITE", help="a site of 'sifwright list'")
    command.add_argument(
        "image", metavar="IMAGE", nargs="?", default="", help="an image; default: the site's"
    )


def _set(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--set",
        dest="settings",
        action="append",
        default=[],
        metavar="LAYER.OPTION=VALUE",
        help="give an option a value; may be repeated",
    )


def _explain(command: argparse.ArgumentParser) -> None:
    command.add_argument("--explain", action="store_true", help="show every option and who set it")


def _json(command: argparse.ArgumentParser) -> None:
    command.add_argument("--json", action="store_true", help="print JSON")


def _output(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--output", default="build", metavar="DIR", help="where images go: DIR/SITE/IMAGE (build)"
    )


def _talk(command: argparse.ArgumentParser) -> None:
    group = command.add_mutually_exclusive_group()
    group.add_argument("--quiet", action="store_true", help="print errors only")
    group.add_argument("--verbose", action="store_true", help="show the engine's output too")
    group.add_argument("--json", action="store_true", help="print one JSON object per event")


def _force(command: argparse.ArgumentParser) -> None:
    add = command.add_argument
    add("--force", action="store_true", help="build even if it is up to date")
    add(
        "--tests",
        choices=("all", "changed"),
        default="all",
        help="run those of all layers (all), or those that have not passed as they are now",
    )
    add("--no-cache", action="store_true", help="run every step, and keep none of the results")
    add(
        "--layout",
        choices=("layered", "flat"),
        help="a partition for each layer, or one for all; default: the site's",
    )


def _engine(command: argparse.ArgumentParser) -> None:
    add = command.add_argument
    add(
        "--engine",
        choices=("apptainer", "docker"),
        default="apptainer",
        help="what runs the steps: apptainer, or Docker Engine or podman's service (docker)",
    )
    add(
        "--format",
        choices=("sif", "image"),
        help="what comes of it: a SIF, or an image in the engine (docker's default)",
    )


def _extend(command: argparse.ArgumentParser) -> None:
    add = command.add_argument
    add("--requirements", required=True, metavar="FILE", help="what pip is to install")
    add("--name", default="", metavar="NAME", help="of the image that this makes (IMAGE-extended)")
    add("--dry-run", action="store_true", help="show the plan only, as 'sifwright plan' does")


def _recipe(command: argparse.ArgumentParser) -> None:
    add = command.add_argument
    add("recipe", metavar="FILE", help="a Dockerfile, or a definition file of Apptainer")
    add("--name", default="", metavar="NAME", help="of the image; default: the file's or folder's")
    add("--context", default="", metavar="DIR", help="where it copies from; default: its folder")
    add("--output", default="", metavar="DIR", help="folder defs/ to write to (the project's)")
    add("--offline", action="store_true", help="ask no registry what the base image says of itself")
    add("--dry-run", action="store_true", help="say what would be written, and write nothing")


def _site_module(command: argparse.ArgumentParser) -> None:
    add = command.add_argument
    add("site", metavar="SITE", help="a site of 'sifwright list'")
    add("--module", required=True, metavar="NAME/VERSION", help="the module, with its version")
    add("--output", default="", metavar="FILE", help="file to write; default: standard output")


def _native(command: argparse.ArgumentParser) -> None:
    _site_module(command)
    add = command.add_argument
    add("--prefix", required=True, metavar="DIR", help="where bin/ and lib/ of it are")
    add("--python", default="", metavar="VERSION", help="as in 3.12 (looked for below the prefix)")
    add("--format", choices=("lua", "tcl"), default="lua", help="of the modulefile (lua)")


def _pins(command: argparse.ArgumentParser) -> None:
    add = command.add_argument
    add("layer", nargs="?", default="", metavar="LAYER", help="only this layer")
    add("source", nargs="?", default="", metavar="SOURCE", help="only this source of it")
    add("version", nargs="?", default="", metavar="VERSION", help="only this version of it")
    add("--add", action="store_true", help="look the version up and pin it")
    add("--check", action="store_true", help="compare with what is there now")


def _cache(command: argparse.ArgumentParser) -> None:
    add = command.add_argument
    add("action", choices=("list", "verify", "prune"), help="what to do")
    add("--keep-size", default="", metavar="SIZE", help="prune: what may stay: 50G, 500M, 1.5T")
    add("--dry-run", action="store_true", help="prune: say what would go")


def _two(command: argparse.ArgumentParser) -> None:
    text = "a SIF, a plan.json or record.json, or SITE or SITE/IMAGE as defs/ has it now"
    command.add_argument("old", metavar="A", help=text)
    command.add_argument("new", metavar="B", help="the same")


def _report_of(command: argparse.ArgumentParser) -> None:
    _image(command)
    command.add_argument(
        "--output", default="", metavar="FILE", help="file to write (build/SITE/IMAGE/report.html)"
    )


def _flatten(command: argparse.ArgumentParser) -> None:
    command.add_argument("sif", metavar="SIF", help="a layered SIF")
    command.add_argument("target", metavar="TARGET", help="where the flat one goes")
    command.add_argument(
        "--compression",
        choices=("zstd", "gzip"),
        default="",
        help="of its squashfs (as the layers'; another one takes as long as packing anew)",
    )


def _render(command: argparse.ArgumentParser) -> None:
    add = command.add_argument
    add(
        "--format",
        choices=("definition", "dockerfile"),
        default="definition",
        help="what to write: Apptainer's definition file (definition), or a Dockerfile",
    )
    add(
        "--output",
        default="",
        metavar="DIR",
        help="of a Dockerfile: the folder to write it into, with all it copies "
        "(build/SITE/IMAGE/docker); '-' prints the Dockerfile alone",
    )


def _at(command: argparse.ArgumentParser) -> None:
    command.add_argument("--at", required=True, metavar="LAYER", help="the layer to stand before")


def _folder(command: argparse.ArgumentParser) -> None:
    command.add_argument("folder", metavar="DIR", help="a folder that is not there yet")


def _sif(command: argparse.ArgumentParser) -> None:
    command.add_argument("sif", metavar="SIF", help="the image file")


def _any_image(command: argparse.ArgumentParser) -> None:
    add = command.add_argument
    add(
        "image",
        metavar="IMAGE",
        help="docker://NAME, oci-archive:FILE, oci:FOLDER, docker-archive:FILE,"
        " docker-daemon:NAME, or a SIF",
    )
    add("--processor", default="", metavar="NAME", help="as in aarch64; default: this machine's")


def _comm(command: argparse.ArgumentParser) -> None:
    add = command.add_argument
    add("--nodes", type=int, default=0, help="nodes to use (all of the allocation)")
    add("--ranks-per-node", type=int, default=0, metavar="N", help="ranks per node (one per GPU)")
    add("--backend", default="", choices=("gloo", "mpi", "nccl"), help="default: nccl with GPUs")
    add("--min-size", default="1K", metavar="SIZE", help="smallest size in bytes, or K, M, G (1K)")
    add("--max-size", default="512M", metavar="SIZE", help="largest size (512M)")
    add("--launch", default="", metavar="COMMAND", help="start a rank per task with this instead")


def _job(command: argparse.ArgumentParser) -> None:
    add = command.add_argument
    add("--site", required=True, metavar="SITE", help="a site of 'sifwright list'")
    add("--nodes", required=True, type=int, metavar="N", help="nodes of the job")
    add(
        "--launcher",
        default="",
        help="srun, mpiexec, mpirun, flux or torchrun; default: the site's",
    )
    add("--engine", default="", choices=("container", "native"), help="default: the site's")
    add("--image", default="", metavar="IMAGE", help="which built image; default: the site's")
    add("--sif", default="", metavar="PATH", help="the SIF; default: $SIF, else what was built")
    add("--environment", default="", metavar="DIR", help="virtual environment of engine native")
    add("--host-mpi", action="store_true", help="the site's MPI in place of the image's")
    add("--tasks-per-node", type=int, metavar="N", help="ranks on each node; default: one per GPU")
    add("--time", default="", metavar="HH:MM:SS", help="wall time; default: the site's")
    add("--account", default="", metavar="PROJECT", help="project that pays for the job")
    add("--name", default="", help="name of the job; default: the script's")
    add("--signal", default="", metavar="NAME@SECONDS", help="signal sent before the time is up")
    add("--output", default="", metavar="FILE", help="file to write; default: standard output")
    add(
        "arguments", nargs="+", metavar="SCRIPT", help="-- and the Python script with its arguments"
    )


def _installed(command: argparse.ArgumentParser) -> None:
    add = command.add_argument
    add("--from", dest="sif", default="", metavar="SIF", help="an image that somebody else built")
    add(
        "--central",
        nargs="?",
        const="",
        metavar="PATH",
        help="install no image: it is in this folder of the site; default: the site's",
    )
    add(
        "--date",
        default="",
        metavar="YYYYMMDD",
        help="of an image that will be built then; with --central",
    )


def _module(command: argparse.ArgumentParser) -> None:
    add = command.add_argument
    add("--format", required=True, choices=("lua", "tcl"), help="for Lmod, or for all")
    add("--root", required=True, metavar="DIR", help="the folder of the installation")
    add("--install", action="store_true", help="put the installation there as well")
    add("--write", dest="modulefile", default="", metavar="FILE", help="default: print it")


ARGUMENTS = {
    "any_image": _any_image,
    "installed": _installed,
    "module": _module,
    "at": _at,
    "render": _render,
    "cache": _cache,
    "flatten": _flatten,
    "report": _report_of,
    "two": _two,
    "job": _job,
    "kind": _kind,
    "thing": _thing,
    "comm": _comm,
    "image": _image,
    "set": _set,
    "explain": _explain,
    "json": _json,
    "output": _output,
    "talk": _talk,
    "force": _force,
    "engine": _engine,
    "extend": _extend,
    "native": _native,
    "site_module": _site_module,
    "pins": _pins,
    "recipe": _recipe,
    "folder": _folder,
    "sif": _sif,
}
