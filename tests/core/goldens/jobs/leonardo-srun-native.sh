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

# Caches, not in the home directory
cache="${SCRATCH:?}/.cache"
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
[[ -v SIFWRIGHT_SITE ]] || export SIFWRIGHT_SITE=leonardo
[[ -v SIFWRIGHT_VENDOR ]] || export SIFWRIGHT_VENDOR=nvidia

export SRUN_CPUS_PER_TASK=8 # since Slurm 22.05, srun does not take it from the job
srun --export=ALL --nodes=2 --ntasks=8 --ntasks-per-node=4 --cpus-per-task=8 \
  --kill-on-bad-exit=1 \
  "$RUNSCRIPTS/conda-python-distributed" train.py --epochs 3 --note 'it'"'"'s'
