"""Paths that a user cannot reach are refused with their reason."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pytest

from sifwright.errors import UsageError
from sifwright.system import access

_NOBODY = 65534


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_a_link_into_a_folder_of_another_user() -> None:
    with tempfile.TemporaryDirectory() as folder:  # pytest's own are for root only
        Path(folder).chmod(0o755)
        (private := Path(folder, "private")).mkdir(mode=0o700)
        (private / "inside").mkdir()
        (link := Path(folder, "link")).symlink_to(private / "inside")
        access.require_reachable(link, "--prefix")
        os.seteuid(_NOBODY)
        try:
            with pytest.raises(UsageError, match=r"is a link to .*, which you cannot reach"):
                access.require_reachable(link, "--prefix")
        finally:
            os.seteuid(0)
