"""The scripts of an installation on the host: of its steps, its tests, and its activation."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator
from pathlib import Path

from sifwright.catalog import site_environment
from sifwright.catalog.model import EnvRule, Site
from sifwright.plan.model import Plan, Step
from sifwright.render import shell
from sifwright.render.templating import template

SITE_ENVIRONMENT = "etc/sifwright/site-environment"
# In an installation: what runs its tests.
RUN_TESTS = "sifwright/run-host-tests"
# Variables of an activated environment, which no module sets.
ENVIRONMENT_NAMES = ("VIRTUAL_ENV", "CONDA_PREFIX", "CONDA_DEFAULT_ENV")


def python_prefix(plan: Plan) -> Path | None:
    """Return the folder of the Python environment, or None if no layer makes one."""
    rules = (rule for step in plan.steps for rule in step.layer.env)
    prefixes = (rule.value for rule in rules if rule.name in ENVIRONMENT_NAMES[:2])
    return next(map(Path, prefixes), None)


def rules(plan: Plan, folder: Path) -> Iterator[EnvRule]:
    """Yield the environment of a complete installation in the folder."""
    yield from _layer_rules(plan.steps)
    # A second activation finds this variable and changes nothing.
    yield EnvRule(name="SIFWRIGHT_INSTALLATION", action="set", value=str(folder))
    if plan.has_run_scripts:
        path = str(folder / SITE_ENVIRONMENT)
        yield EnvRule(name="SIFWRIGHT_SITE_ENVIRONMENT", action="set", value=path)


def _layer_rules(steps: Iterable[Step], *, image_only: bool = False) -> Iterator[EnvRule]:
    """Yield the rules of the steps' layers: those of a host, or those of images only."""
    every = (rule for step in steps for rule in step.layer.env)
    return (rule for rule in every if rule.image_only == image_only)


def step_script(plan: Plan, number: int, build: Path) -> str:
    """Return the script of bash that runs a step; `build` has its files."""
    step = plan.steps[number]
    before = map(shell.export, _layer_rules(plan.steps[:number]))
    lines = [*_modules(plan.site), "set -e", *before]
    lines.append(f"cd {shlex.quote(str(build))}")
    words = ["env", *shell.assignments(step.options), *shell.sources(step.sources)]
    command = f"exec {' '.join(words)} bash {shlex.quote(str(build / 'step'))} {step.layer.name}"
    return "\n".join(["umask 022", *lines, command, ""])


def test_script(plan: Plan, folder: Path) -> str:
    """Return the script of bash that runs the tests beside it, with HOME and TMPDIR as told.

    `folder` has what is tested.
    The tests start ranks on this machine alone, as in an image: they may run in a job.
    """
    prefix = shlex.quote(str(folder))
    own = [*_layer_rules(plan.steps, image_only=True), *rules(plan, folder)]
    lines = [*_modules(plan.site), *map(shell.export, own)]
    lines.append(f"export INSTALL_PREFIX={prefix} IMAGE_ROOT={prefix}")
    return "\n".join([*lines, 'HOME=$1 TMPDIR=$1 exec bash "$(dirname -- "$0")/run-tests"', ""])


def activation(plan: Plan, folder: Path) -> str:
    """Return the script that gives a shell the modules and variables of the installation."""
    site, path = plan.site, "install/native/templates/bin_activate.sh.j2"
    values = saved_rules([*rules(plan, folder), *site_rules(site)])
    if site.modules.library_path:
        values["names"] = sorted({*values["names"], "LD_LIBRARY_PATH"})
    loaded = loaded_modules(site, is_build=False)
    text = template(path, ("words", shlex.join))
    return text.render(
        values,
        modules=site.modules,
        loaded=loaded,
        required=required(folder),
        needed=shell.variables(site.modules.library_path),
        end="_sifwright_status=1",
    )


def required(folder: Path) -> str:
    """Return the line of POSIX shell that leaves a sourced script if the folder was moved."""
    message = f"sifwright: there is no folder {folder}. Move it back, or install it again."
    return f"[ -d {shlex.quote(str(folder))} ] || {{ echo {shlex.quote(message)} >&2; return 1; }}"


def no_packages(site: Site) -> str:
    """Return the program that stands for `apt-install` in a step: it names the site's modules."""
    text = template("install/native/templates/no_packages.sh.j2")
    return text.render(modules=site.modules, loaded=loaded_modules(site, is_build=True))


def saved_rules(rules: Iterable[EnvRule]) -> dict[str, list[str]]:
    """Return the names with values to keep for later, and the lines that set them."""
    rules = list(rules)
    names = sorted({rule.name for rule in rules})
    return {"names": names, "lines": list(map(shell.export, rules))}


def site_rules(site: Site) -> Iterator[EnvRule]:
    """Yield the site's variables for any number of nodes; the user's own values stay."""
    variables = site_environment.always(site) | dict(site.mpi_environment)
    for name, value in variables.items():
        yield EnvRule(name=name, action="default", value=value)


def loaded_modules(site: Site, *, is_build: bool) -> list[str]:
    """Return the modules that are loaded: those of jobs on the host, and a build's own."""
    own = site.native.modules if site.native and is_build else ()
    return [*site.modules.host, *own]


def _modules(site: Site) -> Iterator[str]:
    """Yield the lines that load the modules of a build, and set its variables."""
    loaded = loaded_modules(site, is_build=True)
    if loaded:
        text = template("install/native/templates/site_modules.sh.j2", ("words", shlex.join))
        yield text.render(modules=site.modules, loaded=loaded, end="exit 1").rstrip()
    if loaded and site.modules.library_path:
        path = shell.path(site.modules.library_path)
        yield f'export LD_LIBRARY_PATH={path}"${{LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}}"'
    for name, value in (site.native.environment if site.native else {}).items():
        yield f"export {name}={shell.path(value)}"
