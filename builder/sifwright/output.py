"""The folder of one image at one site, `build/<site>/<image>/`, and what stands in it."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sifwright import files
from sifwright.render.definition import definition, plan_document

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from sifwright.model import Plan

__all__ = ["Output"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Output:
    """Paths of an image's files; `name` is the image's."""

    folder: Path
    name: str

    @property
    def definition(self) -> Path:
        return self.folder / f"{self.name}.def"

    @property
    def log(self) -> Path:
        return self.folder / "build.log"

    @property
    def record(self) -> Path:
        return self.folder / "record.json"

    @property
    def link(self) -> Path:
        """The stable name; it points to the SIF of the plan that was built last."""
        return self.folder / "image.sif"

    def sif(self, plan: Plan) -> Path:
        return self.folder / f"{self.name}-{plan.id[:12]}.sif"

    def write_plan(self, plan: Plan, machine: Mapping[str, str]) -> None:
        """Write the definition file and plan.json."""
        self.folder.mkdir(parents=True, exist_ok=True)
        files.write_text(self.definition, definition(plan, machine))
        document = json.dumps(plan_document(plan), indent=1) + "\n"
        files.write_text(self.folder / "plan.json", document)

    def new_log(self) -> Path:
        """An empty log; a build that runs at the same time keeps writing to its own."""
        self.log.unlink(missing_ok=True)
        self.log.touch()
        return self.log

    def is_current(self, definition_digest: str) -> bool:
        """Whether a whole image stands here that was built from this very definition file."""
        try:
            record = json.loads(self.record.read_text())
            return bool(
                record["definition_sha256"] == definition_digest
                and str(self.link.readlink()) == record["sif"]
                and files.sha256(self.link) == record["sif_sha256"]
            )
        except (OSError, ValueError, KeyError, TypeError):
            return False

    def publish(self, plan: Plan, partial: Path, record: Mapping[str, object]) -> None:
        """Put a tested SIF in place. Killed at any moment, `image.sif` is whole: old or new."""
        sif = self.sif(plan)
        facts = {"sif": sif.name, "sif_sha256": files.sha256(partial), **record}
        facts["sif_bytes"] = partial.stat().st_size
        files.publish(partial, sif)
        files.write_text(self.record, json.dumps(facts, indent=1) + "\n")
        files.relink(self.link, sif.name)

    def older(self) -> list[Path]:
        """SIFs of earlier plans; jobs may still use them, so they are the user's to remove."""
        current = os.path.realpath(self.link)
        sifs = self.folder.glob(f"{self.name}-*.sif")
        return sorted(path for path in sifs if str(path.resolve()) != current)
