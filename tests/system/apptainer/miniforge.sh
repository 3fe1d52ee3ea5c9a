#!/bin/bash
# Take Miniforge's options, and install a conda that knows `create` and `clean`: rattler stands for it.
set -euo pipefail
[[ $1 == -b && $2 == -p ]]
readonly home=$3
apt-install python3-venv
python3 -m venv "$home/rattler"
mkdir "$home/bin"
ln -s ../rattler/bin/python "$home/bin/python"
"$home/rattler/bin/python" -m pip install --quiet py-rattler
cat >"$home/rattler/client.py" <<'PYTHON'
@CLIENT@
PYTHON
cat >"$home/bin/conda" <<CONDA
#!/bin/bash
[[ \$1 == clean ]] || exec "$home/rattler/bin/python" "$home/rattler/client.py" "\$@"
CONDA
chmod +x "$home/bin/conda"
cat >"$home/bin/activate" <<ACTIVATE
export CONDA_PREFIX="$home/envs/\$1" PATH="$home/envs/\$1/bin:\$PATH"
ACTIVATE
