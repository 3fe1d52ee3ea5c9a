"""What Apptainer writes into /.singularity.d from the last sections of a definition file.

An image that is put together from cached steps gets the same files, made here. Source: Apptainer
1.4.5, internal/pkg/build/metadata.go; tests compare them with those of `apptainer build`.
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
ENVIRONMENT = f"{FOLDER}/env/90-environment.sh"
_HELP = f"{FOLDER}/runscript.help"
_DATE = "org.label-schema.build-date"
_SECTION = re.compile(r"^%(\w+)\n(.*?)(?=^%|\Z)", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True, kw_only=True, slots=True)
class BaseMetadata:
    """What the first step left there: its labels, and what it sets in the environment."""

    labels: Mapping[str, str]
    environment: str


def files(plan: Plan, definition: str, base: BaseMetadata, built: str) -> Iterator[LayerFile]:
    """The files, from the text of the whole definition file; `built` says when."""
    found = dict(_SECTION.findall(definition))
    for name, script in (("runscript", found["runscript"]), ("test", found["test"])):
        yield LayerFile.of_text(f"{FOLDER}/{name}", f"#!/bin/sh\n\n{script}\n", executable=True)
    before = base.environment or "#!/bin/sh\n"
    yield LayerFile.of_text(ENVIRONMENT, f"{before}\n{found['environment']}\n", executable=True)
    yield LayerFile.of_text(_HELP, f"{found['help']}\n")
    yield LayerFile.of_text(f"{FOLDER}/Singularity", _from_header(definition))
    yield LayerFile.of_text(LABELS, _go_json(_labels(plan, base, built)))


def section(definition: str, name: str) -> str:
    """The text of a section that there is one of."""
    return str(dict(_SECTION.findall(definition))[name])


def inspect_json(made: Mapping[str, bytes]) -> bytes:
    """What `apptainer inspect` reads of a SIF without starting it, from the files above."""
    attributes = {
        "labels": json.loads(made[LABELS]),
        "deffile": made[f"{FOLDER}/Singularity"].decode(),
        "runscript": made[f"{FOLDER}/runscript"].decode(),
        "test": made[f"{FOLDER}/test"].decode(),
        "helpfile": made[_HELP].decode(),
        "environment": {ENVIRONMENT: made[ENVIRONMENT].decode()},
    }
    document = {"data": {"attributes": attributes}, "type": "container"}
    return json.dumps(document, sort_keys=True).encode()


def _from_header(definition: str) -> str:
    """Without the comments in front of the header, which Apptainer leaves out."""
    return re.sub(r"\A(#.*\n)+", "", definition)


def _labels(plan: Plan, base: BaseMetadata, built: str) -> dict[str, str]:
    helped = dict.fromkeys(
        ("org.label-schema.usage", "org.label-schema.usage.apptainer.runscript.help"), _HELP
    )
    return {**base.labels, _DATE: built, **helped, **dict(labels(plan))}


def _go_json(document: Mapping[str, str]) -> str:
    """As Go's encoding/json indents and escapes it."""
    text = json.dumps(document, indent="\t", sort_keys=True, ensure_ascii=False)
    for character in "&<>":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text
