"""The record says which files pip installed, and a build says where the ones before differ."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.system.apptainer.toys import Toy

PLACE = "/opt/lib/python3.11/site-packages/part-1.0.dist-info"
# The files that pip leaves of a wheel whose server builds it again for each download.
INSTALL = f"""mkdir -p {PLACE}
printf 'Metadata-Version: 2.1\\nName: part\\nVersion: 1.0\\n' >{PLACE}/METADATA
echo "$(</proc/sys/kernel/random/uuid)" >{PLACE}/RECORD
"""
LINE = "other files than in the image before, at the same version: part-1.0"


def test_a_wheel_with_other_files_at_the_same_version(toy: Toy) -> None:
    toy.layer("wheels", INSTALL)
    toy.image("wheels")
    outputs, digests = [], []
    for words in ([], ["--force"], ["--no-cache", "--force"]):
        built = toy.build(*words)
        assert built.returncode == 0, built.stderr
        outputs.append(built.stdout + built.stderr)
        digests.append(json.loads((toy.output / "record.json").read_text())["python_files"][PLACE])
    assert [LINE in output for output in outputs] == [False, False, True]
    first, cached, again = digests
    assert first == cached != again
