#!/bin/bash
# Install what files/requirements.txt asks for; torch is held at its version by the constraint file.
# Where there is files/locked.txt: only that, each file with a hash, and nothing of what they need.
set -euo pipefail

if [[ ! -e files/requirements.txt ]]; then
  echo "there is no files/requirements.txt in this layer: 'sifwright extend' makes an image with one" >&2
  exit 1
fi
kept=$INSTALL_PREFIX/sifwright/python-packages
mkdir -p "$kept"
cp files/*.txt "$kept"
# For the test: what did not fit together before is not this layer's fault.
python -m pip check >"$kept/conflicts-before" || true
if [[ -e files/constraints.txt ]]; then
  export PIP_CONSTRAINT="${PIP_CONSTRAINT:-} $PWD/files/constraints.txt"
fi
if [[ ! -e files/locked.txt ]]; then
  python -m pip install --requirement files/requirements.txt
  exit
fi
python files/compare_with_lock.py versions >before.json
# A lock may have packages of conda only.
[[ ! -s files/requirements.txt ]] ||
  python -m pip install --no-deps --require-hashes --only-binary :all: --requirement files/requirements.txt
python files/compare_with_lock.py compare files/locked.txt before.json
