#!/bin/bash
# flux: --job-name=train
# flux: --nodes=2
# flux: --exclusive
# flux: --queue=pbatch
# flux: --time-limit=1800s
# flux: --setattr=rdzv_get_en=0
#
# Site el-capitan: 2 nodes, 4 ranks on each. Written by sifwright; submit it with flux batch.
set -euo pipefail

# Rank 0's host, which Flux tells no task (flux-hostlist(1): the hosts of this batch job's instance)
[[ -v SIFWRIGHT_MASTER_HOST ]] || SIFWRIGHT_MASTER_HOST=$(flux hostlist --nth=0 instance)
export SIFWRIGHT_MASTER_HOST

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
[[ -v SIFWRIGHT_SITE ]] || export SIFWRIGHT_SITE=el-capitan
[[ -v SIFWRIGHT_VENDOR ]] || export SIFWRIGHT_VENDOR=amd
[[ -v SIFWRIGHT_INTERFACE ]] || export SIFWRIGHT_INTERFACE=hsi0
[[ -v FI_MR_CACHE_MONITOR ]] || export FI_MR_CACHE_MONITOR=userfaultfd
[[ -v FI_CXI_DISABLE_HOST_REGISTER ]] || export FI_CXI_DISABLE_HOST_REGISTER=1
[[ -v FI_CXI_DEFAULT_CQ_SIZE ]] || export FI_CXI_DEFAULT_CQ_SIZE=131072
[[ -v FI_CXI_DEFAULT_TX_SIZE ]] || export FI_CXI_DEFAULT_TX_SIZE=1024
[[ -v FI_CXI_RDZV_PROTO ]] || export FI_CXI_RDZV_PROTO=alt_read
[[ -v FI_CXI_RDZV_EAGER_SIZE ]] || export FI_CXI_RDZV_EAGER_SIZE=0
[[ -v FI_CXI_RDZV_GET_MIN ]] || export FI_CXI_RDZV_GET_MIN=0
[[ -v FI_CXI_RDZV_THRESHOLD ]] || export FI_CXI_RDZV_THRESHOLD=0
[[ -v FI_CXI_RX_MATCH_MODE ]] || export FI_CXI_RX_MATCH_MODE=hybrid
[[ -v NCCL_CROSS_NIC ]] || export NCCL_CROSS_NIC=1
[[ -v NCCL_MIN_NCHANNELS ]] || export NCCL_MIN_NCHANNELS=24
[[ -v NCCL_NET_GDR_LEVEL ]] || export NCCL_NET_GDR_LEVEL=3
[[ -v NCCL_SOCKET_IFNAME ]] || export NCCL_SOCKET_IFNAME=hsi0
[[ -v PYTORCH_MIOPEN_SUGGEST_NHWC ]] || export PYTORCH_MIOPEN_SUGGEST_NHWC=1
[[ -v PYTORCH_MIOPEN_SUGGEST_NHWC_BATCHNORM ]] || export PYTORCH_MIOPEN_SUGGEST_NHWC_BATCHNORM=1
[[ -v TENSILE_SOLUTION_SELECTION_METHOD ]] || export TENSILE_SOLUTION_SELECTION_METHOD=2

flux run --nodes=2 --ntasks=8 --cores-per-task=24 --gpus-per-task=1 -ofastload=on \
  --setattr=rdzv_get_en=0 \
  "$RUNSCRIPTS/conda-python-distributed" train.py --epochs 3 --note 'it'"'"'s'
