"""The SBOM and the provenance of an image: valid, complete, and the same bytes each time."""

from __future__ import annotations

import hashlib
import json
import os
import re
import sys
from typing import TYPE_CHECKING

import pytest
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
from google.protobuf.json_format import ParseDict
from in_toto_attestation.predicates.provenance.v1.provenance_pb2 import Provenance
from in_toto_attestation.v1.resource_descriptor import ResourceDescriptor
from in_toto_attestation.v1.statement import Statement
from in_toto_attestation.v1.statement_pb2 import Statement as Message

from sifwright.images.contents.inventory import inventory
from sifwright.images.sif import sif_file
from sifwright.images.sif.format import DataType
from sifwright.images.sif.write_sif import Composed, Contents, SifObject, write
from sifwright.images.sources import sif_image
from sifwright.make_image.attest import python_files
from sifwright.make_image.attest.provenance import provenance
from sifwright.make_image.attest.redistribution import restricted
from sifwright.make_image.attest.sbom import sbom
from sifwright.make_image.deliver.flatten_sif import flatten_sif
from sifwright.plan.resolve import resolve
from sifwright.plan.source_digest import SourceDigest
from tests.conftest import run
from tests.unit import planted
from tests.unit.sifs import squashfs_of

if TYPE_CHECKING:
    from pathlib import Path

    from sifwright.catalog.model import Catalog
    from sifwright.images.contents.inventory import Inventory

EPOCH = 1735689600
USED = [
    SourceDigest(
        layer="base-rocm", source="From", ref="docker.io/x/y:1", digest=f"sha256:{'a' * 64}"
    ),
]


def _inventory(path: Path, system: str) -> Inventory:
    planted.sif(path / f"{system}.sif", system)
    image = sif_file.read(path / f"{system}.sif")
    parts = [sif_file.place(image.path, part) for part in image.partitions]
    return inventory(sif_image.tree_of(parts, only_packages=True))


@pytest.mark.parametrize("system", planted.SYSTEMS)
def test_the_sbom_is_valid_and_complete(real: Catalog, tmp_path: Path, system: str) -> None:
    plan = resolve(real, "frontier", "pytorch", [])
    text = sbom(plan, _inventory(tmp_path, system), USED, EPOCH)
    assert JsonStrictValidator(SchemaVersion.V1_6).validate_str(text.decode()) is None
    document = json.loads(text)
    purls = {item["purl"] for item in document["components"] if "purl" in item}
    package = {
        "debian": "pkg:deb/debian/libexpat1@2.5.0-1?arch=amd64&distro=debian",
        "ubuntu": "pkg:deb/ubuntu/libexpat1@2.5.0-1?arch=amd64&distro=ubuntu",
        "rocky": "pkg:rpm/rocky/openssl-libs@3.0.7-25.el9?arch=x86_64&distro=rocky-9.4&epoch=1",
    }
    assert {package[system], "pkg:pypi/planted-py@1.2%2Bcpu"} <= purls
    assert not any("hidden" in purl for purl in purls)
    sources = [source for step in plan.steps for source in step.sources]
    assert sources
    assert {source.name for source in sources} <= {item["name"] for item in document["components"]}
    python = next(item for item in document["components"] if item["name"] == "Planted_Py")
    assert python["licenses"] == [{"license": {"id": "MIT"}}]
    values = [item["value"] for item in python["properties"]]
    assert any(value.endswith("planted_py-1.2.dist-info/licenses/LICENSE") for value in values)
    digest = hashlib.sha256(planted.RECORD).hexdigest()
    assert {"name": "sifwright:record-sha256", "value": digest} in python["properties"]


def test_other_files_at_the_same_version_are_named(real: Catalog, tmp_path: Path) -> None:
    plan = resolve(real, "frontier", "pytorch", [])
    assert python_files.digests(tmp_path) == {}
    bill = sbom(plan, _inventory(tmp_path, "debian"), USED, EPOCH)
    (tmp_path / "sbom.cdx.json").write_bytes(bill)
    now = python_files.digests(tmp_path)
    folder = "/opt/venv/lib/python3.11/site-packages/planted_py-1.2.dist-info"
    assert now == {folder: hashlib.sha256(planted.RECORD).hexdigest()}
    assert python_files.difference({}, now) == python_files.difference(now, now) == ""
    line = "other files than in the image before, at the same version: planted_py-1.2"
    assert python_files.difference({folder: "0" * 64, "/gone-1.dist-info": "0"}, now) == line
    before, many = ({f"/p{n}-1.dist-info": digit for n in range(9)} for digit in "ab")
    assert python_files.difference(before, many).endswith(
        ": p0-1, p1-1, p2-1, p3-1, p4-1 and 4 more"
    )


_AGAIN = """
import sys
from pathlib import Path
from tests.unit.make_image import test_attest
from sifwright.catalog.load_catalog import load_catalog
from sifwright.plan.resolve import resolve
plan = resolve(load_catalog(Path("defs"), Path()), "frontier", "pytorch", [])
contents = test_attest._inventory(Path(sys.argv[1]), "debian")
used, subjects = test_attest.USED, {"rootfs": "b" * 64}
texts = test_attest.sbom(plan, contents, used, test_attest.EPOCH)
sys.stdout.write((texts + test_attest.provenance(plan, used, subjects)).decode())
"""


