"""The modulefile of a native installation, for Lmod and for Environment Modules."""

from dataclasses import dataclass

from sifwright.catalog import site_environment
from sifwright.catalog.model import Site
from sifwright.render.templating import long_text, template


@dataclass(frozen=True, kw_only=True, slots=True)
class Native:
    """Settings of a native module. `packages` is a folder below `prefix`."""

    module: str
    prefix: str
    packages: str
    site: Site


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
