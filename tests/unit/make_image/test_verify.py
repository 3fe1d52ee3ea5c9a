"""`sifwright verify`: a SIF is compared with the record beside it."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from sifwright.errors import UsageError
from sifwright.images.sif.fingerprint import record_text
from sifwright.make_image.verify import rebuild
from sifwright.plan.plan_file import parse_plan, plan_json, settings_of
from sifwright.plan.resolve import resolve
from tests.unit.locks import LOCK
from tests.unit.sifs import write_sif
from tests.unit.two_layers import flip

if TYPE_CHECKING:
    from pathlib import Path

    from sifwright.catalog.model import Catalog
    from tests.unit.conftest import Cli


@pytest.fixture
def image(tmp_path: Path) -> Path:
    """Make a link to a SIF, and its record."""
    digest = write_sif(tmp_path / "image-123.sif", bytes(range(256)) * 64)
    record = {"sif": "image-123.sif", "sif_fingerprint": digest, "built": "2026-11-24T10:00:00"}
    (tmp_path / "record.json").write_text(record_text(record))
    (tmp_path / "image.sif").symlink_to("image-123.sif")
    return tmp_path / "image.sif"


def test_an_image_as_it_was_published(image: Path, run_cli: Cli) -> None:
    done = run_cli("verify", str(image))
    assert done.code == 0
    assert done.out == "published: ok, every byte is what was published on 2026-11-24T10:00:00\n"


def test_one_bit_is_seen(image: Path, run_cli: Cli) -> None:
    flip(image, -1)
    done = run_cli("verify", str(image), "--json")
    (check,) = json.loads(done.out)
    assert (done.code, check["name"], check["passed"]) == (1, "published", False)
    assert check["lines"][0] == "it is not what was published"


def test_a_changed_record_is_seen(image: Path, run_cli: Cli) -> None:
    record = image.with_name("record.json")
    record.write_text(record.read_text().replace("2026", "2025"))
    done = run_cli("verify", str(image))
    assert (done.code, done.out) == (1, "published: NO, record.json is not as it was written\n")


@pytest.mark.parametrize(
    ("record", "message"),
    [
        (None, "no record can be read beside it"),
        ("{", "is no record of a SIF"),
        ("[]", "is no record of a SIF"),
        ('{"sif": "other.sif", "sif_fingerprint": ""}', "is the record of other.sif"),
    ],
)
def test_records_of_no_use(image: Path, run_cli: Cli, record: str | None, message: str) -> None:
    path = image.with_name("record.json")
    path.unlink()
    if record is not None:
        path.write_text(record)
    done = run_cli("verify", str(image))
    assert done.code == UsageError.exit_code
    assert message in done.err


def test_no_image(tmp_path: Path, run_cli: Cli) -> None:
    done = run_cli("verify", str(tmp_path / "image.sif"))
    assert done.code == UsageError.exit_code
    assert "there is no such file" in done.err


def test_the_settings_of_a_plan_are_found_again(real: Catalog) -> None:
    settings = ["pytorch-wheel.version=2.12.1", "base-debian.packages=git curl"]
    plan = resolve(real, "local", "pytorch", settings)
    again = settings_of(parse_plan(plan_json(plan)))
    assert resolve(real, "local", "pytorch", again).id == plan.id


def test_a_record_of_an_earlier_release_cannot_be_rebuilt() -> None:
    with pytest.raises(UsageError, match="epoch"):
        rebuild.options_of({"layout": "flat"})


def test_another_lock_is_refused(image: Path, run_cli: Cli) -> None:
    record = {"lock": LOCK.digest}
    rebuild.refuse_other_lock(record, LOCK)
    rebuild.refuse_other_lock({}, None)
    with pytest.raises(UsageError, match=f"from the lock {LOCK.digest[:12]}, not from"):
        rebuild.refuse_other_lock(record, replace(LOCK, epoch=1))
    with pytest.raises(UsageError, match="was built without a lock"):
        rebuild.refuse_other_lock({}, LOCK)
    done = run_cli("verify", str(image), "--locked")
    assert done.code == UsageError.exit_code
    assert "Add --rebuild" in done.err
