#!/bin/bash
#
# Site local: 1 node, 4 ranks on each, started by torchrun. Written by sifwright; run it with bash.
set -euo pipefail

# The image
SIF=${SIF:-} # a module of the image sets it
[[ -n $SIF ]] || SIF=/project/build/image.sif
[[ -e $SIF ]] || { echo "job: there is no image '$SIF': name it in SIF" >&2; exit 66; }

# Binds: those of the environment, then what is there on this node. In a container, a missing
# source is fatal. A target bound twice is a warning, and so is one of these variables without the other.
# shellcheck shell=bash
# Lists of binds, as Apptainer reads them (pkg/util/bind).
BINDS=()
declare -A BOUND=() # targets that have a bind

add_bind() { # add_bind BIND: to BINDS, if its target has none
  local target=${1//\\:/$'\n'} # a colon behind a backslash is part of a path
  target=${target#*:}
  target=${target%%:*}
  target=${target//$'\n'/:}
  [[ -z ${BOUND[":$target"]:-} ]] || return 0
  BINDS+=("$1")
  BOUND[":$target"]=yes
}

# A comma behind a backslash is part of a path. Options belong to the bind before them, if it has a target.
add_binds() { # add_binds LIST
  local rest=$1, bind='' word
  while [[ -n $rest ]]; do
    word=${rest%%,*} rest=${rest#*,}
    if [[ $bind == *\\ ]]; then
      bind+=,$word
      continue
    fi
    [[ $word =~ ^[[:blank:]]*(.*[^[:blank:]]|) ]]
    word=${BASH_REMATCH[1]}
    if [[ $bind == *[!\\]:* && $word == @(ro|rw|id=*|image-src=*) ]]; then
      bind+=,$word
    elif [[ -n $word ]]; then
      [[ -z $bind ]] || add_bind "$bind"
      bind=$word
    fi
  done
  [[ -z $bind ]] || add_bind "$bind"
}

joined_binds() {
  local IFS=,
  printf %s "${BINDS[*]-}"
}
for list in "${APPTAINER_BIND:-}" "${APPTAINER_BINDPATH:-}" "${SINGULARITY_BIND:-}" "${SINGULARITY_BINDPATH:-}"; do
  add_binds "$list"
done
unset APPTAINER_BIND SINGULARITY_BIND
APPTAINER_BINDPATH=$(joined_binds)
export APPTAINER_BINDPATH SINGULARITY_BINDPATH=$APPTAINER_BINDPATH

apptainer exec "$SIF" \
  conda-python-distributed --nproc-per-node 4 train.py --epochs 3 --note 'it'"'"'s'
