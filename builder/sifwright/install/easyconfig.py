"""Render an easyconfig, which has the modulefiles in Lua and Tcl in it."""

import shlex
import textwrap
from collections.abc import Mapping

from sifwright.install.installed_image import InstalledImage
from sifwright.install.module import Module
from sifwright.render.templating import long_text, refuse_controls, template

# In an installation, all that is not the user's.
OURS = ("bin", "runscripts", "share", "*.sif")
# EasyBuild's style check allows 120.
_WIDTH = 100
# Puts the image where the rest is unpacked.
_LINK = "ln -sf '%s' ."


def easyconfig(module: Module, facts: InstalledImage, values: Mapping[str, object]) -> str:
    """Return the text of the .eb file.

    `values` are `archives` with their sha256, `links` of the installation, and `image_url`, a
    server's folder with the image, if any. `sif_sha256` is empty for an image that is not here.
    Then `missing` tells how to get the image; it is empty for a central one.
    """
    return template("install/templates/easyconfig.eb.j2", *FILTERS).render(
        **values,
        module=module,
        facts=facts,
        stem=facts.stem,
        ours=" ".join(OURS),
        has_image=bool(values["sif_sha256"] or values["missing"]),
        take_image=_take_known_image(module.sif, facts.plan) if values["missing"] else _LINK,
    )


def _take_known_image(sif: str, plan: str) -> str:
    """Return the command that puts an image of this plan where the rest is unpacked.

    Without a checksum it compares the id of the plan. The definition of an image of ours has the
    id, and is the first object in a SIF. If a command fails, EasyBuild 4 shows its beginning and
    not always its output. So the command begins with the meaning of a failure.
    """
    meaning = (
        f"An image of another plan than {plan[:12]} fails here. Take the easyconfig of the"
        " commit that it was built from, or write one: sifwright easyconfig SITE --from SIF"
    )
    return f": '{meaning}' && {_LINK} && head -c 4M {shlex.quote(sif)} | grep -aqF {plan}"


def _python(value: str) -> str:
    refuse_controls(value)
    return repr(value)


def _words(line: str) -> str:
    """Return a long line as a tuple of strings (E501 of pycodestyle)."""
    pieces = textwrap.wrap(line, _WIDTH, drop_whitespace=False, break_on_hyphens=False)
    return "\n    ".join(map(repr, pieces))


def inside(text: str) -> str:
    """Return the text for use between three quotes in an easyconfig."""
    return text.replace("\\", "\\\\").replace('"""', '\\"\\"\\"').strip("\n")


FILTERS = (("py", _python), ("words", _words), ("inside", inside), ("text", long_text))
