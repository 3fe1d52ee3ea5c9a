#!/bin/bash
# Install what files/requirements.txt asks for; torch is held at its version by the constraint file.
set -euo pipefail

if [[ ! -s files/requirements.txt ]]; then
  echo "there is no files/requirements.txt in this layer: 'sifwright extend' makes an image with one" >&2
  exit 1
fi
kept=/opt/sifwright/python-packages
mkdir -p "$kept"
cp files/*.txt "$kept"
# For the test: what did not fit together before is not this layer's fault.
python -m pip check >"$kept/conflicts-before" || true
if [[ -e files/constraints.txt ]]; then
  export PIP_CONSTRAINT="${PIP_CONSTRAINT:-} $PWD/files/constraints.txt"
fi
python -m pip install --requirement files/requirements.txt
