"""Statements about an image in the file beside it: in-toto's, each in a signed DSSE envelope.

The file is a bundle as in-toto describes it, one envelope a line. The first statement is ours. It
names the sha256 of the whole image and of its partitions. A provenance from the SIF follows.
"""

import base64
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from sifwright.images.sif import sif_file
from sifwright.images.sif.fingerprint import Digests
from sifwright.images.sif.format import DataType
from sifwright.make_image.signing.keys import Key
from sifwright.make_image.signing.trust import Signature, SignatureError, Trust
from sifwright.system import small_file

SUFFIX = ".intoto.jsonl"
STATEMENT = "https://in-toto.io/Statement/v1"
# The type of our statement; a name, no address.
PARTS = "urn:sifwright:sif-parts:v1"
_PAYLOAD = "application/vnd.in-toto+json"
_MOST_BYTES = 64 << 20


def bundle(image: Path, digests: Digests, sha256: str, key: Key) -> bytes:
    """Return the signed statements about an image."""
    statement = {
        "_type": STATEMENT,
        "subject": [{"name": image.name, "digest": {"sha256": sha256}}],
        "predicateType": PARTS,
        "predicate": digests.document,
    }
    payloads = [json.dumps(statement).encode(), *provenance(image)]
    return b"".join(_envelope(payload, key) for payload in payloads)


def provenance(image: Path) -> Iterator[bytes]:
    """Yield the in-toto statements that lie in a SIF."""
    for descriptor in sif_file.read(image).descriptors:
        if descriptor.data_type != DataType.GENERIC_JSON:
            continue
        data = sif_file.data(image, descriptor)
        try:
            is_statement = json.loads(data).get("_type") == STATEMENT
        except (ValueError, AttributeError, RecursionError):
            continue
        if is_statement:
            yield data


def verified(path: Path, trust: Trust, program: str) -> tuple[list[bytes], str]:
    """Return the statements of a bundle and the key that signed all of them.

    Raises `SignatureError`.
    """
    payloads, signers = [], set()
    try:
        for line in small_file.read_bytes(path, _MOST_BYTES).splitlines():
            payload, signature = _opened(line)
            signers.add(trust.check(_encoding(payload), signature, program))
            payloads.append(payload)
    except SignatureError as error:
        message = f"statement {len(payloads) + 1}: {error.problems[0].what}"
        raise SignatureError.of(
            message, where=str(path), fix=error.problems[0].fix or FIX
        ) from None
    except OSError as error:
        raise SignatureError.of(
            f"cannot be read: {error.strerror}", where=str(path), fix=FIX
        ) from error
    if len(signers) != 1:
        raise SignatureError.of(f"is signed by {len(signers)} keys", where=str(path), fix=FIX)
    return payloads, signers.pop()


FIX = f"Take IMAGE.sif and IMAGE.sif{SUFFIX} again from where they were published."


def _envelope(payload: bytes, key: Key) -> bytes:
    signature = key.sign(_encoding(payload))
    text = {
        "payloadType": _PAYLOAD,
        "payload": base64.b64encode(payload).decode(),
        "signatures": [{"keyid": signature.key, "sig": base64.b64encode(signature.value).decode()}],
    }
    return json.dumps(text).encode() + b"\n"


def _opened(line: bytes) -> tuple[bytes, Signature]:
    try:
        value: dict[str, Any] = json.loads(line)
        (signature,) = value["signatures"]
        raw = base64.b64decode(signature["sig"], validate=True)
        text = {_PAYLOAD: value["payload"]}[value["payloadType"]]
        payload = base64.b64decode(text, validate=True)
    except (ValueError, KeyError, TypeError, RecursionError):
        raise SignatureError.of("is no DSSE envelope with one signature") from None
    return payload, Signature(key=str(signature.get("keyid", "")), value=raw)


def _encoding(payload: bytes) -> bytes:
    """Return what is signed (PAE in DSSE's protocol.md)."""
    return b"DSSEv1 %d %b %d %b" % (len(_PAYLOAD), _PAYLOAD.encode(), len(payload), payload)
