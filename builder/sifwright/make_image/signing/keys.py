"""Private keys that sign an image: a PEM file, or a key of Apptainer's PGP keyring."""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from sifwright.errors import quoted
from sifwright.make_image.check_machine import preflight
from sifwright.make_image.signing.trust import (
    Keyring,
    OtherBytesError,
    PublicKey,
    Signature,
    SignatureError,
    key_id,
    last_line,
    public_pem,
)
from sifwright.system import processes
from sifwright.system.terminal import note

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from cryptography.hazmat.primitives.asymmetric.types import PrivateKeyTypes

PASSPHRASE = "SIFWRIGHT_SIGN_PASSPHRASE"  # noqa: S105  # its name
_LIST_FIX = "List the keys: apptainer key list --secret; or name a PEM file of a private key."
_KEY = re.compile(r"(?ms)^(\d+)\)\s+User:\s+(.*?)\s*$.*?^\s+Fingerprint:\s+([0-9A-F]{40})")
_NEW_FILE = "Make one: openssl genpkey -algorithm ed25519 -out key.pem"
_NEW_KEY = "Name another key, or make one: apptainer key newpair"
_TRIES = 5
# gpg makes a key of a passphrase so slowly by design.
_SECONDS = 240
_INVALID = {"e": "has expired", "r": "is revoked", "d": "is disabled", "i": "is not valid"}


@dataclass(frozen=True, kw_only=True, slots=True)
class PemKey:
    """A private key in a file; `apptainer sign --key` takes RSA, ECDSA and Ed25519."""

    path: Path

    def __str__(self) -> str:
        return f"key {self.path}"

    @property
    def words(self) -> list[str]:
        return ["--key", str(self.path)]

    @property
    def trust(self) -> PublicKey:
        return PublicKey(pem=public_pem(self._load().public_key()))

    def sign(self, data: bytes) -> Signature:
        """Sign as Apptainer does in the SIF."""
        from cryptography.hazmat.primitives import hashes  # noqa: PLC0415  # 70 ms, seldom needed
        from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa  # noqa: PLC0415

        key = self._load()
        if isinstance(key, rsa.RSAPrivateKey):
            signed = key.sign(data, padding.PKCS1v15(), hashes.SHA256())
        elif isinstance(key, ec.EllipticCurvePrivateKey):
            signed = key.sign(data, ec.ECDSA(hashes.SHA256()))
        else:
            signed = key.sign(data)  # type: ignore[union-attr, call-arg]  # Ed25519; see _load
        return Signature(key=key_id(self.trust.pem), value=signed)

    def _load(self) -> PrivateKeyTypes:
        from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa  # noqa: PLC0415
        from cryptography.hazmat.primitives.serialization import (  # noqa: PLC0415
            load_pem_private_key,
        )

        try:
            key = load_pem_private_key(self.path.read_bytes(), None)
        except OSError as error:
            raise _refused(self, f"cannot be read: {error.strerror}") from error
        except TypeError:
            fix = f"Decrypt it into a private folder: openssl pkey -in {self.path} -out FILE"
            raise _refused(self, "is encrypted, and Apptainer takes no such key", fix) from None
        except ValueError as error:
            raise _refused(self, f"is no private key in PEM: {error}") from error
        if not isinstance(
            key, rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey | ed25519.Ed25519PrivateKey
        ):
            raise _refused(
                self, f"is a {type(key).__name__}; Apptainer takes RSA, ECDSA and Ed25519"
            )
        return key


