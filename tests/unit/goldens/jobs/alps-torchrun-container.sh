#!/bin/bash
#SBATCH --job-name=train
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=1
#SBATCH --cpus-per-task=288
#SBATCH --gpus-per-node=4
#SBATCH --partition=normal
#SBATCH --time=00:30:00
#SBATCH --account=project
#
# Site alps: 2 nodes, 4 ranks on each, started by torchrun. Written by sifwright; submit it with sbatch.
set -euo pipefail

# Variables of another job, if this one was submitted from it: srun would follow them.
unset SLURM_CPU_BIND SLURM_CPUS_PER_GPU SLURM_DIST_PLANESIZE SLURM_DISTRIBUTION SLURM_GPU_BIND SLURM_GPUS SLURM_GPUS_PER_SOCKET SLURM_GPUS_PER_TASK SLURM_GRES SLURM_HINT SLURM_MEM_BIND SLURM_MEM_PER_CPU SLURM_MEM_PER_GPU SLURM_NTASKS_PER_CORE SLURM_NTASKS_PER_GPU SLURM_NTASKS_PER_SOCKET SLURM_THREADS_PER_CORE SLURM_TRES_PER_TASK SLURM_MEM_PER_NODE SLURM_STEP_GRES

# Caches, not in the home directory
cache="${SCRATCH:?}/.cache"
mkdir -p "$cache"
export XDG_CACHE_HOME="${XDG_CACHE_HOME:-$cache}"
export TORCH_HOME="${TORCH_HOME:-$cache/torch}"
export HF_HOME="${HF_HOME:-$cache/huggingface}"

# The image, for the site's container engine
IMAGE=${IMAGE:-/project/build/image.sif}
[[ -e $IMAGE ]] || { echo "job: there is no image '$IMAGE': name it in IMAGE" >&2; exit 66; }
[[ $IMAGE == /* ]] || IMAGE=$PWD/$IMAGE # a bare name means an image in a registry
unset LD_LIBRARY_PATH LD_PRELOAD # of the host's programs

# Folders of the host in the container, under their own names, as far as they are there
sources=() bound=,
add_mount() {
  local target=${1#*:}
  target=${target%%:*}
  [[ -e ${1%%:*} && $bound != *,"$target",* ]] || return 0
  sources+=("${1%%:*}:$target") bound+=$target,
}
for entry in "$PWD" "${HOME:-$PWD}" /tmp \
  "${SCRATCH:?}/.cache" \
  "${SCRATCH:?}" \
  ; do
  add_mount "$entry"
done

# The Container Engine reads an environment definition file, here in the job's folder
edf=$PWD/.sifwright-${SLURM_JOB_ID:-$$}.toml
trap 'rm -f -- "$edf"' EXIT
toml() { # toml TEXT: a string of TOML, in which nothing is replaced
  local text=${1//\\/\\\\}
  text=${text//\"/\\\"}
  printf '"%s"' "${text//\$/\$\$}"
}
{
  printf 'image = %s\nworkdir = %s\nentrypoint = false\nmounts = [' "$(toml "$IMAGE")" "$(toml "$PWD")"
  for entry in "${sources[@]}"; do
    printf '%s, ' "$(toml "$entry")"
  done
  printf ']\n'
  printf '\n[annotations]\ncom.hooks.cxi.enabled = "true"\n' # libfabric of the host and its devices
} >"$edf"

export SRUN_CPUS_PER_TASK=288 # since Slurm 22.05, srun does not take it from the job
srun --export=ALL --nodes=2 --ntasks=2 --ntasks-per-node=1 --cpus-per-task=288 --gpus-per-task=4 \
  --network=disable_rdzv_get --kill-on-bad-exit=1 --environment="$edf" \
  env PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
  /.singularity.d/actions/exec \
  conda-python-distributed --nproc-per-node 4 train.py --epochs 3 --note 'it'"'"'s'
