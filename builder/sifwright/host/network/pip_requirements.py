"""Requirements of the packages of an image, and the settings of pip that find them."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

from sifwright.catalog import mirrors
from sifwright.host.network import pip_settings

if TYPE_CHECKING:
    from sifwright.catalog.model import Download
    from sifwright.plan.model import Step

_NAME = re.compile(r"\{([a-z0-9-]+)\}")


def fill(text: str, step: Step) -> str:
    """Return the text with the values of options in place of their names."""
    return _NAME.sub(lambda match: step.options[match[1]].text, text)


def requirement(step: Step, download: Download) -> str:
    """Return the requirement with its version; nothing if an option in it is empty."""
    needed = all(step.options[name].text for name in _NAME.findall(download.pip))
    return fill(download.pip, step) if needed else ""


def index(step: Step, download: Download) -> str:
    """Return the layer's extra index, used after the machine's own settings, or ''."""
    return mirrors.load().redirect(fill(download.index, step), *mirrors.DOWNLOADS)


def environment(index: str = "") -> dict[str, str]:
    """Return the settings that the build will see, and no others; `index` replaces the first index.

    Not this machine's constraints, required hashes or target folders. An index may hold a password,
    and every user can read the arguments of a process.
    """
    own = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "PIP_"))}
    settings = pip_settings.environment(pip_settings.settings())
    first = {"PIP_INDEX_URL": index} if index else {}
    return own | {"PIP_CONFIG_FILE": os.devnull, **settings, **first}
