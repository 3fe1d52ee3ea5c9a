"""Provenance of an image: an in-toto statement with SLSA provenance v1."""

import json
from collections.abc import Iterable, Iterator, Mapping

from sifwright import __version__
from sifwright.host.network.http import redact_url
from sifwright.plan.model import Plan, StepSource
from sifwright.plan.source_digest import SourceDigest

_HOME = "urn:sifwright"
_SHA256_DIGITS, _SHA1_DIGITS = 64, 40


def provenance(plan: Plan, used: Iterable[SourceDigest], subjects: Mapping[str, str]) -> bytes:
    """Return the statement; `subjects` are sha256 by name.

    It has no time, path, user or machine in it: the same image has the same statement.
    """
    definition = {
        "buildType": f"{_HOME}:build:v1",
        "externalParameters": {
            "site": plan.site.name,
            "image": plan.image.name,
            "options": {
                f"{step.layer.name}.{name}": value.text
                for step in plan.steps
                for name, value in step.options.items()
            },
        },
        "internalParameters": {"plan": plan.id, "layers": [s.layer.name for s in plan.steps]},
        "resolvedDependencies": list(_dependencies(plan, list(used))),
    }
    builder = {"id": f"{_HOME}:{__version__}", "version": {"sifwright": __version__}}
    statement = {
        "_type": "https://in-toto.io/Statement/v1",
        "subject": [
            {"name": name, "digest": {"sha256": sha256}} for name, sha256 in subjects.items()
        ],
        "predicateType": "https://slsa.dev/provenance/v1",
        "predicate": {
            "buildDefinition": definition,
            "runDetails": {"builder": builder, "metadata": {"invocationId": plan.id}},
        },
    }
    return (json.dumps(statement, indent=1, sort_keys=True) + "\n").encode()


def _dependencies(plan: Plan, used: list[SourceDigest]) -> Iterator[dict[str, object]]:
    """Yield the base image and all sources; packages are in the SBOM."""
    for item in used:
        if item.source == "From":
            yield _dependency(f"docker://{item.ref}", item.digest, item.layer)
    for layer, source, digest in sources(plan, used):
        yield _dependency(redact_url(source.url), digest, layer)


def sources(plan: Plan, used: Iterable[SourceDigest]) -> Iterator[tuple[str, StepSource, str]]:
    """Yield what each layer fetches: the layer, the source, and its commit or sha256."""
    digests = {(item.layer, item.source): item.digest for item in used}
    for step in plan.steps:
        for source in step.sources:
            digest = source.digest or digests.get((step.layer.name, source.name), "")
            yield step.layer.name, source, digest


def _dependency(uri: str, digest: str, layer: str) -> dict[str, object]:
    value = digest.removeprefix("sha256:")
    kinds = {_SHA256_DIGITS: "sha256", _SHA1_DIGITS: "gitCommit"}
    known = {"digest": {kinds[len(value)]: value}} if len(value) in kinds else {}
    return {"uri": uri, **known, "annotations": {"layer": layer}}
