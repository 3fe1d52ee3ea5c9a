"""Where programs are looked for."""

import os

__all__ = ["search_path"]


def search_path() -> str:
    """Return PATH with the administrators' folders, which ordinary users often lack."""
    return f"{os.environ.get('PATH', os.defpath)}:/usr/sbin:/sbin"
