"""The files that Apptainer writes into /.singularity.d from the sections of a definition file.

An image that is assembled from cached steps gets the same files. Source: Apptainer 1.4.5,
internal/pkg/build/metadata.go; tests compare them with those of `apptainer build`.
"""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from sifwright.catalog.model import LayerFile
from sifwright.plan.model import Plan
from sifwright.render.definition import labels

FOLDER = "/.singularity.d"
LABELS = f"{FOLDER}/labels.json"
HEADER = f"{FOLDER}/Singularity"
ENVIRONMENT = f"{FOLDER}/env/90-environment.sh"
_HELP = f"{FOLDER}/runscript.help"
_DATE = "org.label-schema.build-date"
OF_HEADER = "org.label-schema.usage.singularity.deffile."
_LINE = re.compile(r"^(\w+): (.*)$", re.MULTILINE)
_SECTION = re.compile(r"^%(\w+)\n(.*?)(?=^%|\Z)", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True, kw_only=True, slots=True)
class BaseMetadata:
    """The labels and the environment script that the first step left there."""

    labels: Mapping[str, str]
    environment: str


def files(plan: Plan, definition: str, base: BaseMetadata, built: str) -> Iterator[LayerFile]:
    """Yield the files, from the text of the definition file and the time of the build."""
    sections = dict(_SECTION.findall(definition))
    for name, script in (("runscript", sections["runscript"]), ("test", sections["test"])):
        yield LayerFile.of_text(f"{FOLDER}/{name}", f"#!/bin/sh\n\n{script}\n", executable=True)
    before = base.environment or "#!/bin/sh\n"
    yield LayerFile.of_text(ENVIRONMENT, f"{before}\n{sections['environment']}\n", executable=True)
    yield LayerFile.of_text(_HELP, f"{sections['help']}\n")
    yield LayerFile.of_text(HEADER, re.sub(r"\A(#.*\n)+", "", definition))
    yield LayerFile.of_text(LABELS, _go_json(_labels(plan, definition, base, built)))


def section(definition: str, name: str) -> str:
    """Return the text of a section that occurs once."""
    return str(dict(_SECTION.findall(definition))[name])


def inspect_json(contents: Mapping[str, bytes]) -> bytes:
    """Return what `apptainer inspect` reads of a SIF without starting it; from those files."""
    attributes = {
        "labels": json.loads(contents[LABELS]),
        "deffile": contents[HEADER].decode(),
        "runscript": contents[f"{FOLDER}/runscript"].decode(),
        "test": contents[f"{FOLDER}/test"].decode(),
        "helpfile": contents[_HELP].decode(),
        "environment": {ENVIRONMENT: contents[ENVIRONMENT].decode()},
    }
    document = {"data": {"attributes": attributes}, "type": "container"}
    return json.dumps(document, sort_keys=True).encode()


def _labels(plan: Plan, definition: str, base: BaseMetadata, built: str) -> dict[str, str]:
    """Return the labels; those of the header are the definition file's, not those of its run."""
    header = _LINE.findall(definition.partition("\n%")[0])
    ours = {f"{OF_HEADER}{keyword.lower()}": value for keyword, value in header}
    helped = dict.fromkeys(
        ("org.label-schema.usage", "org.label-schema.usage.apptainer.runscript.help"), _HELP
    )
    return {**base.labels, **ours, _DATE: built, **helped, **dict(labels(plan))}


def _go_json(document: Mapping[str, str]) -> str:
    """Indent and escape as Go's encoding/json does."""
    text = json.dumps(document, indent="\t", sort_keys=True, ensure_ascii=False)
    return text.translate({ord(character): f"\\u{ord(character):04x}" for character in "&<>"})
