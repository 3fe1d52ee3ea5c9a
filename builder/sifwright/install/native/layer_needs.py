"""Needs of layers that a host must meet, in place of packages that images install."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from sifwright.catalog.host_need import HostNeed
from sifwright.errors import Problem
from sifwright.plan.model import Plan, Step
from sifwright.plan.native import ENV_MANAGERS
from sifwright.plan.select_layers import why_not_suitable
from sifwright.plan.sources import OFF

_LACKS = {
    "header": "no compiler finds {}",
    "library": "no compiler finds the library {}",
    "shared-library": "there is no library {}",
    "program": "there is no program '{}'",
}
_PYTHON_HEADER = "Python.h"
_CONDA = ENV_MANAGERS["conda"]
_BY_CONDA = "the conda environment must have it: conda.packages"
_CONDA_FIX = ", or add its package of conda-forge by --set conda.packages=NAME"


@dataclass(frozen=True, kw_only=True, slots=True)
class LayerNeed:
    """A need of one layer; `without` says what happens without, if it can be installed then."""

    step: Step
    need: HostNeed
    without: str


def layer_needs(plan: Plan) -> Iterator[LayerNeed]:
    """Yield what the layers need at this site with these options.

    An environment of conda has a Python with headers, and may have the others if packages are
    named.
    """
    conda = plan.step(_CONDA)
    has_packages = conda is not None and any(
        conda.options[x].text for x in ("packages", "explicit")
    )
    for step in plan.steps:
        for need in step.layer.host_needs:
            is_off = need.when and step.options[need.when].text in OFF
            is_of_conda = conda and need.name == _PYTHON_HEADER
            if is_off or is_of_conda or why_not_suitable(need.suits, plan.site):
                continue
            without = need.without or (_BY_CONDA if has_packages else "")
            yield LayerNeed(step=step, need=need, without=without)


def problem(plan: Plan, kind: str, name: str) -> Problem:
    """Return the problem of one thing that the host lacks: a note if every layer can do without."""
    needs = [item for item in layer_needs(plan) if (item.need.kind, item.need.name) == (kind, name)]
    strict = [item for item in needs if not item.without]
    layers = ", ".join(sorted({item.step.layer.name for item in strict or needs}))
    first = needs[0]
    reason = f", which layers {layers} need" if strict else f": {first.without} (layers {layers})"
    # Users of an installation have the modules of jobs.
    key = "modules.host" if first.need.without and not strict else "native.modules"
    fix = f"Name the module that has it in {key} of defs/sites/{plan.site.name}.yaml, or install it"
    switches = "".join(map(_switch, strict)) + (_CONDA_FIX if strict and plan.step(_CONDA) else "")
    return Problem(
        where=f"site '{plan.site.name}'",
        what=f"{_LACKS[kind].format(name)}{reason}",
        fix=f"{fix} (Debian's package: {first.need.package}){switches}.",
        severity="error" if strict else "note",
    )


def _switch(item: LayerNeed) -> str:
    """Return the setting by which the layer does without it."""
    option = item.step.layer.options.get(item.need.when)
    is_boolean = option is not None and option.type == "boolean"
    return f", or --set {item.step.layer.name}.{item.need.when}=false" if is_boolean else ""
