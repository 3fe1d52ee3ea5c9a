"""What stands beside an image of an engine: build/SITE/IMAGE/docker-image/."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sifwright.build.request import image_folder
from sifwright.system import files

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from sifwright.build.request.image_folder import ImageFolder
    from sifwright.plan.model import Plan

__all__ = ["DockerImageFolder"]

_TEXTS = ("plan.json", "Dockerfile")


@dataclass(frozen=True, kw_only=True, slots=True)
class DockerImageFolder:
    """`image` is the folder of the image, where what its sources were is kept for all engines."""

    image: Path
    name: str

    @classmethod
    def of(cls, output: ImageFolder, plan: Plan) -> DockerImageFolder:
        return cls(image=output.folder, name=f"sifwright/{plan.image.name}:{plan.site.name}")

    @property
    def folder(self) -> Path:
        return self.image / "docker-image"

    @property
    def log(self) -> Path:
        return self.folder / "build.log"

    @property
    def record(self) -> Path:
        return self.folder / "record.json"

    def whole_record(self, wanted: Mapping[str, object]) -> dict[str, Any] | None:
        """The record of what stands here, if it says all that is wanted and its files fit."""
        try:
            record: dict[str, Any] = json.loads(self.record.read_text())
            says = all(record[key] == value for key, value in wanted.items())
            fits = all(
                files.sha256(self.folder / name) == digest
                for name, digest in record["files"].items()
            )
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return None
        return record if says and fits else None

    def proofs(self) -> dict[str, str]:
        """What the tests that passed in the image proved, by layer."""
        return image_folder.proofs(self.record)

    def publish(self, made: Path, record: Mapping[str, object], texts: Iterable[str]) -> None:
        """Put the files of `made` in place, the record last: until it fits, the image is not it."""
        names = list(texts)
        facts = {**record, "files": {name: files.sha256(made / name) for name in names}}
        (made / self.record.name).write_text(json.dumps(facts, indent=1) + "\n")
        for name in (*names, self.record.name):
            files.publish(made / name, self.folder / name)
