"""Sign an image: by Apptainer in the SIF, and with statements beside it."""

import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from sifwright.images.sif import fingerprint, sif_file
from sifwright.images.sif.copy_data import Range, created
from sifwright.images.sif.fingerprint import Part, known_record
from sifwright.make_image.check_machine import preflight
from sifwright.make_image.signing import statements
from sifwright.make_image.signing.keys import Key, find_key, passphrase
from sifwright.make_image.signing.trust import SignatureError, last_line
from sifwright.make_image.signing.verify import require_apptainer_agrees, signatures
from sifwright.system import digest_cache, files
from sifwright.system.tempdirs import workspace


def sign_image(image: Path, name: str) -> str:
    """Sign a finished image in one step, with its record if it has one; return the key's name.

    Raises `SignatureError`, and then has written nothing.
    """
    key, target = find_key(name), image.resolve()
    refuse_signed(target)
    record_file, record = known_record(image)
    digests = fingerprint.measure(target)
    if record and record.get("sif_fingerprint") != digests.fingerprint:
        message, fix = "is not the image of its record", "Build it again, or fetch it again."
        raise SignatureError.of(message, where=str(image), fix=fix)
    with workspace(target.parent) as staging:
        copy = staging / image.name
        with created(copy) as writer:
            writer.copy(Range(path=target, size=target.stat().st_size))
        facts = sign_file(copy, key, digests.parts)
        files.publish(Path(f"{copy}{statements.SUFFIX}"), Path(f"{image}{statements.SUFFIX}"))
        copy.chmod(target.stat().st_mode & 0o777)
        files.publish(copy, target)
        digest_cache.remember(target.stat(), str(facts["sif_fingerprint"]), digest_cache.SIF)
        if record:
            text = fingerprint.record_text({**record, **facts})
            files.write(record_file, text.encode(), mode=0o644)
    return str(facts["signed_by"])


def sign_file(sif: Path, key: Key, parts: Iterable[Part] = ()) -> dict[str, Any]:
    """Sign a SIF that is nobody else's, write the statements beside it, and return record entries.

    `parts` are partitions with known digests.
    """
    program = preflight.engine().program
    command = [program, "sign", *key.words, str(sif)]
    done = subprocess.run(command, check=False, capture_output=True, input=passphrase())
    if done.returncode != 0:
        why = last_line(done.stderr.decode(errors="replace"))
        raise SignatureError.of(f"cannot sign: {why}", where=str(key), fix=_FIX)
    require_apptainer_agrees(sif, key.trust, program, str(key))
    digests, sha256 = fingerprint.measure(sif, parts), files.sha256(sif)
    text = statements.bundle(sif, digests, sha256, key)
    files.write(Path(f"{sif}{statements.SUFFIX}"), text, mode=0o644)
    _, signer = statements.verified(Path(f"{sif}{statements.SUFFIX}"), key.trust, program)
    return {**digests.document, "sif_bytes": sif.stat().st_size, "signed_by": signer}


_FIX = "See 'apptainer key list --secret'; a passphrase goes into SIFWRIGHT_SIGN_PASSPHRASE."


def refuse_signed(sif: Path) -> None:
    """Raise `SignatureError` for an image with a signature, `SifError` for one that is cut off."""
    sif_file.partitions(sif)
    if count := len(signatures(sif)):
        fix = "Sign the image as it was built: 'apptainer sif del ID COPY' takes a signature out."
        raise SignatureError.of(
            f"has {count} signature{'s' * (count > 1)} already", where=str(sif), fix=fix
        )
