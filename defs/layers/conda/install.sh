#!/bin/bash
# Make the conda environment 'pytorch', into which later layers install. An image uses Miniforge. A host
# uses its own micromamba, mamba or conda, else rattler.
set -euo pipefail

readonly home=$INSTALL_PREFIX/conda
readonly environment=$home/envs/pytorch
if [[ -z $IMAGE_ROOT ]]; then
  machine=$(uname -m)
  fetch-source "miniforge-${machine//_/-}" miniforge
  bash miniforge/*.sh -b -p "$home"
  program=("$home/bin/conda")
elif own=$(type -P micromamba || type -P mamba || type -P conda); then
  program=("$own")
else
  "$HOST_PYTHON" -m venv rattler
  rattler/bin/python -m pip install "py-rattler==$OPT_RATTLER"
  program=(rattler/bin/python files/rattler_client.py)
fi
echo "conda environments are made with ${program[*]}"

# A mirror's address may hold a password, and conda notes its command line in the environment. So conda gets
# the address in a file, under another name. JSON is YAML, and its quotes allow every character.
channel=$OPT_CHANNEL
MIRROR=$(mirrored "$OPT_CHANNEL")
export MIRROR
if [[ $MIRROR != "$OPT_CHANNEL" ]]; then
  channel=sifwright
  export CONDARC=$PWD/condarc
  "${HOST_PYTHON:-$home/bin/python}" -c 'import json, os
print(json.dumps({"custom_multichannels": {"sifwright": [os.environ["MIRROR"]]}}))' >"$CONDARC"
fi
if [[ -n $OPT_EXPLICIT ]]; then
  {
    echo @EXPLICIT
    for address in $OPT_EXPLICIT; do
      mirrored "$address"
    done
  } >explicit.txt
  wanted=(--file explicit.txt)
else
  read -ra packages <<<"$OPT_PACKAGES"
  wanted=(--override-channels --channel "$channel" "python=$OPT_PYTHON" pip "${packages[@]}")
fi
CONDA_PKGS_DIRS=$PWD/packages "${program[@]}" create --quiet --yes --prefix "$environment" "${wanted[@]}"

if [[ -z $IMAGE_ROOT ]]; then
  "$home/bin/conda" clean --quiet --yes --all
else
  mkdir -p "$home/bin"
  sed "s|@ENVIRONMENT@|$environment|" files/activate.sh >"$home/bin/activate"
fi
# conda notes where each package came from: the public address, not the building machine's mirror.
"$environment/bin/python" files/forget_mirror.py "$home"
"$environment/bin/python" files/explicit_list.py "$environment" >"$home/explicit.txt"
