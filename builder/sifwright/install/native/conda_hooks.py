"""Scripts that `conda activate` and `conda deactivate` source: the installation's variables."""

from collections.abc import Iterable
from pathlib import Path

from sifwright.catalog.model import EnvRule
from sifwright.install.native import host_script
from sifwright.plan.model import Plan
from sifwright.render import shell
from sifwright.render.templating import template

_NAME = "sifwright.sh"


def write_hooks(plan: Plan, folder: Path) -> None:
    """Write the scripts into the conda environment of an installation, if it has one."""
    environment = host_script.python_prefix(plan)
    if environment is None or not (environment / "conda-meta").is_dir():
        return
    rules = [*host_script.rules(plan, folder), *host_script.site_rules(plan.site)]
    for kind, text in hooks(rules).items():
        path = environment / "etc/conda" / f"{kind}.d" / _NAME
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def hooks(rules: Iterable[EnvRule]) -> dict[str, str]:
    """Return the scripts for the folders activate.d and deactivate.d, in POSIX shell."""
    rules = [rule for rule in rules if rule.name not in host_script.ENVIRONMENT_NAMES]
    values = {"names": sorted({rule.name for rule in rules}), "lines": map(shell.export, rules)}
    folder = "install/native/templates"
    return {
        kind: template(f"{folder}/{kind}.sh.j2").render(values)
        for kind in ("activate", "deactivate")
    }
