#!/bin/bash
# Install Miniforge and make the environment 'pytorch' that later layers install into.
set -euo pipefail

machine=$(uname -m)
fetch-source "miniforge-${machine//_/-}" miniforge
bash miniforge/*.sh -b -p /opt/conda

# A mirror's address may hold a password, and conda notes its command line in the environment: it gets the
# address in a file, under another name. JSON is YAML, with quotes for all that there may be in it.
channel=$OPT_CHANNEL
MIRROR=$(mirrored "$OPT_CHANNEL")
export MIRROR
if [[ $MIRROR != "$OPT_CHANNEL" ]]; then
  channel=sifwright
  export CONDARC=$PWD/condarc
  /opt/conda/bin/python -c 'import json, os
print(json.dumps({"custom_multichannels": {"sifwright": [os.environ["MIRROR"]]}}))' >"$CONDARC"
fi
read -ra packages <<<"$OPT_PACKAGES"
/opt/conda/bin/conda create --quiet --yes --name pytorch --override-channels --channel "$channel" \
  "python=$OPT_PYTHON" pip "${packages[@]}"
/opt/conda/bin/conda clean --quiet --yes --all
# conda notes where each package came from: the public address, not the building machine's mirror.
/opt/conda/bin/python files/forget_mirror.py /opt/conda
