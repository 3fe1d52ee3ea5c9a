#!/bin/bash
#SBATCH --job-name=train
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=1
#SBATCH --cpus-per-task=56
#SBATCH --partition=batch
#SBATCH --network=disable_rdzv_get
#SBATCH --time=00:30:00
#SBATCH --account=project
#
# Site frontier: 2 nodes, 8 ranks on each, started by torchrun. Written by sifwright; submit it with sbatch.
set -euo pipefail

# The way to the internet
[[ -v all_proxy ]] || export all_proxy=socks5://proxy.ccs.ornl.gov:3128/
[[ -v ftp_proxy ]] || export ftp_proxy=ftp://proxy.ccs.ornl.gov:3128/
[[ -v http_proxy ]] || export http_proxy=http://proxy.ccs.ornl.gov:3128/
[[ -v https_proxy ]] || export https_proxy=http://proxy.ccs.ornl.gov:3128/
[[ -v no_proxy ]] || export no_proxy='localhost,127.0.0.0/8,*.ccs.ornl.gov'

# Caches, not in the home directory
cache="/lustre/orion/${SLURM_JOB_ACCOUNT:?}/scratch/${USER:?}/.cache"
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
  "/usr/share/libdrm" \
  "/var/spool/slurmd" \
  "/opt/cray" \
  "/lustre/orion" \
  "${PWD:?}"; do
  [[ ! -e ${entry%%:*} ]] || add_bind "$entry"
done
unset APPTAINER_BIND SINGULARITY_BIND
export APPTAINER_BINDPATH=$binds SINGULARITY_BINDPATH=$binds

export SRUN_CPUS_PER_TASK=56 # since Slurm 22.05, srun does not take it from the job
srun --export=ALL --nodes=2 --ntasks=2 --ntasks-per-node=1 --cpus-per-task=56 --gpus-per-task=8 \
  --gpu-bind=closest --network=disable_rdzv_get --kill-on-bad-exit=1 \
  apptainer exec --rocm "$SIF" \
  conda-python-distributed --nproc-per-node 8 train.py --epochs 3 --note 'it'"'"'s'
