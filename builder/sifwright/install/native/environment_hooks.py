"""Scripts that give an environment's activation the installation's variables, and their undo."""

import shlex
from collections.abc import Iterable
from pathlib import Path

from sifwright.catalog.model import EnvRule
from sifwright.install.native import host_script
from sifwright.plan.model import Plan
from sifwright.render.templating import template

_KINDS = ("activate", "deactivate")
_TEMPLATES = "install/native/templates"
# Function of Python's bin/activate that leaves the environment; activation calls it first.
_FUNCTION = "deactivate () {\n"
_BEFORE = """\
{required}
# sifwright: in a shell that has it active, values stay; another environment is left by its function
if [ "$(command -v deactivate)" = deactivate ]; then
    if [ "${{VIRTUAL_ENV:-}}" = {environment} ]; then
        export PATH="$VIRTUAL_ENV/bin:$PATH"
        hash -r
        return 0
    fi
    deactivate nondestructive
fi

"""
_LEAVE = """\
    # sifwright: what the installation has set is given back
    if [ -r "${SIFWRIGHT_DEACTIVATE:-}" ]; then . "$SIFWRIGHT_DEACTIVATE"; fi
"""
_ENTER = """
# sifwright: the variables of the installation
if [ -r "$VIRTUAL_ENV/etc/sifwright/activate.sh" ]; then
    . "$VIRTUAL_ENV/etc/sifwright/activate.sh"
fi
"""


def call_hooks(plan: Plan) -> None:
    """Let bin/activate of the virtual environment source the scripts, once they are there."""
    environment = host_script.python_prefix(plan)
    if environment is None or _is_conda(environment):
        return
    file = environment / "bin/activate"
    if not file.is_file():
        return
    text = file.read_text(encoding="utf-8")
    if _LEAVE not in text and _FUNCTION in text:
        words = {"environment": shlex.quote(str(environment))}
        before = _BEFORE.format(**words, required=host_script.required(environment))
        text = text.replace(_FUNCTION, f"{before}{_FUNCTION}{_LEAVE}", 1) + _ENTER
        file.write_text(text, encoding="utf-8")


def hook_files(plan: Plan, folder: Path) -> dict[Path, str]:
    """Return the scripts in the environment of an installation by their paths, if it has one."""
    environment = host_script.python_prefix(plan)
    if environment is None or not environment.is_dir():
        return {}
    rules = [*host_script.rules(plan, folder), *host_script.site_rules(plan.site)]
    is_conda = _is_conda(environment)
    pattern = "etc/conda/{}.d/sifwright.sh" if is_conda else "etc/sifwright/{}.sh"
    places = {kind: environment / pattern.format(kind) for kind in _KINDS}
    own = EnvRule(name="PATH", action="prepend", value=str(environment / "bin"))
    rules = [rule for rule in rules if rule != own]
    # conda also leaves an environment in another shell, to which a virtual environment's function
    # does not come.
    word = "export " if is_conda else ""
    texts = hooks(rules, folder, places["deactivate"], word)
    return {places[kind]: text for kind, text in texts.items()}


def hooks(rules: Iterable[EnvRule], folder: Path, undo: Path, word: str) -> dict[str, str]:
    """Return the scripts that set the variables and, at `undo`, give them back: in POSIX shell.

    `word` is put before the assignments of saved values.
    """
    rules = [rule for rule in rules if rule.name not in host_script.ENVIRONMENT_NAMES]
    values = {**host_script.saved_rules(rules), "folder": str(folder), "undo": str(undo)}
    required = host_script.required(folder)
    texts = {kind: template(f"{_TEMPLATES}/{kind}.sh.j2") for kind in _KINDS}
    return {kind: text.render(values, word=word, required=required) for kind, text in texts.items()}


def _is_conda(environment: Path) -> bool:
    return (environment / "conda-meta").is_dir()
