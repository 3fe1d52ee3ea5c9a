"""The modulefile of a native installation, for Lmod and for Environment Modules."""

from collections.abc import Mapping
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

    @property
    def name(self) -> str:
        """Return the name without the version."""
        return self.module.rpartition("/")[0]

    @property
    def loads(self) -> tuple[str, ...]:
        """Return the modules that the site has for jobs on the host."""
        return self.site.modules.host

    @property
    def library_path(self) -> str:
        """Return the path that goes first in LD_LIBRARY_PATH, in which `$NAME` is a variable."""
        return self.site.modules.library_path

    @property
    def environment(self) -> Mapping[str, str]:
        """Return the variables of native ranks, but those that depend on the number of nodes."""
        return {**site_environment.always(self.site), **self.site.mpi_environment}

    @property
    def no_variable(self) -> str:
        """Return the message for a variable of `library_path` that is not there."""
        return (
            f"LD_LIBRARY_PATH needs {self.library_path} of these modules: {' '.join(self.loads)}"
            f" (modules.host, modules.library-path in defs/sites/{self.site.name}.yaml)."
        )


def modulefile(native: Native, syntax: str) -> str:
    """Return the text in that syntax: lua or tcl."""
    folder = "install/native/templates"
    lines = template(f"{folder}/help.txt.j2").render(native=native).splitlines()
    text = template(f"{folder}/module.{syntax}.j2", ("text", long_text))
    return text.render(native=native, help=lines)
