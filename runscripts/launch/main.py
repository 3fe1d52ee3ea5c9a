"""conda-python-distributed after the activation: `python -I -S runscripts/launch/main.py …`."""

import sys

sys.path.insert(0, __file__.rpartition("/launch/")[0])  # -I leaves it out

from launch.distributed import main

main(sys.argv[1:])
