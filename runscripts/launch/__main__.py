"""`python -I -S runscripts/launch …` is conda-python-distributed after the activation."""

import os
import sys

sys.path[0] = os.path.dirname(sys.path[0])  # this folder is a package of it

from launch.distributed import main  # noqa: E402

main(sys.argv[1:])
