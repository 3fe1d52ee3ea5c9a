"""Put a tested image in place, with its record and the texts that it was made from."""

import json
import os
import secrets
import tempfile
import time
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import cast

from sifwright import __version__
from sifwright.images.sif.fingerprint import Part, record_text
from sifwright.make_image.attest import python_files, write_statements
from sifwright.make_image.pack_layers.pack_files import write_files
from sifwright.make_image.publish_image import recipe_folder
from sifwright.make_image.resolve_request import first_use
from sifwright.make_image.resolve_request.build_context import BuildContext
from sifwright.make_image.resolve_request.image_folder import OUTPUT_FIX, ImageFolder
from sifwright.make_image.run_steps.step_engine import Artifact
from sifwright.plan.model import Plan
from sifwright.plan.plan_file import plan_json
from sifwright.render import recipe
from sifwright.system import digest_cache, files
from sifwright.system.tempdirs import name_folder_in_errors

PLAN = "plan.json"
# Builds that publish at the same time repeat their renames until one set is whole. Two builds need
# two or three tries; if many builds need more, the next build notices.
_TRIES = 20
_PAUSE_MS = 20


def publish(context: BuildContext, artifact: Artifact, passed: Mapping[str, str]) -> None:
    """Publish the image of a build; `passed` are the digests of its tests."""
    context.watcher.timer.start("publish")
    output, staging = context.output, context.staging
    python = python_files.digests(staging)
    if line := python_files.difference(output.entries("python_files"), python):
        context.watcher.progress.note(line)
    plan = plan_json(context.plan)
    record = {
        **_record(context, artifact, passed),
        "plan": json.loads(plan),
        **_signed(context, artifact),
        "python_files": python,
    }
    with name_folder_in_errors(output.folder, OUTPUT_FIX):
        for name, text in {PLAN: plan, **artifact.files}.items():
            (staging / name).write_text(text, encoding="utf-8")
        # First: without the image it does no harm, an image without it would not be checked.
        pins = first_use.text(context.inputs.record, [*context.inputs.used, *artifact.used])
        (staging / first_use.FILE).write_text(pins, encoding="utf-8")
        files.publish(staging / first_use.FILE, output.pins_folder / first_use.FILE)
        if context.docker and output.tag:
            publish_texts(output, staging, record)
            # From now on, the record belongs to the image of this name.
            repository, _, tag = output.tag.rpartition(":")
            context.docker.tag(str(artifact.facts["image_id"]), repository, tag)
        else:
            contents = recipe.definition_files(context.plan, context.published)
            write_files(staging / recipe_folder.FOLDER, contents, root="")
            publish_sif(output, context.plan, staging, record)


def _record(
    context: BuildContext, artifact: Artifact, passed: Mapping[str, str]
) -> dict[str, object]:
    return {
        **context.expected,
        "tested": context.options.tests,
        "proofs": passed,
        **artifact.facts,
        "sifwright": __version__,
        "built": datetime.now(UTC).isoformat(timespec="seconds"),
        "seconds": dict(context.watcher.timer.seconds),
        "own_seconds": dict(context.watcher.own_seconds),
        "timeline": list(context.watcher.timer.timeline),
        **first_use.documents([*context.inputs.used, *artifact.used]),
    }


def _signed(context: BuildContext, artifact: Artifact) -> dict[str, object]:
    """Sign the SIF if that was asked for, and return what changes in its record."""
    if not context.options.sign:
        return {}
    # Seldom needed, and takes time to load.
    from sifwright.make_image.signing.keys import find_key  # noqa: PLC0415
    from sifwright.make_image.signing.sign import sign_file  # noqa: PLC0415

    key = find_key(context.options.sign)
    parts = cast("Iterable[Part]", artifact.facts["sif_parts"])
    return sign_file(context.staging / context.output.link.name, key, parts)


def publish_texts(output: ImageFolder, staging: Path, record: Mapping[str, object]) -> None:
    """Publish the texts beside an image of an engine, the record last.

    The record belongs to no image until the engine gives its name to this one.
    """
    _write_record(output, staging, record)
    for name in (*output.texts, *_statements(staging), output.record.name):
        files.publish(staging / name, output.folder / name)


def publish_sif(
    output: ImageFolder, plan: Plan, staging: Path, record: Mapping[str, object]
) -> None:
    """Publish image.sif of `staging` with its texts.

    If the build is killed at any moment, the link leads to the whole old or the whole new image.
    `ImageFolder.is_current` tells whether the texts belong to it.
    """
    image = staging / output.link.name
    facts = {
        "sif": f"{output.name}-{plan.id[:12]}.sif",
        **record,
        "sif_bytes": image.stat().st_size,
    }
    text = _write_record(output, staging, facts)
    with image.open("rb") as file:
        _rename_until_whole(output, staging, text, os.fstat(file.fileno()))
        # Its second name would change the time that the digest is remembered for.
        image.unlink(missing_ok=True)
        # The status of the open file: another build may have published its own by now.
        status = os.fstat(file.fileno())
        digest_cache.remember(status, str(record["sif_fingerprint"]), digest_cache.SIF)


def _statements(staging: Path) -> list[str]:
    """Return the files of the SBOM and the provenance, as far as there are any."""
    return [name for name in write_statements.FILES if (staging / name).exists()]


def _write_record(output: ImageFolder, staging: Path, record: Mapping[str, object]) -> str:
    digests = {name: files.sha256(staging / name) for name in output.texts}
    text = record_text({**record, "files": digests})
    (staging / output.record.name).write_text(text, encoding="utf-8")
    return text


def _rename_until_whole(
    output: ImageFolder, staging: Path, record: str, image: os.stat_result
) -> None:
    """Publish until all files belong to one build.

    When builds publish at the same time, the last one to rename checks the set. If the set is
    mixed, it publishes again.
    """
    for number in range(_TRIES):
        # Two builds in step would never end.
        time.sleep(secrets.randbelow(1 + _PAUSE_MS * number) / 1000)
        _rename(output, staging, json.loads(record)["sif"])
        # Without hard links nothing is left to be published again.
        if output.is_of_one_build(record, image) or not (staging / output.link.name).exists():
            return


def _rename(output: ImageFolder, staging: Path, sif: str) -> None:
    files.publish_folder(staging / recipe_folder.FOLDER, output.folder / recipe_folder.FOLDER)
    signed = output.signature.name
    texts = {name: name for name in (PLAN, *_statements(staging), output.record.name)}
    if (staging / signed).exists():
        texts[signed] = signed
    else:
        output.signature.unlink(missing_ok=True)
    with tempfile.TemporaryDirectory(dir=staging) as folder:
        for name, target in {output.link.name: sif, **texts}.items():
            # A rename does nothing where both are names of one file, as at a second try.
            new = files.link_or_move(staging / name, Path(folder))
            files.publish(new, output.folder / target)
            new.unlink(missing_ok=True)
        files.relink(output.link, sif, Path(folder))
