"""Public keys that check a signature: of a PEM file, of a certificate, or of the PGP keyring."""

from __future__ import annotations

import base64
import hashlib
import re
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sifwright.errors import MachineError, UsageError
from sifwright.system import processes, small_file

_VALID = re.compile(r"^\[GNUPG:\] VALIDSIG .* ([0-9A-F]{40})$", re.MULTILINE)
# The words of gpgv for a bad signature (doc/DETAILS of GnuPG).
_BAD = {
    "EXPKEYSIG": "is of a key that has expired",
    "REVKEYSIG": "is of a key that was revoked",
    "NO_PUBKEY": "is of a key that is not in Apptainer's keyring",
}


_IMPORT = "If you trust the signer, import the public key: apptainer key import FILE"
_OTHER = "Name the public key of the signer, or fetch the image and its statements again."


class SignatureError(UsageError):
    """A key cannot sign, or an image is not the one that its signature is for."""


class OtherBytesError(SignatureError):
    """A signature is not for these bytes."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Signature:
    """A signature of some bytes; `key` is the key's name for people, which proves nothing."""

    key: str
    value: bytes


@dataclass(frozen=True, kw_only=True, slots=True)
class PublicKey:
    """A public key in PEM. `certificates` are Apptainer's options of the certificate it is from."""

    pem: bytes
    certificates: tuple[str, ...] = ()

    def words(self, folder: Path) -> list[str]:
        """Return the options of `apptainer verify`; `folder` is for a file with the key."""
        if self.certificates:
            return list(self.certificates)
        (folder / "key.pem").write_bytes(self.pem)
        return ["--key", str(folder / "key.pem")]

    def check(self, data: bytes, signature: Signature, _program: str) -> str:
        """Return the name of the key that has signed the data; raise `SignatureError`."""
        from cryptography.exceptions import InvalidSignature  # noqa: PLC0415  # seldom needed
        from cryptography.hazmat.primitives.serialization import (  # noqa: PLC0415
            load_pem_public_key,
        )

        try:
            _verify(load_pem_public_key(self.pem), signature.value, data)
        except InvalidSignature:
            raise SignatureError.of("is of another key, or for other bytes", fix=_OTHER) from None
        return key_id(self.pem)


@dataclass(frozen=True, kw_only=True, slots=True)
class Keyring:
    """The public keys of Apptainer's own keyring; no server is asked for others."""

    def words(self, _folder: Path) -> list[str]:
        return ["--local"]

    def check(self, data: bytes, signature: Signature, program: str) -> str:
        """Return the fingerprint of the key that has signed the data; raise `SignatureError`."""
        listed = processes.capture([program, "key", "list"]).stdout
        keyring = re.search(r"\((/.*)\):$", listed, re.MULTILINE)
        if keyring is None:
            fix = "Import the signer's: apptainer key import FILE"
            raise SignatureError.of("no public key is in Apptainer's keyring", fix=fix)
        with tempfile.TemporaryDirectory(prefix="sifwright-") as folder:
            files = [Path(folder, "signature"), Path(folder, "data")]
            for file, content in zip(files, (signature.value, data), strict=True):
                file.write_bytes(content)
            command = ["gpgv", "--status-fd", "1", "--keyring", keyring[1], *map(str, files)]
            done = processes.capture(command)
        if done.returncode == 127:  # noqa: PLR2004  # `capture` found no program
            raise MachineError.of("there is no gpgv", fix="Install it: apt install gpgv")
        if " BADSIG " in done.stdout:
            raise OtherBytesError.of("is for other bytes")
        valid = _VALID.search(done.stdout)
        if done.returncode or not valid or "GOODSIG" not in done.stdout:
            bad = (text for word, text in _BAD.items() if f" {word} " in done.stdout)
            fix = _IMPORT if " NO_PUBKEY " in done.stdout else ""
            raise SignatureError.of(next(bad, "is of no key of Apptainer's keyring"), fix=fix)
        return valid[1]


Trust = PublicKey | Keyring


def read_trust(key: str, certificate: str, roots: str, intermediates: str) -> Trust:
    """Return what the options name: a public key, a certificate, or else the keyring."""
    if certificate:
        options = {"": certificate, "-roots": roots, "-intermediates": intermediates}
        words = [(f"--certificate{end}", file) for end, file in options.items() if file]
        for _, file in words:
            _read(file)
        pair = tuple(word for option in words for word in option)
        return PublicKey(pem=_of_certificate(certificate), certificates=pair)
    return PublicKey(pem=_of_file(key)) if key else Keyring()


def public_pem(key: Any) -> bytes:  # noqa: ANN401  # one of three classes without a common one
    """Return a public key as PEM; raise `ValueError` for a kind that Apptainer does not take."""
    from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa  # noqa: PLC0415
    from cryptography.hazmat.primitives.serialization import (  # noqa: PLC0415
        Encoding,
        PublicFormat,
    )

    kinds = (rsa.RSAPublicKey, ec.EllipticCurvePublicKey, ed25519.Ed25519PublicKey)
    if not isinstance(key, kinds):
        raise ValueError(type(key).__name__)  # noqa: TRY004  # as of a file that is no key
    pem: bytes = key.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    return pem


def key_id(pem: bytes) -> str:
    """Return the name that Apptainer gives the key in a signature."""
    der = base64.b64decode(b"".join(pem.splitlines()[1:-1]))
    return f"SHA256:{base64.b64encode(hashlib.sha256(der).digest()).decode()}"


def last_line(text: str) -> str:
    """Return the last line that a program wrote, without its name for errors."""
    lines = text.strip().splitlines() or ["it did not say why"]
    return re.sub(r"^FATAL:\s+", "", lines[-1])


def _verify(key: Any, signature: bytes, data: bytes) -> None:  # noqa: ANN401
    from cryptography.hazmat.primitives import hashes  # noqa: PLC0415
    from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa  # noqa: PLC0415

    if isinstance(key, rsa.RSAPublicKey):
        key.verify(signature, data, padding.PKCS1v15(), hashes.SHA256())
    elif isinstance(key, ec.EllipticCurvePublicKey):
        key.verify(signature, data, ec.ECDSA(hashes.SHA256()))
    else:
        key.verify(signature, data)


def _of_file(name: str) -> bytes:
    from cryptography.hazmat.primitives.serialization import load_pem_public_key  # noqa: PLC0415

    try:
        return public_pem(load_pem_public_key(_read(name)))
    except ValueError as error:
        fix = "Make it of the private one: openssl pkey -in key.pem -pubout -out key.pub"
        raise SignatureError.of("is no public key in PEM", where=f"key {name}", fix=fix) from error


def _of_certificate(name: str) -> bytes:
    from cryptography.x509 import load_pem_x509_certificate  # noqa: PLC0415

    try:
        return public_pem(load_pem_x509_certificate(_read(name)).public_key())
    except ValueError as error:
        fix = "Name an X.509 certificate in PEM."
        raise SignatureError.of("is no certificate", where=name, fix=fix) from error


def _read(name: str) -> bytes:
    try:
        return small_file.read_bytes(Path(name))
    except OSError as error:
        fix = "Name a file that is there."
        raise SignatureError.of(f"cannot be read: {error.strerror}", where=name, fix=fix) from error
