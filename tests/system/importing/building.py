"""Builds a recipe twice, as its author meant it and from our layers, and compares what comes out.

A Dockerfile is built by buildah, a definition file by Apptainer itself. Bases are a few programs of
this machine in a registry on loopback, so nothing is downloaded.
"""

from __future__ import annotations

import json
import os
import shutil
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tests.conftest import run, sifwright
from tests.system.apptainer.steps import CONTENT, DESCRIBE, PYTHON, TIME, Tree, differences
from tests.system.apptainer.toys import make_toy
from tests.system.importing.corpus import converted

if TYPE_CHECKING:
    import subprocess
    from pathlib import Path

# Paths that either engine adds, and folders where running programs leave files.
FOLDERS = ("dev", "proc", "sys", "tmp", "var/tmp", ".singularity.d", "opt/sifwright", "mnt", "run")
FILES = ("etc/hostname", "etc/hosts", "etc/resolv.conf", ".exec", ".run", ".shell", ".test")
LEFT_OUT = {
    *FOLDERS,
    *FILES,
    "environment",
    "singularity",
    *("home", "etc/group", "etc/passwd", "etc/localtime"),
}
BASE = "tiny:1"


@dataclass(frozen=True, kw_only=True)
class Built:
    """The files of an image, without times, and the environment that it starts programs in."""

    tree: Tree
    environment: dict[str, str]


@dataclass(frozen=True, kw_only=True)
class Workshop:
    """`address` is the registry's, `sif` the base as a SIF."""

    folder: Path
    engine: str
    address: str
    limits: Path
    sif: Path

    def buildah(self, *words: object) -> str:
        options = ["--root", self.folder / "storage", "--runroot", self.folder / "run"]
        command = ["buildah", *options, "--storage-driver", "vfs", *words]
        env = os.environ | {"CONTAINERS_CONF": str(self.limits), "TMPDIR": str(self.folder)}
        done = run(command, env=env)
        assert done.returncode == 0, f"{words}: {done.stdout}{done.stderr}"
        return done.stdout.strip()

    def write(self, name: str, text: str, context: Path, file: str = "Dockerfile") -> Path:
        """Write a recipe into its context, and copy both."""
        (context / file).write_text(text)
        return self.copy(context / file, name)

    def copy(self, recipe: Path, name: str) -> Path:
        """Copy a recipe with its context; the copy starts from the base's real address."""
        target = self.folder / name / "recipe"
        shutil.copytree(recipe.parent, target, symlinks=True)
        text = recipe.read_text().replace(BASE, f"{self.address}/{BASE}")
        (target / recipe.name).write_text(text.replace("/tiny.sif", str(self.sif)))
        return target / recipe.name

    def original(self, recipe: Path) -> Built:
        """Build the recipe as its author would."""
        if recipe.suffix == ".def":
            return self.by_apptainer(recipe)
        tag = f"original-{recipe.parent.parent.name}"
        options = ["--isolation", "chroot", "--network", "host", "--tls-verify=false"]
        # Images of OCI have no SHELL.
        options += ["--format", "docker"]
        context = recipe.parent
        self.buildah("bud", *options, "--file", recipe, "--tag", tag, context)
        container = self.buildah("from", tag)
        mounted = self.buildah("mount", container)
        document = json.loads(self.buildah("inspect", "--type", "image", tag))
        lines = document["OCIv1"]["config"].get("Env", [])
        words = (str(PYTHON), "-c", DESCRIBE, mounted, *FOLDERS)
        tree = json.loads(run(words).stdout)
        return Built(tree=_timeless(tree), environment=dict(x.split("=", 1) for x in lines))

    def by_apptainer(self, recipe: Path) -> Built:
        sif = recipe.parent.parent / "original.sif"
        done = self._apptainer("build", "--fakeroot", sif, recipe, cwd=recipe.parent)
        assert done.returncode == 0, f"{done.stdout}{done.stderr}"
        return self.described(sif)

    def by_spython(self, recipe: Path) -> Built | str:
        """Build spython's own translation, or return the reason why it cannot be built."""
        text = converted(recipe)
        definition = recipe.with_name("spython.def")
        definition.write_text(text)
        sif = recipe.parent.parent / "spython.sif"
        done = self._apptainer("build", "--fakeroot", sif, definition, cwd=recipe.parent)
        return done.stderr[-300:] if done.returncode else self.described(sif)

    def ours(self, recipe: Path, *options: str) -> Built:
        """Import and build with the engine, as a user would."""
        folder = recipe.parent.parent
        make_toy(folder / "project", self.sif)
        mirrors = folder / "mirrors.json"
        host, _, _ = self.address.partition("/")
        mirrors.write_text(json.dumps({"oci": {host: f"http://{host}"}}))
        project_options = ["--project", folder / "project"]
        env = os.environ | {"SIFWRIGHT_MIRRORS": str(mirrors)}
        done = sifwright(*project_options, "import", recipe, "--name", "case", env=env)
        assert done.returncode == 0, done.stderr
        output = ["--output", folder / "build", *options]
        done = sifwright(*project_options, "build", "local", "case", *output, env=env)
        assert done.returncode == 0, f"{done.stdout}{done.stderr}"
        return self.described(folder / "build" / "local" / "case" / "image.sif")

    def described(self, sif: Path) -> Built:
        exec_ = ["exec", "--fakeroot", "--containall", "--no-home", "--cleanenv"]
        words = ["/usr/bin/python3", "-c", DESCRIBE, "/", *FOLDERS]
        tree = self._apptainer(*exec_, sif, *words)
        assert tree.returncode == 0, tree.stderr
        message = self._apptainer(*exec_, sif, "/usr/bin/env", "-0")
        pairs = (line.split("=", 1) for line in message.stdout.split("\0") if "=" in line)
        return Built(tree=_timeless(json.loads(tree.stdout)), environment=dict(pairs))

    def _apptainer(
        self, *words: object, cwd: Path | None = None
    ) -> subprocess.CompletedProcess[str]:
        env = os.environ | {"APPTAINER_NOHTTPS": "true"}
        folder = cwd or self.folder
        return run([self.engine, "--quiet", *words], env=env, cwd=folder, umask=0o022)


def _timeless(tree: Tree) -> Tree:
    """Drop times, also those in bytecode, and the root folder's own mode."""
    return {
        path: [
            value
            for index, value in enumerate(node)
            if index != TIME and not (index == CONTENT and path.endswith(".pyc"))
        ]
        for path, node in tree.items()
        if path != "." and path not in LEFT_OUT
    }


def unlike(first: Built, other: Built) -> dict[str, object]:
    """Return the differences: files, and the variables that the first image sets."""
    different = differences(first.tree, other.tree)
    for name, value in first.environment.items():
        there = other.environment.get(name, "")
        if not _same(name, value, there) and not name.startswith(("APPTAINER_", "SINGULARITY_")):
            different[f"${name}"] = (value, there)
    for name in {"HERE_ONLY"} & other.environment.keys() - first.environment.keys():
        different[f"${name}"] = (None, other.environment[name])
    return different


def _same(name: str, first: str, other: str) -> bool:
    """Compare lists: Apptainer adds the usual folders to PATH, an empty half has no colon."""
    if name != "PATH":
        return first.rstrip(":") == other
    wanted = first.split(":")
    return [folder for folder in other.split(":") if folder in wanted] == wanted
