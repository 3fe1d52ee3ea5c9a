"""The folder /.sifwright of a container, as the archive that an engine takes."""

import io
import tarfile
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path

from sifwright.catalog.model import LayerFile
from sifwright.make_image.pack_layers.pack_files import write_files
from sifwright.make_image.resolve_request.host_settings import Settings
from sifwright.make_image.run_steps import build_folder
from sifwright.plan.model import Plan
from sifwright.render import build_files, oci_config, shell

# Two blocks of zeros end an archive.
_END = 2 * tarfile.BLOCKSIZE
# The program of a container; the words after it name the step in the image's history.
ENTER = ("/bin/sh", f"{build_files.BUILD}/enter")


def step(
    build: Path, plan: Plan, number: int, settings: Settings, kept: Mapping[str, str]
) -> bytes:
    """Return the archive that runs a step; `build` is a new folder."""
    build_folder.prepare(build, plan, number, settings, kept)
    return _archive(build)


def closing(build: Path, files: Iterable[LayerFile]) -> bytes:
    """Return the archive that writes the files of the plan into the image."""
    carried, lines = f"{build_files.BUILD}/files", ["set -e", "umask 022"]
    build.mkdir()
    for number, file in enumerate(files):
        copy = replace(file, path=f"{carried}/{number}", executable=False)
        write_files(build, [copy], build_files.BUILD)
        target = shell.quote(file.path)
        lines.append(shell.make_folders({file.path.rpartition("/")[0]}))
        lines += [f"cp {carried}/{number} {target}", f"chmod 644 {target}"]
    lines.append(f"rm -f {build_files.BUILD}/archive")
    (build / "run").write_text("\n".join([*lines, ""]), encoding="utf-8")
    return _archive(build)


def program(build: Path, files: Iterable[LayerFile], machine: Path, command: str) -> bytes:
    """Return the archive that runs a command with the machine's settings and these files."""
    build_folder.copy_settings(build, machine)
    write_files(build, files, build_files.BUILD)
    (build / "run").write_text(f"set -ex\numask 022\n{command}\n", encoding="utf-8")
    return _archive(build)


def _archive(build: Path) -> bytes:
    """Return the folder as an archive of /.sifwright, all of it root's."""
    (build / "enter").write_text(
        build_files.package_text("render/templates/enter.sh"), encoding="utf-8"
    )
    write_files(build, [oci_config.surround()], build_files.BUILD)
    with io.BytesIO() as file:
        with tarfile.open(fileobj=file, mode="w") as archive:
            archive.add(build, arcname=build_files.BUILD.lstrip("/"), filter=_of_root)
            end = archive.offset + _END
        # Podman 4.3 does not read the zeros behind the end, and fails over them now and then.
        return file.getvalue()[:end]


def _of_root(entry: tarfile.TarInfo) -> tarfile.TarInfo:
    entry.uid = entry.gid = 0
    entry.uname = entry.gname = "root"
    return entry
