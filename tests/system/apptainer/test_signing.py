"""`sifwright sign` and `verify`, and what Apptainer says of the same images."""

from __future__ import annotations

import json
import os
import re
import shutil
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from sifwright.images.sif.write_sif import Contents, write
from sifwright.make_image.signing.trust import SignatureError, read_trust
from sifwright.make_image.signing.verify import verify_image
from tests.conftest import run, sifwright
from tests.system.apptainer.sifs import layer
from tests.system.apptainer.toys import succeeded
from tests.unit.two_layers import flip, give_record

if TYPE_CHECKING:
    import subprocess
    from pathlib import Path

OPEN = {"SIFWRIGHT_SIGN_PASSPHRASE": "open"}


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make PEM keys, a certificate that has expired, and a keyring with one PGP key."""
    folder = tmp_path_factory.mktemp("keys")
    for command in (
        "openssl req -x509 -newkey rsa:2048 -nodes -keyout ca.key -out ca.pem -subj /CN=ca",
        "openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256 -out key.pem",
        "openssl pkey -in key.pem -pubout -out key.pub",
        "openssl req -new -key key.pem -subj /CN=signer -out request",
        *(
            f"openssl x509 -req -in request -CA ca.pem -CAkey ca.key -CAcreateserial -days {days}"
            f" -extfile use -out {name}"
            for name, days in {"cert.pem": 30, "old.pem": -1}.items()
        ),
        "apptainer key newpair --keysdir ring -N Sue -E sue@example.com -C x -P open -b 2048 -U=0",
    ):
        (folder / "use").write_text("keyUsage=digitalSignature\nextendedKeyUsage=codeSigning\n")
        succeeded(run(command.split(), cwd=folder))
    return folder


@pytest.fixture
def sif(tmp_path: Path) -> Path:
    base, other = (layer(tmp_path / name, {name: name}) for name in ("base", "layer"))
    parts = [replace(base, is_system=True), other]
    statement = json.dumps(
        {
            "_type": "https://in-toto.io/Statement/v1",
            "subject": [{"name": part.name, "digest": {"sha256": part.sha256}} for part in parts],
        }
    )
    contents = Contents(
        partitions=parts, definition=b"Bootstrap: x\n", metadata=statement.encode(), arch="amd64"
    )
    write(tmp_path / "x.sif", contents)
    give_record(tmp_path / "x.sif")
    return tmp_path / "x.sif"


def _call(*words: object, **env: str) -> subprocess.CompletedProcess[str]:
    return sifwright(*words, env={**os.environ, **env})


def _refused(done: subprocess.CompletedProcess[str], why: str) -> None:
    assert (done.returncode, done.stdout) == (2, ""), done
    assert why in done.stderr


def test_a_key_in_pem(sif: Path, keys: Path) -> None:
    succeeded(_call("sign", sif, "--key", keys / "key.pem"))
    assert run(["apptainer", "verify", "--key", keys / "key.pub", sif]).returncode == 0
    good = _call("verify", sif, "--key", keys / "key.pub")
    compared = re.findall(r"\b(record|signature|provenance): ", good.stdout)
    assert compared == ["record", "signature", "provenance"], good.stderr
    by_certificate = ["verify", sif, "--certificate-roots", keys / "ca.pem", "--certificate"]
    assert _call(*by_certificate, keys / "cert.pem").returncode == 0
    assert "has expired" in _call(*by_certificate, keys / "old.pem").stderr
    _refused(_call("sign", sif, "--key", keys / "key.pem"), "has 1 signature already")


def test_a_key_of_the_keyring(sif: Path, keys: Path) -> None:
    ring = {"APPTAINER_KEYSDIR": str(keys / "ring")}
    before = sif.read_bytes(), sorted(sif.parent.iterdir())
    _refused(_call("sign", sif, "--key", "sue@", **ring), "private key checksum failure")
    _refused(_call("sign", sif, "--key", "joe@", **ring), "is none of the 1 private keys")
    assert before == (sif.read_bytes(), sorted(sif.parent.iterdir()))
    succeeded(_call("sign", sif, "--key", "sue@", **ring, **OPEN))
    assert run(["apptainer", "verify", "--local", sif], env={**os.environ, **ring}).returncode == 0
    assert _call("verify", sif, **ring).returncode == 0
    sif.with_name("record.json").unlink()
    (sif.parent / "none").mkdir(mode=0o700)
    unknown = _call("verify", sif, APPTAINER_KEYSDIR=str(sif.parent / "none"))
    _refused(unknown, "apptainer key import FILE")


@pytest.mark.parametrize(
    ("time", "days", "why"),
    [("20200101T000000!", "2d", "has expired"), ("", "never", "is revoked")],
)
def test_a_key_that_is_no_longer_valid_signs_nothing(
    sif: Path, tmp_path: Path, time: str, days: str, why: str
) -> None:
    for name in ("home", "ring"):
        (tmp_path / name).mkdir(mode=0o700)
    faked = ["--faked-system-time", time] if time else []
    gpg = ["gpg", "--homedir", tmp_path / "home", "--batch", "--pinentry-mode", "loopback"]
    gpg += ["--passphrase", ""]
    done = run([*gpg, *faked, "--quick-gen-key", "Tom <tom@example.com>", "rsa2048", "sign", days])
    assert done.returncode == 0, done.stderr
    for file in (tmp_path / "home/openpgp-revocs.d").glob("*.rev") if not time else ():
        file.write_text(file.read_text().replace(":---", "---"))
        assert run([*gpg, "--import", file]).returncode == 0
    secret = tmp_path / "secret"
    assert run([*gpg, "--armor", "--output", secret, "--export-secret-keys"]).returncode == 0
    ring = {"APPTAINER_KEYSDIR": str(tmp_path / "ring")}
    assert run(["apptainer", "key", "import", secret], env={**os.environ, **ring}).returncode == 0
    before = sif.read_bytes(), sorted(sif.parent.iterdir())
    _refused(_call("sign", sif, "--key", "tom@", **ring), why)
    assert before == (sif.read_bytes(), sorted(sif.parent.iterdir()))


def test_a_sif_that_apptainer_would_start_is_refused(sif: Path, keys: Path) -> None:
    assert _call("sign", sif, "--key", keys / "key.pem").returncode == 0
    sif.with_name("record.json").unlink()
    check, trust = (
        ("verify", sif, "--key", keys / "key.pub"),
        read_trust(f"{keys}/key.pub", "", "", ""),
    )
    assert _call(*check).returncode == 0
    for at in (16, 75, 4096 + 60, 33_000, sif.stat().st_size - 2):
        flip(sif, at)
        with pytest.raises(SignatureError, match="was changed"):
            list(verify_image(sif, trust))
        flip(sif, at)
    twice = sif.with_name("twice.sif")
    shutil.copy(sif, twice)
    assert run(["apptainer", "sign", "--key", keys / "key.pem", twice]).returncode == 0
    _refused(_call("verify", twice, "--key", keys / "key.pub"), "is signed 2 times")
    twice.write_bytes(sif.read_bytes()[:34_000])
    _refused(_call("verify", twice, "--key", keys / "key.pub"), "is cut off")
    sif.with_name("x.sif.intoto.jsonl").unlink()
    _refused(_call(*check), "there is no x.sif.intoto.jsonl beside it")
