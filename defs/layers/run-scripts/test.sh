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
