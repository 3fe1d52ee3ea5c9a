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
module --force purge
module load ncarenv/24.12 gcc/12.4.0 cray-mpich/8.1.29 cuda/12.3.2
set -u

# Caches, not in the home directory
cache="/glade/derecho/scratch/${USER:?}/.cache"
mkdir -p "$cache"
export XDG_CACHE_HOME="${XDG_CACHE_HOME:-$cache}"
export TORCH_HOME="${TORCH_HOME:-$cache/torch}"
export HF_HOME="${HF_HOME:-$cache/huggingface}"

# The run scripts and the environment
RUNSCRIPTS=${RUNSCRIPTS:-} # a module of the image sets it
[[ -n $RUNSCRIPTS ]] || RUNSCRIPTS=/project/runscripts
[[ -r $RUNSCRIPTS/conda-python-distributed ]] || {
  echo "job: there is no file '$RUNSCRIPTS/conda-python-distributed'" >&2
  exit 66
}
venv=/project/venv
if [[ -r $venv/bin/activate ]]; then
  export WITH_CONDA="source $venv/bin/activate"
elif [[ -d $venv/conda-meta && -x $venv/bin/python ]]; then
  # A conda environment, activated here as `conda activate` does it: the ranks inherit it.
  prefix=$(cd -- "$venv" >/dev/null && pwd)
  unset VIRTUAL_ENV PYTHONHOME
  export CONDA_PREFIX=$prefix CONDA_DEFAULT_ENV=$prefix CONDA_SHLVL=1 PATH=$prefix/bin:$PATH
  # Variables of packages, then those of `conda env config vars set`, which come first.
  variables=$("$prefix/bin/python" -I -c '
import glob, json, shlex, sys
prefix, variables = glob.escape(sys.argv[1]), {}
for file in sorted(glob.glob(prefix + "/etc/conda/env_vars.d/*.json")):
    variables.update(json.load(open(file, encoding="utf-8")))
for file in glob.glob(prefix + "/conda-meta/state"):
    variables.update(json.load(open(file, encoding="utf-8")).get("env_vars", {}))
for name, value in variables.items():
    if value != "***unset***": # what conda env config vars unset leaves
        print("export %s=%s" % (name, shlex.quote(str(value))))
' "$prefix")
  set +eu # these scripts may read variables that are not set, and rely on failing commands
  eval "$variables"
  for file in "$prefix"/etc/conda/activate.d/*.sh; do
    # shellcheck source=/dev/null
    [[ ! -r $file ]] || source "$file"
  done
  set -eu
  export WITH_CONDA=true
else
  echo "job: '$venv' has neither bin/activate nor, as conda environments, conda-meta/ and bin/python" >&2
  exit 66
fi

# Variables that an image of this site carries itself
[[ -v NCCL_NET ]] || export NCCL_NET='AWS Libfabric'
[[ -v NCCL_PROTO ]] || export NCCL_PROTO='^LL128'
[[ -v SIFWRIGHT_SITE ]] || export SIFWRIGHT_SITE=derecho
[[ -v SIFWRIGHT_VENDOR ]] || export SIFWRIGHT_VENDOR=nvidia
[[ -v SIFWRIGHT_INTERFACE ]] || export SIFWRIGHT_INTERFACE=hsn0
[[ -v MPICH_OFI_NIC_POLICY ]] || export MPICH_OFI_NIC_POLICY=GPU
[[ -v FI_MR_CACHE_MONITOR ]] || export FI_MR_CACHE_MONITOR=userfaultfd
[[ -v FI_CXI_DISABLE_HOST_REGISTER ]] || export FI_CXI_DISABLE_HOST_REGISTER=1
[[ -v FI_CXI_DEFAULT_CQ_SIZE ]] || export FI_CXI_DEFAULT_CQ_SIZE=131072
[[ -v NCCL_CROSS_NIC ]] || export NCCL_CROSS_NIC=1
[[ -v NCCL_SOCKET_IFNAME ]] || export NCCL_SOCKET_IFNAME=hsn
[[ -v MPICH_GPU_SUPPORT_ENABLED ]] || export MPICH_GPU_SUPPORT_ENABLED=1

mpiexec -n 8 -ppn 4 --no-transfer --cpu-bind numa \
  "$RUNSCRIPTS/conda-python-distributed" train.py --epochs 3 --note 'it'"'"'s'
