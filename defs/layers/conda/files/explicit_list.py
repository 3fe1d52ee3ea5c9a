"""Print the packages of a conda environment as an explicit list, with checksums: list ENVIRONMENT.

conda, mamba, micromamba and the option `explicit` of this layer make the same environment of it.
"""
# ruff: noqa: INP001  # a program of its own

import json
import sys
from pathlib import Path

records = [
    json.loads(path.read_text(encoding="utf-8"))
    for path in Path(sys.argv[1]).glob("conda-meta/*.json")
]
lines = [f"{record['url']}#{record['md5']}" for record in records]
sys.stdout.write("\n".join(["@EXPLICIT", *sorted(lines), ""]))
