#!/bin/bash
#SBATCH --job-name=train
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=4
#SBATCH --gpus-per-node=4
#SBATCH --time=00:30:00
#
# Site slurm-generic: 2 nodes, 4 ranks on each. Written by sifwright; submit it with sbatch.
set -euo pipefail

# Modules; their code may read variables that are not set.
set +u
for init in "${LMOD_PKG:-}/init/bash" "${MODULESHOME:-}/init/bash" /etc/profile.d/{lmod,modules,z00_lmod,zz_modules}.sh; do
  # shellcheck source=/dev/null
  command -v module >/dev/null || [[ ! -r $init ]] || source "$init"
done
image_module=${SIFWRIGHT_MODULE:-} # it would be unloaded with its image and binds
module purge
module load apptainer openmpi
[[ -z $image_module ]] || module load "$image_module"
set -u

# Caches, not in the home directory
cache="${SLURM_SUBMIT_DIR:?}/.cache"
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
unset APPTAINER_BIND SINGULARITY_BIND
export APPTAINER_BINDPATH=$binds SINGULARITY_BINDPATH=$binds

# Open MPI's launcher passes only variables to other nodes that its options name.
exported=()
for name in $(compgen -e); do
  case $name in
    SLURM* | PBS* | OMPI* | PMIX* | PRTE* | HOSTNAME | OLDPWD | PWD | SHLVL | TMPDIR | _) ;;
    *) exported+=(-x "$name") ;;
  esac
done
mpirun -np 8 --bind-to none --map-by ppr:4:node "${exported[@]}" \
  apptainer exec --nv "$SIF" \
  conda-python-distributed train.py --epochs 3 --note 'it'"'"'s'
