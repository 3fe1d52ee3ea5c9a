"""The folder of one image at one site, `build/<site>/<image>/`, and what stands in it."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sifwright.catalog import image_name
from sifwright.errors import SifwrightError
from sifwright.images.sif.fingerprint import is_intact, known_fingerprint
from sifwright.make_image.resolve_request import base_image
from sifwright.system import files, small_file

_IMAGE = "image.sif"
OUTPUT_FIX = "Free space there, or choose another folder with --output."


@dataclass(frozen=True, kw_only=True, slots=True)
class ImageFolder:
    """Paths of an image's files; `name` is the image's.

    An image of an engine has a `tag`, its name in the engine. It has a folder of its own below the
    folder of the SIF. A build makes all files in a private folder and publishes them together. So
    two builds at the same time do not mix, and a failed build changes only the log.
    """

    folder: Path
    name: str
    tag: str = ""

    def of_engine(self, site: str) -> ImageFolder:
        """Return the folder of the same image as Docker Engine or podman has it."""
        # The folder's name ends with the values of --matrix.
        _, at, values = self.folder.name.partition("@")
        tag = image_name.of_engine(self.name, site, at + values)
        return ImageFolder(folder=self.folder / "docker-image", name=self.name, tag=tag)

    @property
    def pins_folder(self) -> Path:
        """Return the folder with the record of first uses, which all engines share."""
        return self.folder.parent if self.tag else self.folder

    @property
    def log(self) -> Path:
        return self.folder / "build.log"

    @property
    def record(self) -> Path:
        return self.folder / "record.json"

    @property
    def link(self) -> Path:
        """Return the stable name, a link to the SIF that was built last."""
        return self.folder / _IMAGE

    @property
    def signature(self) -> Path:
        """Return the file with the signed statements about the SIF."""
        return self.folder / f"{_IMAGE}.intoto.jsonl"

    def is_current(self, expected: Mapping[str, object]) -> bool:
        """Return whether a whole image with these entries in its record is here."""
        with suppress(OSError, ValueError, KeyError, TypeError, SifwrightError):
            record = small_file.read_json(self.record)
            # Compared first: to look for damage may take long.
            if all(record[key] == value for key, value in expected.items()):
                self._refuse_damage(record)
                return True
        return False

    def whole_record(self) -> dict[str, Any]:
        try:
            record: dict[str, Any] = small_file.read_json(self.record)
            self._refuse_damage(record)
        except OSError as error:
            raise ValueError(f"{error.filename} cannot be read: {error.strerror}") from error
        except (KeyError, TypeError) as error:
            raise ValueError("the record is not of this release of sifwright") from error
        return record

    def _refuse_damage(self, record: Mapping[str, Any]) -> None:
        """Raise `ValueError` if the image or its texts are not those of the record."""
        if not is_intact(record):
            raise ValueError(f"{self.record.name} is not as the build wrote it")
        if not self._fits(record):
            raise ValueError("the files beside it are of another build")
        if self.tag:
            is_it = base_image.engine_image_id(self.tag) == record["image_id"]
        else:
            is_it = known_fingerprint(self.link) == record["sif_fingerprint"]
        if not is_it:
            raise ValueError("the image is not the one that was built")

    def damage(self) -> str:
        """Return how the published image differs from its record; nothing if it does not."""
        try:
            if self.record.exists():
                self.whole_record()
        except (ValueError, SifwrightError) as error:
            return str(error)
        return ""

    def entries(self, name: str) -> dict[str, str]:
        """Return a mapping in the record; an empty one where that cannot be read."""
        try:
            return dict(small_file.read_json(self.record)[name])
        except (OSError, ValueError, KeyError, TypeError):
            return {}

    def is_of_one_build(self, ours: str, image: os.stat_result) -> bool:
        """Return whether all files are of one build; `ours` is the record of this build."""
        try:
            text = small_file.read_text(self.record)
            # If it is another build's record, that build checks whether the image is its own.
            is_right = text != ours or os.path.samestat(self.link.stat(), image)
            return is_right and self._fits(json.loads(text))
        except (OSError, ValueError, KeyError, TypeError):
            return False

    def _fits(self, record: Mapping[str, Any]) -> bool:
        leads_to_it = bool(self.tag) or str(self.link.readlink()) == record["sif"]
        return leads_to_it and all(
            files.sha256(self.folder / name) == record["files"][name] for name in self.texts
        )

    @property
    def texts(self) -> tuple[str, str]:
        recipe = "Dockerfile" if self.tag else f"recipe/{self.name}.def"
        return recipe, "plan.json"

    def older(self) -> list[Path]:
        """Return SIFs of earlier plans; jobs may still use them, so only the user removes them."""
        current = os.path.realpath(self.link)
        sifs = self.folder.glob(f"{self.name}-*.sif")
        return sorted(path for path in sifs if str(path.resolve()) != current)
