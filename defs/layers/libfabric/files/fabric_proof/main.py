"""The program for test.sh of layers: `python3 /opt/sifwright/fabric_proof/main.py plugin …`."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from fabric_proof.cli import main  # found only now

sys.exit(main(sys.argv[1:]))
