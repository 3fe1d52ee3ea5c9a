"""Load everything below `defs/`, or report all mistakes at once."""

import errno
import gc
import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any, TypeVar

from sifwright.catalog import (
    checked_documents,
    parse_catalog,
    references,
    schema,
    script_rules,
    site_environment,
    yaml_document,
    yaml_file,
)
from sifwright.catalog.model import Catalog, Image, Layer, LayerFile, Site
from sifwright.errors import CatalogError, Problem
from sifwright.system import small_file

# Names become file names, labels and environment variables.
_NAME = re.compile(r"[a-z][a-z0-9]*([-.][a-z0-9]+)*")
MAX_FILE_BYTES = 4 << 20
_SMALL_FIXES = {
    errno.EFBIG: "Download it in install.sh.",
    errno.EINVAL: "Put a regular file there.",
}
T = TypeVar("T", Site, Image)


def load_catalog(defs: Path, project: Path) -> Catalog:
    """Read all sites, images, layers and the version tables.

    `project` is the folder that `include:` names are taken from. Raises `CatalogError` with every
    problem of every file, each with its file and line.
    """
    reader = _CatalogReader(defs=defs, project=project)
    with _without_collector():
        catalog = reader.catalog()
    problems = reader.problems or list(references.broken_references(catalog, reader.location))
    if problems:
        raise CatalogError(*problems)
    return catalog


def load_part(defs: Path, project: Path, site: str, image: str) -> Catalog | None:
    """Read the files of one image of a site; `image` is empty for the site's own.

    Returns None if one of them is not there, or has a mistake: `load_catalog` says which.
    """
    with _without_collector(), checked_documents.cached() as known:
        reader = _CatalogReader(defs=defs, project=project, known=known)
        catalog = reader.part(site, image)
    return None if reader.problems else catalog


