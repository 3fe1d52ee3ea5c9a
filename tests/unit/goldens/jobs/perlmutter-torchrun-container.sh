#!/bin/bash
#SBATCH --job-name=train
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=1
#SBATCH --cpus-per-task=128
#SBATCH --gpus-per-node=4
#SBATCH --constraint=gpu
#SBATCH --qos=regular
#SBATCH --time=00:30:00
#SBATCH --account=project
#
# Site perlmutter: 2 nodes, 4 ranks on each, started by torchrun. Written by sifwright; submit it with sbatch.
set -euo pipefail

# Variables of another job, if this one was submitted from it: srun would follow them.
unset SLURM_CPU_BIND SLURM_CPUS_PER_GPU SLURM_DIST_PLANESIZE SLURM_DISTRIBUTION SLURM_GPU_BIND SLURM_GPUS SLURM_GPUS_PER_SOCKET SLURM_GPUS_PER_TASK SLURM_GRES SLURM_HINT SLURM_MEM_BIND SLURM_MEM_PER_CPU SLURM_MEM_PER_GPU SLURM_NTASKS_PER_CORE SLURM_NTASKS_PER_GPU SLURM_NTASKS_PER_SOCKET SLURM_THREADS_PER_CORE SLURM_TRES_PER_TASK SLURM_MEM_PER_NODE SLURM_STEP_GRES

# Caches, not in the home directory
cache="${PSCRATCH:?}/.cache"
mkdir -p "$cache"
export XDG_CACHE_HOME="${XDG_CACHE_HOME:-$cache}"
export TORCH_HOME="${TORCH_HOME:-$cache/torch}"
export HF_HOME="${HF_HOME:-$cache/huggingface}"

# The image, for the site's container engine
IMAGE=${IMAGE:-/project/build/image.sif}
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
  "${PSCRATCH:?}/.cache" \
  "${PSCRATCH:?}" \
  ; do
  add_mount "$entry"
done
mounts=() devices=()
for entry in "${sources[@]}"; do
  mounts+=("--volume=$entry")
done
for entry in /dev/cxi*; do
  [[ ! -e $entry ]] || devices+=("--device=$entry")
done

export SRUN_CPUS_PER_TASK=128 # since Slurm 22.05, srun does not take it from the job
srun --export=ALL --nodes=2 --ntasks=2 --ntasks-per-node=1 --cpus-per-task=128 \
  --kill-on-bad-exit=1 \
  podman-hpc run --rm --env-host \
  --env=PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin --network=host \
  --ipc=host --workdir="$PWD" "${devices[@]}" "${mounts[@]}" --gpu "$IMAGE" \
  conda-python-distributed --nproc-per-node 4 train.py --epochs 3 --note 'it'"'"'s'
