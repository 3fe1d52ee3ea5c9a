"""Base images of the recipes, made once for all tests."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.conftest import run
from tests.system.apptainer import steps
from tests.system.docker.daemons import LIMITS, registry
from tests.system.importing.building import BASE, Workshop

if TYPE_CHECKING:
    from collections.abc import Iterator

DOCKERFILE = """FROM scratch
ADD root /
ENV PATH=/opt/base/bin:/usr/bin:/bin BASE_WORD="from the base" LANG=C.UTF-8
"""
# Like pytorch/pytorch and NVIDIA's: a folder and a program that Dockerfiles go on with.
SAYS = r"""FROM base
WORKDIR /workspace/here
ENTRYPOINT ["/bin/sh", "-c", "pwd; for one; do echo \"<$one>\"; done", "start"]
CMD ["not seen"]
"""


@pytest.fixture(scope="session")
def workshop(engine: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workshop]:
    """Start a registry with an image of a few programs of this machine, and four more."""
    if shutil.which("buildah") is None:
        pytest.skip("buildah is not installed: tools/install-test-programs")
    folder = tmp_path_factory.mktemp("workshop")
    root = steps.make_root(folder / "base" / "root")
    (root / "usr" / "sbin").mkdir(exist_ok=True)
    for name in ("chroot", "rmdir", "sort", "tar"):
        program = Path(shutil.which(name) or "")
        steps.copy_program(program, root / "usr" / program.parent.name / name, root)
    (root / "opt").mkdir()
    for path in ("root/.cache/of-base", "var/log/of-base"):
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text("kept")
    (folder / "base" / "Dockerfile").write_text(DOCKERFILE)
    (folder / "containers.conf").write_text(LIMITS)
    done = run([engine, "--quiet", "build", folder / "tiny.sif", root])
    assert done.returncode == 0, done.stderr
    (folder / "registry").mkdir()
    with registry(folder / "registry") as address:
        shop = Workshop(
            folder=folder,
            engine=engine,
            address=address,
            limits=folder / "containers.conf",
            sif=folder / "tiny.sif",
        )
        shop.buildah("bud", "--tag", "base", folder / "base")
        shop.buildah("push", "--tls-verify=false", "base", f"docker://{address}/{BASE}")
        (folder / "Says").write_text(SAYS)
        shop.buildah("bud", "--format", "docker", "--tag", "says", "--file", folder / "Says")
        shop.buildah("push", "--tls-verify=false", "says", f"docker://{address}/{BASE}-says")
        yield shop