@contextmanager
def _without_collector() -> Iterator[None]:
    """Look for no circles among 100,000 new objects, which takes a tenth of the time (measured)."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


@dataclass
class _CatalogReader:
    """A reader that collects problems, so that one mistake does not hide the next.

    `known` is the data of texts that have no mistake.
    """

    defs: Path
    project: Path
    known: dict[str, Any] | None = None
    problems: list[Problem] = field(default_factory=list)
    lines: dict[str, dict[yaml_document.Path, int]] = field(default_factory=dict)
    included: list[tuple[str, tuple[LayerFile, ...]]] = field(default_factory=list)

    def catalog(self) -> Catalog:
        folders = (path for path in (self.defs / "layers").glob("*") if path.is_dir())
        return self.of_parts(
            self.yaml_files(self.yaml_folder("sites"), "site", parse_catalog.site),
            self.yaml_files(self.yaml_folder("images"), "image", parse_catalog.image),
            self.layers(folders),
        )

    def part(self, site: str, image: str) -> Catalog | None:
        """Return the catalog of an image's files, unless one is not there."""
        sites = self.yaml_files(self.named_files("sites", site), "site", parse_catalog.site)
        image = image or next((known.image for known in sites.values()), "")
        images = self.yaml_files(self.named_files("images", image), "image", parse_catalog.image)
        slots = chain.from_iterable(known.layers for known in images.values())
        names = {name for slot in slots for name in slot.choices}
        layers = self.layers(self.defs / "layers" / name for name in names)
        is_whole = sites and images and names == layers.keys()
        return self.of_parts(sites, images, layers) if is_whole else None

    def of_parts(
        self, sites: dict[str, Site], images: dict[str, Image], layers: dict[str, Layer]
    ) -> Catalog:
        versions = self.document(self.defs / "versions.yaml", "versions") or {}
        return Catalog(
            sites=sites,
            images=images,
            layers=layers,
            versions=parse_catalog.versions(versions),
            included=tuple(self.included),
        )

    def location(self, file: str, path: yaml_document.Path) -> str:
        """Return file and line of a value, as a message begins; `file` is below `defs`."""
        return f"{self.name(self.defs / file)}:{self.lines[file].get(path, 1)}"

    def name(self, path: Path) -> str:
        """Return the path as a user of a checkout would type it."""
        try:
            return str(path.relative_to(self.defs.parent))
        except ValueError:
            return str(path)

    def add(self, path: Path, message: str, fix: str) -> None:
        self.problems.append(Problem(where=self.name(path), what=message, fix=fix))

    def read(self, path: Path) -> bytes | None:
        try:
            if self.leads_out(path):
                self.add(path, "it, or a folder it is in, is a link", "Put a regular file there.")
                return None
            return small_file.read_bytes(path, MAX_FILE_BYTES)
        except small_file.NotSmallError as error:
            self.add(path, error.strerror, _SMALL_FIXES[error.errno])
        except OSError as error:
            self.add(path, f"cannot be read: {error.strerror}", "Add the file or mend its mode.")
        return None

    def leads_out(self, path: Path) -> bool:
        """Return whether the path has a link in it, which could lead to other people's files."""
        top = self.defs if path.is_relative_to(self.defs) else self.project
        return Path(os.path.realpath(path)) != Path(os.path.realpath(top), path.relative_to(top))

    def document(self, path: Path, kind: str) -> dict[str, Any] | None:
        """Read and check one YAML file; None if anything is wrong with it."""
        text = self.read(path)
        if text is None:
            return None
        if self.known is None:
            return self.checked(path, text, kind)
        digest = checked_documents.digest(text, kind)
        is_known = digest in self.known
        data = self.known.pop(digest) if is_known else self.checked(path, text, kind)
        if data is not None:
            self.known[digest] = data
        return data

    def checked(self, path: Path, text: bytes, kind: str) -> dict[str, Any] | None:
        try:
            document = yaml_file.parse_yaml(text, self.name(path))
        except CatalogError as error:
            self.problems += error.problems
            return None
        self.lines[path.relative_to(self.defs).as_posix()] = document.lines
        problems = list(schema.check_document(document, kind, self.name(path)))
        self.problems += problems
        return None if problems else document.data

    def named(self, paths: Iterator[Path]) -> Iterator[Path]:
        for path in sorted(paths):
            name = path.name.removesuffix(".yaml")
            if path.name.startswith("."):
                continue
            if _NAME.fullmatch(name):
                yield path
            else:
                self.add(path, f"'{name}' is not a name", "Use lower-case words joined by '-'.")

    def yaml_folder(self, folder: str) -> Iterator[Path]:
        for path in sorted((self.defs / folder).glob("*.yml")):
            self.add(path, "its name ends in .yml", f"Rename it to {path.stem}.yaml.")
        yield from (self.defs / folder).glob("*.yaml")

    def named_files(self, folder: str, name: str) -> Iterator[Path]:
        path = self.defs / folder / f"{name}.yaml"
        if path.is_file():
            yield path

    def yaml_files(
        self, paths: Iterator[Path], kind: str, make: Callable[[str, dict[str, Any]], T]
    ) -> dict[str, T]:
        entries = {}
        for path in self.named(paths):
            data = self.document(path, kind)
            if data is not None:
                entries[path.stem] = make(path.stem, data)
        return entries

    def layers(self, folders: Iterator[Path]) -> dict[str, Layer]:
        layers = ((path.name, self.layer(path)) for path in self.named(folders))
        return {name: layer for name, layer in layers if layer is not None}

    def layer(self, folder: Path) -> Layer | None:
        before = len(self.problems)
        data = self.document(folder / "layer.yaml", "layer")
        install = self.script(folder / "install.sh")
        test = self.test(folder, (data or {}).get("test", ""))
        files = tuple(self.files(folder, data or {}))
        sources = parse_catalog.sources(self.pins(folder / "pins.yaml"))
        if data is None or len(self.problems) > before:
            return None
        scripts = install, test
        return parse_catalog.layer(folder.name, data, scripts=scripts, files=files, sources=sources)

    def test(self, folder: Path, shared: str) -> str:
        """Return the layer's test.sh, or the test of the layer that it shares."""
        own = folder / "test.sh"
        if shared and os.path.lexists(own):
            self.add(own, f"the header names the test of '{shared}'", "Keep one of the two.")
        if shared:
            return self.script(folder.parent / shared / "test.sh")
        return self.script(own) if os.path.lexists(own) else ""

    def pins(self, path: Path) -> dict[str, Any]:
        return (self.document(path, "pins") or {}) if os.path.lexists(path) else {}

    def script(self, path: Path) -> str:
        data = self.read(path)
        if data is None:
            return ""
        problems = list(script_rules.script_problems(data, self.name(path)))
        self.problems += problems
        return "" if problems else data.decode()

    def files(self, folder: Path, data: dict[str, Any]) -> Iterator[LayerFile]:
        """Yield files/ and patches/ of the layer, and the project folders it includes."""
        yield from self.tree(folder / "files", folder)
        yield from self.tree(folder / "patches", folder)
        for name in data.get("include", ()):
            if name == site_environment.FILE:
                continue  # made when the plan is resolved
            if not (self.project / name).is_dir():
                fix = f"Layer '{folder.name}' includes it: copy it there, or set --project."
                self.add(self.project / name, "no such folder", fix)
            files = tuple(self.tree(self.project / name, self.project))
            self.included.append((name, files))
            yield from files

    def tree(self, top: Path, base: Path) -> Iterator[LayerFile]:
        if top.is_symlink():
            self.add(top, "a link", "Put a regular folder there.")
            return
        for path in sorted(top.rglob("*")):
            name = path.relative_to(base).as_posix()
            if path.is_symlink() or not (path.is_dir() or path.is_file()):
                self.add(path, "a link or special file", "Put a regular file there.")
            elif problem := script_rules.refuse_text(name):
                self.add(path.parent, f"the file name {problem.what}", "Rename the file.")
            elif path.is_file() and "__pycache__" not in path.parts:
                data = self.read(path)
                executable = bool(path.stat().st_mode & 0o111)
                yield LayerFile(path=name, data=data or b"", executable=executable)
