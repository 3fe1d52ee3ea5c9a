#!/bin/bash
#SBATCH --job-name=train
#SBATCH --nodes=2
#SBATCH --gres=gpu:4
#SBATCH --partition=gpu
#SBATCH --qos=gpu
#SBATCH --exclusive
#SBATCH --time=00:20:00
#SBATCH --account=project
#
# Site cirrus-epcc: 2 nodes, 4 ranks on each. Written by sifwright; submit it with sbatch.
set -euo pipefail

# Modules; their code may read variables that are not set.
set +u
module load python/3.12.1-gpu nvidia/nvhpc/24.5
set -u

# Caches, not in the home directory
cache="${SLURM_SUBMIT_DIR:?}/.cache"
mkdir -p "$cache"
export XDG_CACHE_HOME="${XDG_CACHE_HOME:-$cache}"
export TORCH_HOME="${TORCH_HOME:-$cache/torch}"
export HF_HOME="${HF_HOME:-$cache/huggingface}"
export TRITON_CACHE_DIR="${TRITON_CACHE_DIR:-$cache/triton}"

# The run scripts and the virtual environment
RUNSCRIPTS=${RUNSCRIPTS:-} # a module of the image sets it
[[ -n $RUNSCRIPTS ]] || RUNSCRIPTS=/project/runscripts
venv=/project/venv
for file in "$RUNSCRIPTS/conda-python-distributed" "$venv/bin/activate"; do
  [[ -r $file ]] || { echo "job: there is no file '$file'" >&2; exit 66; }
done
export WITH_CONDA="source $venv/bin/activate"

# What an image of this site carries itself
[[ -v SIFWRIGHT_SITE ]] || export SIFWRIGHT_SITE=cirrus-epcc
[[ -v SIFWRIGHT_VENDOR ]] || export SIFWRIGHT_VENDOR=nvidia
[[ -v OMPI_MCA_mca_base_component_show_load_errors ]] || export OMPI_MCA_mca_base_component_show_load_errors=0

export SRUN_CPUS_PER_TASK=10 # since Slurm 22.05, srun does not take it from the job
srun --export=ALL --nodes=2 --ntasks=8 --ntasks-per-node=4 --cpus-per-task=10 \
  --hint=nomultithread --kill-on-bad-exit=1 \
  "$RUNSCRIPTS/conda-python-distributed" train.py --epochs 3 --note 'it'"'"'s'
