"""PMI, by which a launcher tells the ranks of an MPI of each other; without, each is alone."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

Table = Mapping[str, Mapping[str, tuple[str, ...]]]

# Usual names of the MPIs in the table 'mpi' of versions.yaml.
NAMES = {"mpich": "MPICH", "openmpi": "Open MPI"}
UNKNOWN = "unknown"
# A launcher's PMI, unless the site's file names more. Job scripts take mpirun for Open MPI's. Flux
# speaks PMI-1 (flux-shell(1): its plugin 'simple').
USUAL = {"mpirun": ("pmix",), "flux": ("pmi1",)}
# Slurm's plugins that speak more protocols than their names tell. The plugin pmi2 speaks PMI-1, too
# (tried on 22.05: MPICH 5.0.1 starts with it, by PMI-1).
_SPEAKS = {"pmi2": ("pmi1", "pmi2")}


@dataclass(frozen=True, kw_only=True, slots=True)
class ImageMpi:
    """The MPI of an image, the PMIs that it speaks, and where that is known from.

    `name` is that of a row of the table 'mpi', empty for an image without MPI, or `UNKNOWN`.
    `of_base`: the MPI came with a base image, and programs there may not use the MPI.
    """

    name: str
    pmi: tuple[str, ...] = ()
    version: str = ""
    source: str = ""
    of_base: bool = False

    def __str__(self) -> str:
        title = f"{NAMES.get(self.name, self.name)} {self.version}".rstrip()
        return f"{title} ({self.source})" if self.source else title


def mpi_of_facts(facts: Mapping[str, str], source: str) -> ImageMpi:
    """Return the MPI that the facts of a plan name; a layer that installs it gives a version."""
    name = facts.get("mpi", "")
    version = facts.get(name, "")
    return ImageMpi(
        name=name,
        pmi=tuple(facts.get("pmi", "").split()),
        version=version,
        source=source,
        of_base=not version,
    )


def family(texts: tuple[str, ...]) -> str:
    """Return the row name of the inspected MPI ('Open MPI 5.0.8'); unknown if there are several."""
    names = {key for key, title in NAMES.items() for text in texts if text.startswith(title)}
    return "" if not texts else names.pop() if len(names) == 1 else UNKNOWN


def inspected_mpi(texts: tuple[str, ...], table: Table, source: str) -> ImageMpi:
    """Return the inspected MPI with its PMIs from the table 'mpi' of versions.yaml."""
    name = family(texts)
    version = texts[0].removeprefix(NAMES.get(name, "")).strip() if len(texts) == 1 else ""
    pmi = " ".join(table.get(name, {}).get("pmi", ())).split()
    return ImageMpi(name=name, pmi=tuple(pmi), version=version, source=source, of_base=True)


def common(names: tuple[str, ...], mpi: ImageMpi) -> Iterator[str]:
    """Yield the PMI names of a launcher that the MPI understands."""
    for name in names:
        plain = name.partition("_v")[0]  # pmix_v4: the plugin for one version of PMIx
        if set(_SPEAKS.get(plain, (plain,))) & set(mpi.pmi):
            yield name
