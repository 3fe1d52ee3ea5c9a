"""The folder of one image at one site, `build/<site>/<image>/`, and what stands in it."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sifwright import digests, files, firstuse

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from sifwright.model import Plan

__all__ = ["Output"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Output:
    """Paths of an image's files; `name` is the image's.

    A build makes all of them in a folder of its own and publishes them together, so that two builds
    at once do not mix and a failed one changes nothing but the log.
    """

    folder: Path
    name: str

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

    def is_current(self, wanted: Mapping[str, object]) -> bool:
        """Whether a whole image stands here whose record says all that is wanted."""
        try:
            record = json.loads(self.record.read_text())
            return (
                all(record[key] == value for key, value in wanted.items())
                and str(self.link.readlink()) == record["sif"]
                and digests.sha256(self.link) == record["sif_sha256"]
            )
        except (OSError, ValueError, KeyError, TypeError):
            return False

    def proofs(self) -> dict[str, str]:
        """What the tests that passed in the image that stands here proved, by layer."""
        try:
            return dict(json.loads(self.record.read_text())["proofs"])
        except (OSError, ValueError, KeyError, TypeError):
            return {}

    def remember(self, made: Path, text: str) -> None:
        """Put the record of what sources were when they were first used in place."""
        (made / firstuse.FILE).write_text(text)
        files.publish(made / firstuse.FILE, self.folder / firstuse.FILE)

    def publish(self, plan: Plan, made: Path, record: Mapping[str, object]) -> None:
        """Put a tested image in place, with what it was made from.

        `made` holds image.sif, the definition file and plan.json; the record has its sif_sha256.
        Killed at any moment, the link leads to a whole image: the old one or the new one.
        """
        image = made / "image.sif"
        sif = self.folder / f"{self.name}-{plan.id[:12]}.sif"
        facts = {"sif": sif.name, **record}
        facts["sif_bytes"] = image.stat().st_size
        (made / self.record.name).write_text(json.dumps(facts, indent=1) + "\n")
        with image.open("rb") as file:
            files.publish(image, sif)
            # Of the open file: another build may have put its own there by now.
            digests.remember(os.fstat(file.fileno()), str(record["sif_sha256"]))
        for name in (f"{self.name}.def", "plan.json", self.record.name):
            files.publish(made / name, self.folder / name)
        (made / "links").mkdir()
        files.relink(self.link, sif.name, made / "links")

    def older(self) -> list[Path]:
        """SIFs of earlier plans; jobs may still use them, so they are the user's to remove."""
        current = os.path.realpath(self.link)
        sifs = self.folder.glob(f"{self.name}-*.sif")
        return sorted(path for path in sifs if str(path.resolve()) != current)
