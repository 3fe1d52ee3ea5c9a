#!/bin/bash
#
# Site local: 1 node, 4 ranks on each, started by torchrun. Written by sifwright; run it with bash.
set -euo pipefail

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
[[ -v SIFWRIGHT_SITE ]] || export SIFWRIGHT_SITE=local
[[ -v SIFWRIGHT_VENDOR ]] || export SIFWRIGHT_VENDOR=cpu

"$RUNSCRIPTS/conda-python-distributed" --nproc-per-node 4 train.py --epochs 3 --note 'it'"'"'s'
