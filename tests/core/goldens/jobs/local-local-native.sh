#!/bin/bash
#
# Site local: 1 node, 4 ranks on each, started by torchrun. Written by sifwright; run it with bash.
set -euo pipefail

# The run scripts and the virtual environment
RUNSCRIPTS=${RUNSCRIPTS:-} # a module of the image sets it
[[ -n $RUNSCRIPTS ]] || RUNSCRIPTS=/project/runscripts
venv=/project/venv
for file in "$RUNSCRIPTS/conda-python-distributed" "$venv/bin/activate"; do
  [[ -r $file ]] || { echo "job: there is no file '$file'" >&2; exit 66; }
done
export WITH_CONDA="source $venv/bin/activate"

# What an image of this site carries itself
[[ -v SIFWRIGHT_SITE ]] || export SIFWRIGHT_SITE=local
[[ -v SIFWRIGHT_VENDOR ]] || export SIFWRIGHT_VENDOR=cpu

"$RUNSCRIPTS/conda-python-distributed" --nproc-per-node 4 train.py --epochs 3 --note 'it'"'"'s'
