"""The modulefile of a native installation, for Lmod and for Environment Modules."""

from dataclasses import dataclass, field

from sifwright.catalog import site_environment
from sifwright.catalog.model import EnvRule, Site
from sifwright.install.easyconfig import inside
from sifwright.plan.tested_builds import Untested
from sifwright.render.build_files import package_text
from sifwright.render.templating import long_text, template


@dataclass(frozen=True, kw_only=True, slots=True)
class Native:
    """Settings of a native module. `packages` is a folder below `prefix`.

    `variables` are those of an installation of ours; the user's own values give way to them.
    `untested` are its layers that no test of ours installs like this.
    """

    module: str
    prefix: str
    packages: str
    site: Site
    variables: tuple[EnvRule, ...] = ()
    untested: Untested = field(default_factory=Untested)


def venv_hook(module: str) -> str:
    """Return the program that makes a virtual environment load the module."""
    text = package_text("install/native/extend-venv-activate")
    return text.replace("DEFAULT_MODULE=''", f"DEFAULT_MODULE='{module}'", 1)


def easyconfig(native: Native) -> str:
    """Return the easyconfig by which EasyBuild makes a module of the installation."""
    name, _, version = native.module.rpartition("/")
    bodies = {syntax: modulefile(native, syntax) for syntax in ("lua", "tcl")}
    text = template("install/native/templates/native.eb.j2", ("py", repr), ("inside", inside))
    return text.render(native=native, name=name.rpartition("/")[2], version=version, **bodies)


def modulefile(native: Native, syntax: str) -> str:
    """Return the text in that syntax: lua or tcl."""
    modules, folder = native.site.modules, "install/native/templates"
    values = {
        "native": native,
        "name": native.module.rpartition("/")[0],
        "modules": modules,
        # Without those that depend on the number of nodes.
        "environment": site_environment.always(native.site) | dict(native.site.mpi_environment),
        "no_variable": f"LD_LIBRARY_PATH needs {modules.library_path} of these modules:"
        f" {' '.join(modules.host)} (modules.host, modules.library-path in"
        f" defs/sites/{native.site.name}.yaml).",
    }
    lines = template(f"{folder}/help.txt.j2").render(values).splitlines()
    text = template(f"{folder}/module.{syntax}.j2", ("text", long_text))
    return text.render(values, help=lines)
