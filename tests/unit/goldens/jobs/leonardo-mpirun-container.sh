#!/bin/bash
#SBATCH --job-name=train
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=4
#SBATCH --cpus-per-task=8
#SBATCH --gres=gpu:4
#SBATCH --partition=boost_usr_prod
#SBATCH --mem=494000
#SBATCH --time=00:30:00
#SBATCH --account=project
#
# Site leonardo: 2 nodes, 4 ranks on each. Written by sifwright; submit it with sbatch.
set -euo pipefail

# Variables of another job, if this one was submitted from it: srun would follow them.
unset SLURM_CPU_BIND SLURM_CPUS_PER_GPU SLURM_DIST_PLANESIZE SLURM_DISTRIBUTION SLURM_GPU_BIND SLURM_GPUS SLURM_GPUS_PER_NODE SLURM_GPUS_PER_SOCKET SLURM_GPUS_PER_TASK SLURM_HINT SLURM_MEM_BIND SLURM_MEM_PER_CPU SLURM_MEM_PER_GPU SLURM_NTASKS_PER_CORE SLURM_NTASKS_PER_GPU SLURM_NTASKS_PER_SOCKET SLURM_THREADS_PER_CORE SLURM_TRES_PER_TASK

# Caches, not in the home directory
cache="${SCRATCH:?}/.cache"
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
for bind in \
  "/leonardo" \
  "/leonardo_work" \
  "/leonardo_scratch"; do
  [[ $bind == *,* || ! -e ${bind%%:*} ]] || add_bind "$bind" # a comma of a variable would end the bind
done
unset APPTAINER_BIND SINGULARITY_BIND
APPTAINER_BINDPATH=$(joined_binds)
export APPTAINER_BINDPATH SINGULARITY_BINDPATH=$APPTAINER_BINDPATH

# Open MPI's launcher passes only variables to other nodes that its options name.
exported=()
for name in $(compgen -e); do
  case $name in
    SLURM* | PBS* | OMPI* | PMIX* | PRTE* | HOSTNAME | OLDPWD | PWD | SHLVL | TMPDIR | _) ;;
    *) exported+=(-x "$name") ;;
  esac
done
mpirun -np 8 --bind-to none --map-by ppr:4:node "${exported[@]}" \
  singularity exec --nv "$SIF" \
  conda-python-distributed train.py --epochs 3 --note 'it'"'"'s'
