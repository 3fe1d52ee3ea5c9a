"""Lint rules about binds and libraries of the host that hide those of an image."""

from collections.abc import Iterator
from pathlib import PurePosixPath

from sifwright.catalog.model import Site
from sifwright.catalog.yaml_file import Path
from sifwright.plan.lint.rule import Violation

# Parts of glibc, which must all be of one version.
_GLIBC = ("ld-linux", "libc.so", "libdl.so", "libm.so", "libpthread.so", "libresolv.so", "librt.so")
_JANSSON = ("libjansson.so",)
_ABOVE = ("/", "/usr")
_FOLDERS = ("/lib", "/usr/lib")
_FOLDERS_64 = ("/lib64", "/usr/lib64")
_TRIPLES = ("x86_64-linux-gnu", "aarch64-linux-gnu")


def _searched(site: Site) -> tuple[str, ...]:
    """Return the folders in which an image looks for libraries, and glibc for its loader."""
    of_triples = (f"{folder}/{triple}" for folder in _FOLDERS for triple in _TRIPLES)
    # On aarch64 the loader is in /lib, and Debian searches no lib64.
    of_64 = () if site.processor == "aarch64" else _FOLDERS_64
    return (*_FOLDERS, *of_triples, *of_64)


def _binds(site: Site) -> Iterator[tuple[Path, str]]:
    for number, bind in enumerate(site.binds):
        yield ("container", "binds", number), bind
    for number, bind in enumerate(site.host_mpi.binds if site.host_mpi else ()):
        yield ("mpi", "host", "binds", number), bind


def _over(site: Site, names: tuple[str, ...]) -> Iterator[tuple[Path, str]]:
    """Yield binds that put one of these files, or its whole folder, into a library folder."""
    searched = _searched(site)
    for path, bind in _binds(site):
        source, _, target = bind.partition(":")
        path_inside = PurePosixPath(target or source)
        of_file = str(path_inside.parent) in searched and path_inside.name.startswith(names)
        if of_file or str(path_inside) in (*_ABOVE, *searched):
            yield path, source


def _key(path: Path) -> str:
    return ".".join(str(part) for part in path[:-1])


def host_glibc(site: Site) -> Iterator[Violation]:
    """Yield binds and libraries that put the host's glibc over that of an image."""
    for path, source in _over(site, _GLIBC):
        message = f"{_key(path)}: the host's {source} hides the image's own"
        fix = f"Leave it out, or bind it elsewhere: {source}:/host{source}."
        yield Violation(path=path, what=message, fix=fix)
    for number, file in enumerate(site.host_mpi.libraries if site.host_mpi else ()):
        if PurePosixPath(file).name.startswith(_GLIBC):
            message = f"mpi.host.libraries: the host's {file} is found before the image's own"
            path = ("mpi", "host", "libraries", number)
            yield Violation(path=path, what=message, fix="Leave it out.")


def host_jansson(site: Site) -> Iterator[Violation]:
    """Yield binds that put the host's libjansson over that of an image."""
    for path, _ in _over(site, _JANSSON):
        message = f"{_key(path)}: the host's libjansson hides a newer one in the image"
        fix = "Leave it out: images with their own libcxi bring the libjansson it needs."
        yield Violation(path=path, what=message, fix=fix)
