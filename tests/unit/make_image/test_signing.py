"""Keys and signed statements, without Apptainer; tests/system has its own signatures."""

from __future__ import annotations

import json
import shutil
import time
from typing import TYPE_CHECKING
from unittest.mock import Mock

import pytest

from sifwright.images.sif.fingerprint import measure
from sifwright.make_image.check_machine import preflight
from sifwright.make_image.signing import statements
from sifwright.make_image.signing.keys import PemKey, PgpKey, find_key
from sifwright.make_image.signing.trust import (
    Keyring,
    OtherBytesError,
    Signature,
    SignatureError,
    read_trust,
)
from sifwright.make_image.signing.verify import verify_image
from sifwright.system import files
from tests.conftest import run
from tests.unit.two_layers import flip, give_record, two_layers

if TYPE_CHECKING:
    from pathlib import Path

KINDS = {
    "ed25519": "-algorithm ed25519",
    "ecdsa": "-algorithm EC -pkeyopt ec_paramgen_curve:P-256",
    "rsa": "-algorithm RSA -pkeyopt rsa_keygen_bits:2048",
}


@pytest.fixture
def sif(tmp_path: Path) -> Path:
    return two_layers(tmp_path / "x.sif")


def _key(folder: Path, kind: str = "ed25519", name: str = "key") -> PemKey:
    private, public = folder / f"{name}.pem", folder / f"{name}.pub"
    assert run(["openssl", "genpkey", *KINDS[kind].split(), "-out", private]).returncode == 0
    assert run(["openssl", "pkey", "-in", private, "-pubout", "-out", public]).returncode == 0
    return PemKey(path=private)


def _bundle(sif: Path, key: PemKey) -> Path:
    path = sif.with_name("x.intoto.jsonl")
    path.write_bytes(statements.bundle(sif, measure(sif), files.sha256(sif), key))
    return path


@pytest.mark.parametrize("kind", KINDS)
def test_statements_are_signed(sif: Path, kind: str) -> None:
    key = _key(sif.parent, kind)
    path = _bundle(sif, key)
    trust = read_trust(str(key.path.with_suffix(".pub")), "", "", "")
    ([payload], signer) = statements.verified(path, trust, "")
    assert signer.startswith("SHA256:")
    assert json.loads(payload)["subject"][0]["digest"]["sha256"] == files.sha256(sif)
    line = json.loads(path.read_bytes())
    wrong: list[object] = [
        {**line, "payload": line["payload"][:-8] + line["payload"][:8]},
        {**line, "payloadType": "text/plain"},
        {**line, "signatures": line["signatures"] * 2},
        {**line, "signatures": []},
        [],
    ]
    for changed in wrong:
        path.write_text(json.dumps(changed))
        with pytest.raises(SignatureError, match="statement 1"):
            statements.verified(path, trust, "")


def test_the_statement_of_another_key_is_refused(sif: Path) -> None:
    path, other = _bundle(sif, _key(sif.parent)), _key(sif.parent, name="other")
    with pytest.raises(SignatureError, match="is of another key"):
        statements.verified(path, other.trust, "")


def test_keys_that_cannot_sign_are_named(tmp_path: Path) -> None:
    key = _key(tmp_path)
    hidden = tmp_path / "hidden.pem"
    words = ["-aes256", "-passout", "pass:x", "-out", hidden]
    assert run(["openssl", "pkey", "-in", key.path, *words]).returncode == 0
    for name, why in {
        str(tmp_path / "none.pem"): "No such file",
        str(hidden): "is encrypted",
        str(key.path.with_suffix(".pub")): "is no private key in PEM",
    }.items():
        with pytest.raises(SignatureError, match=why):
            find_key(name)
    with pytest.raises(SignatureError, match="is no public key"):
        read_trust(str(key.path), "", "", "")
    with pytest.raises(SignatureError, match="is no certificate"):
        read_trust("", str(key.path), "", "")


def test_the_partition_that_differs_from_the_record_is_named(sif: Path) -> None:
    give_record(sif)
    trust = read_trust("", "", "", "")
    for at, name in {10: "header", 33_000: "base", sif.stat().st_size - 9: "layer"}.items():
        flip(sif, at)
        with pytest.raises(SignatureError, match=f"was changed: .*{name}"):
            list(verify_image(sif, trust))
        flip(sif, at)
    with pytest.raises(SignatureError, match="is not signed"):
        list(verify_image(sif, trust))
    shutil.copy(sif, sif.with_name("y.sif"))
    with pytest.raises(SignatureError, match="is not signed"):
        list(verify_image(sif.with_name("y.sif"), trust))


def test_a_wrong_signature_of_gpg_does_not_get_out(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """Verify it: gpg signs wrong by chance, with some keys of Apptainer's."""
    values = iter([b"wrong", b"right", *[b"wrong"] * 9])

    def check(_self: Keyring, _data: bytes, signature: Signature, _program: str) -> str:
        if signature.value == b"wrong":
            raise OtherBytesError.of("is for other bytes")
        return "F00D"

    monkeypatch.setattr(Keyring, "check", check)
    monkeypatch.setattr(
        PgpKey, "_signed", lambda _self, _data: Signature(key="", value=next(values))
    )
    monkeypatch.setattr(preflight, "engine", Mock())
    monkeypatch.setattr(time, "sleep", lambda _seconds: None)
    key = PgpKey(number="0", user="Sue", fingerprint="F00D", keyring=tmp_path)
    assert key.sign(b"data").value == b"right"
    assert capsys.readouterr().err.count("signing again") == 1
    with pytest.raises(SignatureError, match="makes wrong signatures with it"):
        key.sign(b"data")
