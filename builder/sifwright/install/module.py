"""A module as data; every modulefile and every footer of an easyconfig is rendered from it."""

from collections.abc import Iterator
from dataclasses import dataclass

from sifwright.catalog.model import Site
from sifwright.install import help_text
from sifwright.install.installed_image import NAME, InstalledImage
from sifwright.render import shell

# In the installation: the user's packages, and what leads to them as they are at the moment.
PACKAGES, CURRENT = "user-software", "user-software.current"
# In the container.
RUNSCRIPTS, PRIVATE = "/runscripts", "/.user-software"


@dataclass(frozen=True, kw_only=True, slots=True)
class Bind:
    """A bind that is used if its source exists; `$NAME` in both paths is the user's variable."""

    source: str
    target: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Module:
    """`sif` is a file of the installation, and of the folder `central` if that is not empty.

    `gpu` is the end of the engine's variable for the vendor's GPUs. `environment` are variables of
    the container.
    """

    name: str
    version: str
    sif: str
    central: str
    binds: tuple[Bind, ...]
    gpu: str
    environment: tuple[tuple[str, str], ...]
    site_environment: bool
    description: str
    whatis: tuple[str, ...]
    help: tuple[str, ...]

    @property
    def variable(self) -> str:
        """Return the end of the names of the module's own variables."""
        return self.name.upper()


def describe(site: Site, facts: InstalledImage, central: str) -> Module:
    """Return the module of an image at a site; `central` has the central images, or is ''."""
    return Module(
        name=NAME,
        version=facts.version,
        sif=f"{facts.stem}.sif",
        central=central,
        binds=tuple(_binds(site)),
        gpu=site.gpu_variable,
        environment=(
            # Else pip installs into the home directory where it can write nowhere else.
            ("PIP_USER", "0"),
            *([("WITH_CONDA", facts.with_conda)] if facts.with_conda else ()),
        ),
        site_environment=facts.needs_site,
        description=help_text.description(site, facts),
        whatis=tuple(help_text.whatis(site, facts)),
        help=tuple(help_text.help_lines(site, facts, central)),
    )


def _binds(site: Site) -> Iterator[Bind]:
    for entry in site.binds:
        source, _, target = entry.partition(":")
        # The folder that a module is loaded in is not a job's; the engine binds that by itself.
        if "PWD" not in shell.variables(entry):
            yield Bind(source=source, target=target or source)
    if site.scheduler == "pbs":  # the list of the job's nodes, below a folder of the node's
        yield Bind(source="$PBS_NODEFILE", target="$PBS_NODEFILE")