@dataclass(frozen=True, kw_only=True, slots=True)
class PgpKey:
    """A key of Apptainer's keyring, by its number there."""

    number: str
    user: str
    fingerprint: str
    keyring: Path

    def __str__(self) -> str:
        return f"key {self.fingerprint} ({self.user})"

    @property
    def words(self) -> list[str]:
        return ["--keyidx", self.number]

    @property
    def trust(self) -> Keyring:
        return Keyring()

    def sign(self, data: bytes) -> Signature:
        """Make a detached signature that gpgv finds good.

        Half of the RSA keys that Apptainer makes have p > q, against RFC 4880
        (github.com/ProtonMail/go-crypto/issues/184). With such a key libgcrypt makes some
        signatures wrong (dev.gnupg.org/T4579; tried with 1.10.1: 36 of 2400). The next second's
        signature is of other bytes. A wrong one must not get out: it gives the private key away.
        """
        program = preflight.engine().program
        for _ in range(_TRIES):
            signature = self._signed(data)
            try:
                self.trust.check(data, signature, program)
            except OtherBytesError:
                note(f"{self}: gpg made a wrong signature, as it does of some keys; signing again")
                time.sleep(1)
            else:
                return signature
        raise _refused(self, "gpg makes wrong signatures with it", _NEW_KEY)

    def _signed(self, data: bytes) -> Signature:
        """Sign with gpg, in a home of its own."""
        with tempfile.TemporaryDirectory(prefix="sifwright-") as folder:
            gpg, file = ["gpg", "--homedir", folder, "--batch", "--quiet"], Path(folder, "data")
            file.write_bytes(data)
            try:
                self._run([*gpg, "--import", str(self.keyring)])
                words = [
                    *("--pinentry-mode", "loopback", "--passphrase-fd", "0"),
                    *("--digest-algo", "SHA256", "--local-user", self.fingerprint),
                    *("--output", "-", "--detach-sign", str(file)),
                ]
                signed = self._run([*gpg, *words])
            finally:
                processes.capture(["gpgconf", "--homedir", folder, "--kill", "all"])
        return Signature(key=self.fingerprint, value=signed)

    def check(self) -> None:
        """Refuse a key that has expired: Apptainer signs with it and then refuses the image."""
        listed = ["gpg", "--batch", "--with-colons", "--import-options", "show-only", "--import"]
        validity = ""
        for line in self._run([*listed, str(self.keyring)]).decode(errors="replace").splitlines():
            fields = line.split(":")
            if fields[0] in {"sec", "pub"}:
                validity = fields[1]
            if fields[0] == "fpr" and fields[9] == self.fingerprint and validity in _INVALID:
                raise _refused(self, _INVALID[validity], _NEW_KEY)

    def _run(self, command: Sequence[str]) -> bytes:
        try:
            done = subprocess.run(
                command, check=False, capture_output=True, input=passphrase(), timeout=_SECONDS
            )
        except FileNotFoundError:
            raise _refused(
                self, "needs gpg", "Install it: apt install gnupg; or use a PEM key."
            ) from None
        except subprocess.TimeoutExpired:
            why = f"{command[0]} did not answer for {_SECONDS} s"
            raise _refused(self, why, "Try again on a machine with less load.") from None
        if done.returncode != 0:
            fix = f"If it has a passphrase, put that into the variable {PASSPHRASE}."
            raise _refused(self, f"gpg: {last_line(done.stderr.decode(errors='replace'))}", fix)
        return done.stdout


Key = PemKey | PgpKey


def _refused(key: Key, why: str, fix: str = _NEW_FILE) -> SignatureError:
    return SignatureError.of(why, where=str(key), fix=fix)


def passphrase() -> bytes:
    """Return what Apptainer and gpg read where a key has a passphrase."""
    return os.environ.get(PASSPHRASE, "").encode() + b"\n"


def find_key(name: str) -> Key:
    """Return the key of a PEM file, else of Apptainer's keyring, and check that it can sign.

    A key of the keyring is named by its user, e-mail address or fingerprint. Raises
    `SignatureError`.
    """
    if "/" in name or name.endswith((".pem", ".key")) or Path(name).is_file():
        key = PemKey(path=Path(name))
        _ = key.trust
        return key
    known = list(_pgp_keys(preflight.engine().program))
    fits = [key for key in known if name and name.upper() in (key.user + key.fingerprint).upper()]
    if len(fits) != 1:
        why = f"fits {len(fits)} keys" if fits else f"is none of the {len(known)} private keys"
        raise SignatureError.of(
            f"{why} of Apptainer's keyring", where=f"key {quoted(name)}", fix=_LIST_FIX
        )
    fits[0].check()
    return fits[0]


def _pgp_keys(program: str) -> Iterator[PgpKey]:
    text = processes.capture([program, "key", "list", "--secret"]).stdout
    listed = re.search(r"\((/.*)\):$", text, re.MULTILINE)
    for number, user, fingerprint in _KEY.findall(text) if listed else ():
        yield PgpKey(number=number, user=user, fingerprint=fingerprint, keyring=Path(listed[1]))  # type: ignore[index]
