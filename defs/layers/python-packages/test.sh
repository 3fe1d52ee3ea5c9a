#!/bin/bash
# All packages fit together, torch is still the image's, and what was asked for is there and imports.
set -euo pipefail

kept=${INSTALL_PREFIX:-/opt}/sifwright/python-packages

conflicts=$(python -m pip check | grep -vxFf "$kept/conflicts-before" | grep -v '^No broken requirements found' || true)
if [[ -n $conflicts ]]; then
  printf 'the packages do not fit together:\n%s\n' "$conflicts" >&2
  exit 1
fi

python - "$kept/requirements.txt" <<'PYTHON'
import importlib
import importlib.metadata
import os
import re
import sys

import torch

try:
    from packaging.requirements import Requirement
except ImportError:
    from pip._vendor.packaging.requirements import Requirement

with open(os.environ["PIP_CONSTRAINT"].split()[0]) as file:
    held = [line.split("==")[1].strip() for line in file if line.startswith("torch==")]
if held[-1:] != [torch.__version__]:
    sys.exit(f"torch is {torch.__version__}, the image was made with {held}")


def modules(package):
    """Return the modules of a package as `import` names them; of a namespace, its packages."""
    names = set()
    for path in package.files or ():
        parts = path.parts
        if parts[-1] == "__init__.py":
            names.add(".".join(parts[:-1]))
        elif len(parts) == 1 and parts[0].endswith((".py", ".so")):
            names.add(parts[0].split(".")[0])
    whole = [name for name in names if re.fullmatch(r"[A-Za-z]\w*(\.[A-Za-z]\w*)*", name)]
    return [name for name in whole if not any(name.startswith(f"{other}.") for other in names)]


def asked_for(path):
    """The packages named there for this Python; their options and hashes are pip's business."""
    with open(path) as file:
        wanted = [Requirement(line.split(" --")[0].strip()) for line in file if line[0] != "-"]
    return [one for one in wanted if one.marker is None or one.marker.evaluate()]


for requirement in asked_for(sys.argv[1]):
    package = importlib.metadata.distribution(requirement.name)
    if not requirement.specifier.contains(package.version, prereleases=True):
        sys.exit(f"{requirement.name} is {package.version}, not {requirement.specifier}")
    if os.environ["OPT_IMPORTS"] != "true":
        continue
    # Beside its own, many a wheel brings its tests and examples by accident.
    for module in sorted(modules(package)):
        if not re.fullmatch(r"(tests?|docs?|examples?|scripts?|benchmarks?)(\..*)?", module):
            try:
                importlib.import_module(module)
            except Exception as error:
                sys.exit(
                    f"{requirement.name}: import {module} fails: {error!r}\n"
                    "where it only needs a GPU: --set python-packages.imports=false"
                )
PYTHON
