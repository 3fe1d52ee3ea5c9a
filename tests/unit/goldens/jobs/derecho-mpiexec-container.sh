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
module load ncarenv/24.12 gcc/12.4.0 cray-mpich/8.1.29 apptainer/1.3.4
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
for entry in \
  "/run" \
  "/opt/cray" \
  "/glade"; do
  [[ ! -e ${entry%%:*} ]] || add_bind "$entry"
done
unset APPTAINER_BIND SINGULARITY_BIND
export APPTAINER_BINDPATH=$binds SINGULARITY_BINDPATH=$binds

mpiexec -n 8 -ppn 4 --cpu-bind numa \
  apptainer exec --nv "$SIF" \
  conda-python-distributed train.py --epochs 3 --note 'it'"'"'s'
