#!/bin/bash
#
# Site local: 1 node, 4 ranks on each, started by torchrun. Written by sifwright; run it with bash.
set -euo pipefail

# The image
SIF=${SIF:-} # a module of the image sets it
[[ -n $SIF ]] || SIF=/project/build/image.sif
[[ -e $SIF ]] || { echo "job: there is no image '$SIF': name it in SIF" >&2; exit 66; }

# Binds: those of the environment, then what is there on this node. In a container, a source that is
# missing is fatal, a target bound twice a warning, and so is one of these variables without the other.
binds='' bound=,
add_bind() {
  local target=${1#*:}
  target=${target%%:*}
  [[ $bound != *,"$target",* ]] || return 0
  binds+=${binds:+,}$1 bound+=$target,
}
given=${APPTAINER_BIND:-},${APPTAINER_BINDPATH:-},${SINGULARITY_BIND:-},${SINGULARITY_BINDPATH:-}
IFS=, read -ra given <<<"$given"
for entry in "${given[@]}"; do
  [[ -z $entry ]] || add_bind "$entry"
done
unset APPTAINER_BIND SINGULARITY_BIND
export APPTAINER_BINDPATH=$binds SINGULARITY_BINDPATH=$binds

apptainer exec "$SIF" \
  conda-python-distributed --nproc-per-node 4 train.py --epochs 3 --note 'it'"'"'s'
