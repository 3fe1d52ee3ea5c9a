"""The folder of one image at one site, `build/<site>/<image>/`, and what stands in it."""

from __future__ import annotations

import json
import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sifwright.errors import SifwrightError
from sifwright.images.sif.sif_file import known_fingerprint
from sifwright.system import file_digests, files

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sifwright.plan.model import Plan

__all__ = ["ImageFolder", "proofs"]

_IMAGE = "image.sif"
# Builds that publish at once put theirs in place again and again until one set stands there whole.
# Two need two tries or three; where so many do not do, the next build notices.
_TRIES = 20
_PAUSE_MS = 20


@dataclass(frozen=True, kw_only=True, slots=True)
class ImageFolder:
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
        return self.folder / _IMAGE

    def is_current(self, wanted: Mapping[str, object]) -> bool:
        """Whether a whole image stands here whose record says all that is wanted."""
        try:
            record = json.loads(self.record.read_text())
            return (
                all(record[key] == value for key, value in wanted.items())
                and self._fits(record)
                and known_fingerprint(self.link) == record["sif_fingerprint"]
            )
        except (OSError, ValueError, KeyError, TypeError, SifwrightError):
            return False

    def whole_record(self) -> dict[str, Any]:
        """The record of the image that stands here; `ValueError` says what is not as it says."""
        try:
            record: dict[str, Any] = json.loads(self.record.read_text())
            if not self._fits(record):
                raise ValueError("the files beside it are of another build")
            if known_fingerprint(self.link) != record["sif_fingerprint"]:
                raise ValueError("the image is not the one that was built")
        except OSError as error:
            raise ValueError(f"{error.filename} cannot be read: {error.strerror}") from error
        except (KeyError, TypeError) as error:
            raise ValueError("the record is not of this release of sifwright") from error
        return record

    def damage(self) -> str:
        """Why what stands here is not as its record says; nothing if it is, or if nothing does."""
        try:
            if self.record.exists():
                self.whole_record()
        except (ValueError, SifwrightError) as error:
            return str(error)
        return ""

    def proofs(self) -> dict[str, str]:
        """What the tests that passed in the image that stands here proved, by layer."""
        return proofs(self.record)

    def remember(self, made: Path, text: str) -> None:
        """Put the record of what sources were when they were first used in place."""
        from sifwright.build.request import first_use  # noqa: PLC0415  # as all that only a build writes with

        (made / first_use.FILE).write_text(text)
        files.publish(made / first_use.FILE, self.folder / first_use.FILE)

    def publish(self, plan: Plan, made: Path, record: Mapping[str, object]) -> None:
        """Put a tested image in place, with what it was made from.

        `made` holds image.sif, whose sif_fingerprint is in the record, the definition file and
        plan.json. Killed at any moment, the link leads to a whole image, the old one or the new
        one, and `is_current` tells whether the rest belongs to it.
        """
        image = made / _IMAGE
        facts = {"sif": f"{self.name}-{plan.id[:12]}.sif", **record}
        facts["sif_bytes"] = image.stat().st_size
        facts["files"] = {name: files.sha256(made / name) for name in self._texts}
        text = json.dumps(facts, indent=1) + "\n"
        (made / self.record.name).write_text(text)
        with image.open("rb") as file:
            self._put_until_it_fits(made, text, os.fstat(file.fileno()))
            # Its second name would change the time that the digest is remembered for.
            image.unlink(missing_ok=True)
            # Of the open file: another build may have put its own there by now.
            known = os.fstat(file.fileno())
            file_digests.remember(known, str(record["sif_fingerprint"]), file_digests.SIF)

    def _put_until_it_fits(self, made: Path, record: str, image: os.stat_result) -> None:
        """Publish until what stands there is of one build, ours or another.

        Of several builds at once, the one whose rename comes last looks after it, so a set that is
        mixed is always seen by somebody.
        """
        import secrets  # noqa: PLC0415  # as above

        for number in range(_TRIES):
            # Two that go on in step would never end.
            time.sleep(secrets.randbelow(1 + _PAUSE_MS * number) / 1000)
            self._put(made, json.loads(record)["sif"])
            # Without hard links nothing is left to be put there again.
            if self._is_of_one_build(record, image) or not (made / _IMAGE).exists():
                return

    def _put(self, made: Path, sif: str) -> None:
        """One rename for each file, the link last."""
        import tempfile  # noqa: PLC0415  # as above

        names = {_IMAGE: sif, **{name: name for name in (*self._texts, self.record.name)}}
        with tempfile.TemporaryDirectory(dir=made) as folder:
            for name, target in names.items():
                # A rename does nothing where both are names of one file, as at a second try.
                new = files.link_or_move(made / name, Path(folder))
                files.publish(new, self.folder / target)
                new.unlink(missing_ok=True)
            files.relink(self.link, sif, Path(folder))

    def _is_of_one_build(self, ours: str, image: os.stat_result) -> bool:
        try:
            text = self.record.read_text()
            # Where it is another build's record, that build looks whether the image is its own.
            is_right = text != ours or os.path.samestat(self.link.stat(), image)
            return is_right and self._fits(json.loads(text))
        except (OSError, ValueError, KeyError, TypeError):
            return False

    def _fits(self, record: Mapping[str, Any]) -> bool:
        """Whether the link and the files that a person reads are those of this record."""
        return str(self.link.readlink()) == record["sif"] and all(
            files.sha256(self.folder / name) == record["files"][name] for name in self._texts
        )

    @property
    def _texts(self) -> tuple[str, str]:
        return f"{self.name}.def", "plan.json"

    def older(self) -> list[Path]:
        """SIFs of earlier plans; jobs may still use them, so they are the user's to remove."""
        current = os.path.realpath(self.link)
        sifs = self.folder.glob(f"{self.name}-*.sif")
        return sorted(path for path in sifs if str(path.resolve()) != current)


def proofs(record: Path) -> dict[str, str]:
    """What the tests that passed proved, by layer, as a record says; nothing without one."""
    try:
        return dict(json.loads(record.read_text())["proofs"])
    except (OSError, ValueError, KeyError, TypeError):
        return {}
