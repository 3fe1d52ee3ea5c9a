"""Machines that are older, or set up in another way, than the one that runs the tests."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["OVERLAYS_OFF", "READ_ONLY", "old_unshare"]

# util-linux 2.37 has no --map-auto; this is what its getopt says.
_OLD = """#!/bin/sh
for word in "$@"; do
  if [ "$word" = --map-auto ]; then
    echo "unshare: unrecognized option '--map-auto'" >&2
    exit 1
  fi
done
exec /usr/bin/unshare "$@"
"""
# Runs the command after the folder that follows, which is mounted for reading only.
READ_ONLY = [
    *("unshare", "--mount", "bash", "-euc"),
    """
mount --bind "$0" "$0"
mount -o remount,bind,ro "$0"
exec "$@"
""",
]
# Runs the command that follows where apptainer.conf has `enable overlay = no`. Only its own mount
# namespace sees that.
OVERLAYS_OFF = [
    *("unshare", "--mount", "bash", "-euc"),
    """
conf=$(apptainer buildcfg | sed -n 's/^APPTAINER_CONF_FILE=//p')
sed 's/^enable overlay = .*/enable overlay = no/' "$conf" >"$0"
mount --bind "$0" "$conf"
exec "$@"
""",
]


def old_unshare(folder: Path) -> Path:
    """Make a folder for PATH with an unshare of util-linux 2.37."""
    folder.mkdir()
    program = folder / "unshare"
    program.write_text(_OLD)
    program.chmod(0o755)
    return folder
