"""A mirrors file with every kind of rule."""

from dataclasses import dataclass
from pathlib import Path

ALL = """\
# A site without the internet.
git:
  https://github.com/: https://git.site.example/github/
  git@github.com:: https://git.site.example/github/
  https://github.com/ofiwg/libfabric.git: ./git/libfabric.git
oci:
  docker.io: registry.site.example/dockerhub
  nvcr.io/nvidia: http://127.0.0.1:5000/nvidia
archives:
  https://github.com/: https://files.site.example/github/
wheels:
  https://download.pytorch.org/whl: ./wheels
apt:
  debian: https://apt.site.example/debian
  http://archive.ubuntu.com/ubuntu: ./ubuntu
conda:
  https://conda.anaconda.org: https://conda.site.example
pip:
  index-url: https://pypi.site.example/simple
  find-links: ./wheels /nowhere
  no-index: false
"""


@dataclass(frozen=True, kw_only=True)
class MirrorsFile:
    """The file that the environment names. The folders that ALL names are beside it."""

    folder: Path

    def write(self, text: str) -> Path:
        for name in ("git/libfabric.git", "wheels", "ubuntu"):
            (self.folder / name).mkdir(parents=True, exist_ok=True)
        self.path.write_text(text)
        return self.path

    @property
    def path(self) -> Path:
        return self.folder / "mirrors.yaml"


def empty(tmp_path: Path) -> Path:
    folder = tmp_path / "out"
    folder.mkdir()
    return folder
