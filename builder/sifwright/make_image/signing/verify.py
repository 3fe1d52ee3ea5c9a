"""Tell whether an image is what was built and signed, in every byte.

Apptainer's signature covers the objects of a SIF, neither the rest of its header nor the bytes
between objects. The signed statement beside the image covers all of these bytes.
"""

import json
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from sifwright.images.sif import fingerprint, sif_file
from sifwright.images.sif.fingerprint import Digests, known_record
from sifwright.images.sif.format import DataType, Descriptor
from sifwright.make_image.check_machine import preflight
from sifwright.make_image.signing import statements
from sifwright.make_image.signing.trust import SignatureError, Trust, last_line
from sifwright.system import files, processes

# Apptainer reads each byte once, also from a slow disk.
_SECONDS = 3600.0
_FIX = "Do not use it: fetch it again from where it was published, or build it again."


def verify_image(image: Path, trust: Trust) -> Iterator[str]:
    """Yield what was compared, a line each; raise `SignatureError` or `SifError`."""
    sif_file.partitions(image)
    digests = fingerprint.measure(image)
    file, record = known_record(image)
    if record:
        _require_same(image, digests, record, str(file))
        yield f"record: every byte is as in {file}"
    yield from verify_signatures(image, trust, digests)


def verify_signatures(image: Path, trust: Trust, digests: Digests) -> Iterator[str]:
    """Yield who has signed the image; raise `SignatureError` if it is not what was signed."""
    count = len(signatures(image))
    if count != 1:
        message = "is not signed" if count == 0 else f"is signed {count} times; once is right"
        fix = "Sign it: sifwright sign IMAGE.sif --key KEY" if count == 0 else _FIX
        raise SignatureError.of(message, where=str(image), fix=fix)
    program = preflight.engine().program
    beside = _statements_of(image)
    payloads, signer = statements.verified(beside, trust, program)
    _require_subjects(image, digests, payloads, beside)
    require_apptainer_agrees(image, trust, program, str(image))
    yield f"signature: every byte is as signed by {signer}"
    if len(payloads) > 1:
        yield f"provenance: signed by the same key, in {beside}"


def signatures(sif: Path) -> list[Descriptor]:
    objects = sif_file.read(sif).descriptors
    return [item for item in objects if item.data_type == DataType.SIGNATURE]


def require_apptainer_agrees(sif: Path, trust: Trust, program: str, where: str) -> None:
    """Raise `SignatureError` if Apptainer's own check refuses the image."""
    with tempfile.TemporaryDirectory(prefix="sifwright-") as folder:
        command = [program, "verify", *trust.words(Path(folder)), str(sif)]
        done = processes.capture(command, timeout=_SECONDS)
    if done.returncode != 0:
        name = Path(program).name
        raise SignatureError.of(f"{name}: {last_line(done.stderr)}", where=where, fix=_FIX)


def _statements_of(image: Path) -> Path:
    places = [Path(f"{path}{statements.SUFFIX}") for path in (image, image.resolve())]
    for path in places:
        if path.exists():
            return path
    message = (
        f"there is no {places[0].name} beside it, which has the signed sha256 of all its bytes"
    )
    raise SignatureError.of(
        message, where=str(image), fix="Copy that file, too, or sign the image again."
    )


def _require_subjects(image: Path, digests: Digests, payloads: list[bytes], where: Path) -> None:
    """Compare the image with the first statement, and its partitions with those of the others."""
    try:
        first, *others = [json.loads(payload) for payload in payloads]
        predicate = {statements.PARTS: first["predicate"]}[first["predicateType"]]
        _require_same(image, digests, predicate, str(where))
        signed = first["subject"][0]["digest"]["sha256"]
        subjects = {subject["digest"]["sha256"] for other in others for subject in other["subject"]}
    except (ValueError, KeyError, TypeError, IndexError) as error:
        raise SignatureError.of(
            "its statements are of another kind", where=str(where), fix=_FIX
        ) from error
    if files.sha256(image) != signed:
        raise SignatureError.of("has another sha256 than was signed", where=str(image), fix=_FIX)
    if not subjects <= {sha256 for _, _, sha256 in digests.parts}:
        message = "the provenance is about other partitions"
        raise SignatureError.of(message, where=str(where), fix=_FIX)


def _require_same(image: Path, digests: Digests, expected: dict[str, Any], where: str) -> None:
    """Raise `SignatureError` with the partition that differs."""
    if expected.get("sif_fingerprint") == digests.fingerprint:
        return
    parts = {(offset, size): sha256 for offset, size, sha256 in expected.get("sif_parts", ())}
    names = {part.offset: part.name for part in sif_file.partitions(image)}
    changed = [names[o] for o, size, sha256 in digests.parts if parts.get((o, size)) != sha256]
    if parts and not changed:
        changed = ["its header or what lies between the partitions"]
    message = (
        f"was changed: {', '.join(changed) or 'it is another image'} ({where} has other digests)"
    )
    raise SignatureError.of(message, where=str(image), fix=_FIX)
