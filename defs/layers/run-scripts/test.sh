#!/bin/bash
# The scripts are found, activate the environment and hand over exit codes and arguments.
set -euo pipefail

for script in conda-python-simple conda-python-distributed get-master; do
  [[ $(command -v "$script") == "${IMAGE_ROOT:-}/runscripts/$script" ]]
done

[[ $(conda-python-simple -c 'import sys; print(sys.argv[1:])' 'a  b' '*') == "['a  b', '*']" ]]

status=0
conda-python-simple -c 'raise SystemExit(42)' || status=$?
((status == 42))

[[ $(conda-python-distributed -c 'import os; print(os.environ["RANK"], os.environ["WORLD_SIZE"])') == "0 1" ]]

# Files that they read: the site's environment, and bytecode that the read-only image could not keep.
[[ $(head -n 1 "${IMAGE_ROOT:-}/etc/sifwright/site-environment") == "# Site "* ]]
compgen -G "${IMAGE_ROOT:-}/runscripts/*/__pycache__/*.pyc" >/dev/null

# Another torch is there for the taking: pip, its isolated builds and uv leave it, and name the image's.
torch=$(grep -sx 'torch==.*' "${PIP_CONSTRAINT-}" || true)
if [[ -n $torch ]] && python -m pip --version >/dev/null 2>&1; then # an image may have no pip
  work=$(mktemp -d)
  trap 'rm -rf "$work"' EXIT
  mkdir "$work/toy"
  python - "$work/torch-99-py3-none-any.whl" <<'PYTHON'
import sys
import zipfile

with zipfile.ZipFile(sys.argv[1], "w") as wheel:
    wheel.writestr("torch-99.dist-info/METADATA", "Metadata-Version: 2.1\nName: torch\nVersion: 99\n")
    wheel.writestr("torch-99.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
    wheel.writestr("torch-99.dist-info/RECORD", "")
PYTHON
  printf '[build-system]\nrequires = ["torch"]\nbuild-backend = "setuptools.build_meta"\n' >"$work/toy/pyproject.toml"
  export PIP_CONFIG_FILE=/dev/null PIP_NO_INDEX=1 PIP_FIND_LINKS=$work UV_NO_CONFIG=1 UV_OFFLINE=1 UV_FIND_LINKS=$work
  refuses() {
    if "$@" >"$work/log" 2>&1 || ! grep -qF "$torch" "$work/log"; then
      printf '%s does not hold %s:\n%s\n' "$*" "$torch" "$(<"$work/log")" >&2
      exit 1
    fi
  }
  for wanted in torch==99 "$work/toy"; do
    refuses pip wheel --wheel-dir "$work" "$wanted"
    ! command -v uv >/dev/null || refuses uv pip install --no-cache --target "$work/new" "$wanted"
  done
  # Without isolation there is nothing to constrain, and pip would refuse to.
  pip wheel --no-build-isolation --no-deps --wheel-dir "$work" "$work/toy" >"$work/log" 2>&1 || true
  ! grep -F -- --build-constraint "$work/log" || exit 1
fi