def test_both_are_the_same_bytes_with_any_hash_seed(real: Catalog, tmp_path: Path) -> None:
    plan = resolve(real, "frontier", "pytorch", [])
    (tmp_path / "other").mkdir()
    ours = sbom(plan, _inventory(tmp_path, "debian"), USED, EPOCH)
    ours += provenance(plan, USED, {"rootfs": "b" * 64})
    env = {**os.environ, "PYTHONHASHSEED": "4711", "TZ": "Asia/Tokyo"}
    done = run([sys.executable, "-c", _AGAIN, tmp_path / "other"], env=env)
    assert done.stdout == ours.decode(), done.stderr


def test_the_provenance_names_what_it_was_made_from(real: Catalog) -> None:
    plan = resolve(real, "frontier", "pytorch", [])
    document = json.loads(provenance(plan, USED, {"rootfs": "b" * 64}))
    assert document["_type"] == "https://in-toto.io/Statement/v1"
    assert document["predicateType"] == "https://slsa.dev/provenance/v1"
    assert document["subject"] == [{"name": "rootfs", "digest": {"sha256": "b" * 64}}]
    definition = document["predicate"]["buildDefinition"]
    base, *sources = definition["resolvedDependencies"]
    assert base["uri"] == "docker://docker.io/x/y:1"
    assert base["digest"] == {"sha256": "a" * 64}
    assert {"gitCommit"} in [set(item.get("digest", ())) for item in sources]
    assert definition["externalParameters"]["site"] == "frontier"


def test_the_provenance_is_valid(real: Catalog) -> None:
    """Check it by in-toto's messages, which refuse unknown fields, and by SLSA's requirements.

    (github.com/slsa-framework/slsa, docs/spec/v1.1/provenance.md and schema/provenance.cue)
    """
    plan = resolve(real, "frontier", "pytorch", [])
    document = json.loads(provenance(plan, USED, {"rootfs": "b" * 64}))
    Statement.copy_from_pb(ParseDict(document, Message())).validate()
    predicate = ParseDict(document["predicate"], Provenance())
    definition, builder = predicate.build_definition, predicate.run_details.builder
    assert re.fullmatch("[a-z]+:.+", definition.build_type)
    assert re.fullmatch("[a-z]+:.+", builder.id)
    assert definition.HasField("external_parameters")
    for item in definition.resolved_dependencies:
        ResourceDescriptor.copy_from_pb(item).validate()
        assert all(re.fullmatch("([0-9a-f]{2})+", digest) for digest in item.digest.values())


def test_an_object_behind_the_partitions_knows_their_digests(tmp_path: Path) -> None:
    system = Composed(pieces=[b"data"], name="rootfs", is_system=True)
    item = SifObject(
        data_type=DataType.GENERIC_JSON,
        name="provenance.json",
        data=lambda digests: " ".join(digests).encode(),
    )
    write(
        tmp_path / "x.sif",
        Contents(partitions=[system], definition=b"", arch="amd64", objects=[item]),
    )
    image = sif_file.read(tmp_path / "x.sif")
    digest = sif_file.digest(image.path, image.partitions[0])
    assert sif_file.data_of(image, "provenance.json").decode() == digest


def test_a_flat_sif_keeps_the_sbom_of_the_layered_one(tmp_path: Path) -> None:
    bill = SifObject(data_type=DataType.SBOM, name="sbom.cdx.json", data=lambda _: b"{}")
    layers = [
        Composed(pieces=[squashfs_of()], name=name, is_system=not name) for name in ("", "upper")
    ]
    contents = Contents(partitions=layers, definition=b"", arch="amd64", objects=[bill])
    write(tmp_path / "layered.sif", contents)
    flatten_sif(tmp_path / "layered.sif", tmp_path / "flat.sif", "")
    flat = sif_file.read(tmp_path / "flat.sif")
    assert len(flat.partitions) == 1
    assert sif_file.data_of(flat, "sbom.cdx.json") == b"{}"


def test_components_that_may_not_be_passed_on_are_named() -> None:
    def component(name: str, licence: str) -> dict[str, object]:
        licences = [{"license": {"name": licence}}] if licence else []
        return {"name": name, "version": "1", "licenses": licences}

    parts = [
        component("nvidia-cudnn-cu12", "NVIDIA Proprietary Software"),
        component("libcublas-12-6", ""),
        component("numpy", "BSD-3-Clause"),
        component("nvidia-ml-py", "BSD-3-Clause"),
        component("mkl", "Intel Simplified Software License"),
        component("intel-openmp", "Intel End User License Agreement for Developer Tools"),
    ]
    listed = restricted(json.dumps({"components": parts}).encode())
    names = [line.partition(" (")[0] for line in listed]
    assert names == ["nvidia-cudnn-cu12", "libcublas-12-6", "mkl", "intel-openmp"]
    with pytest.raises(ValueError, match="no SBOM"):
        restricted(b"[]")
