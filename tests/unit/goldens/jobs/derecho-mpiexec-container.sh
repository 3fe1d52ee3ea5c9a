#!/bin/bash
#PBS -N train
#PBS -l select=2:mpiprocs=4:ncpus=64:ngpus=4:mem=480GB
#PBS -q main
#PBS -j oe
#PBS -l walltime=00:30:00
#PBS -A project
#
# Site derecho: 2 nodes, 4 ranks on each. Written by sifwright; submit it with qsub.
set -euo pipefail
cd "$PBS_O_WORKDIR" # PBS starts jobs in the home directory
# Rank 0's host; in a container, or on another node, the file may not be there.
[[ -v SIFWRIGHT_MASTER_HOST ]] || SIFWRIGHT_MASTER_HOST=$(head -n 1 "$PBS_NODEFILE")
export SIFWRIGHT_MASTER_HOST

# Modules; their code may read variables that are not set.
set +u
# shellcheck source=/dev/null
command -v module >/dev/null || source "/etc/profile.d/z00_modules.sh"
image_module=${SIFWRIGHT_MODULE:-} # it would be unloaded with its image and binds
module --force purge
module load ncarenv/24.12 gcc/12.4.0 cray-mpich/8.1.29 cuda/12.3.2 apptainer/1.3.4
[[ -z $image_module ]] || module load "$image_module"
set -u

# Caches, not in the home directory
cache="/glade/derecho/scratch/${USER:?}/.cache"
mkdir -p "$cache"
export XDG_CACHE_HOME="${XDG_CACHE_HOME:-$cache}"
export TORCH_HOME="${TORCH_HOME:-$cache/torch}"
export HF_HOME="${HF_HOME:-$cache/huggingface}"
export APPTAINER_CACHEDIR="${APPTAINER_CACHEDIR:-${SINGULARITY_CACHEDIR:-$cache/apptainer}}"
export SINGULARITY_CACHEDIR="${SINGULARITY_CACHEDIR:-$APPTAINER_CACHEDIR}"

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
# A module binds the list of nodes, which other nodes of the job may lack.
for number in "${!BINDS[@]}"; do
  [[ ${BINDS[number]} != "${PBS_NODEFILE:-}:"* ]] || unset "BINDS[number]"
done
for bind in \
  "/run" \
  "/opt/cray" \
  "/glade"; do
  [[ $bind == *,* || ! -e ${bind%%:*} ]] || add_bind "$bind" # a comma of a variable would end the bind
done
unset APPTAINER_BIND SINGULARITY_BIND
APPTAINER_BINDPATH=$(joined_binds)
export APPTAINER_BINDPATH SINGULARITY_BINDPATH=$APPTAINER_BINDPATH

mpiexec -n 8 -ppn 4 --no-transfer --cpu-bind numa \
  apptainer exec --nv "$SIF" \
  conda-python-distributed train.py --epochs 3 --note 'it'"'"'s'
