"""Render a plan as a definition file for SingularityCE's builds by proot, as an ordinary user.

Such builds take no bootstrap that runs programs on the machine, as debootstrap does. They take no
%setup either (SingularityCE 4 user guide, "Unprivileged proot builds").
"""

import shlex
import textwrap
from collections.abc import Iterator, Mapping

from sifwright.plan.model import Plan
from sifwright.render import oci_config
from sifwright.render.definition import render_definition, runner

# The address of Debian's archive is the one that Debian's own image names. That image has no lists
# of packages yet: apt then needs --no-release-info to print its sources (tried: apt 2.6).
_ARCHIVE = (
    "apt-get indextargets --no-release-info --format '$(REPO_URI)' 'Created-By: Packages'"
    " | sed -n '1s|/*$||p'"
)
# Packages that debootstrap would include, with the apt settings of render/templates/step.sh.
_INSTALL = """\
# The packages that debootstrap would have included, by apt's settings of the building machine.
(
  export SIFWRIGHT_BUILD=/.sifwright SIFWRIGHT_LAYER={layer} PATH=/.sifwright/bin:$PATH
  if [ -f /.sifwright/machine/environment ]; then . /.sifwright/machine/environment; fi
  if [ -f /.sifwright/machine/apt.conf ]; then export APT_CONFIG=/.sifwright/machine/apt.conf; fi
  apt-install {packages}
)"""


def proot_definition(plan: Plan, machine: Mapping[str, str]) -> str:
    """Render the definition file.

    `machine` holds the lines of the header that the building machine redirects, by keyword. Raises
    `PlanError` for a bootstrap that only a privileged build has.
    """
    start = oci_config.start(plan)
    prepare = install = ""
    others: tuple[str, ...] = ()
    if isinstance(start, oci_config.Debootstrap):
        prepare, others = _sources(start), ("apt-install",)
        packages = " ".join(map(shlex.quote, start.include.split()))
        install = _INSTALL.format(layer=plan.steps[0].layer.name, packages=packages)
    return render_definition(
        plan,
        {
            "header": list(_header(plan, start, machine)),
            "by_hand": "singularity build",
            "copied": (),
            "is_debootstrap": False,
            "prepare": textwrap.indent(prepare, "    ").rstrip("\n"),
            "install": textwrap.indent(install, "    "),
            "runner": runner(plan, *others),
        },
    )


def _header(
    plan: Plan, start: oci_config.Start, machine: Mapping[str, str]
) -> Iterator[tuple[str, str]]:
    """Yield the header; Debian's own image replaces debootstrap."""
    if isinstance(start, oci_config.Debootstrap):
        yield from (("Bootstrap", "docker"), ("From", start.name.removeprefix("docker.io/")))
        return
    for keyword, value in plan.steps[0].header.items():
        yield keyword, machine.get(keyword, value)


def _sources(start: oci_config.Debootstrap) -> str:
    """Write apt's sources as debootstrap does; layer base-debian reads and removes them."""
    archive = shlex.quote(start.mirror) if start.mirror else f"$({_ARCHIVE})"
    return (
        f"archive={archive}\n"
        "rm -rf /etc/apt/sources.list.d/*\n"
        f"printf 'deb %s %s main\\n' \"$archive\" {start.suite} >/etc/apt/sources.list\n"
    )
