"""The environment a site gives its ranks: as a file in the image, and as names and values."""

from collections.abc import Iterator, Mapping

from sifwright.catalog.model import Site

# Beside install.sh of a layer that includes it; the run scripts read it as /etc/sifwright/….
FILE = "site-environment"


def render(site: Site) -> str:
    """Render sections of NAME=VALUE lines, the values verbatim: no quotes, no expansion."""
    lines = [
        f"# Site {site.name}. NAME=VALUE, each set only if unset; sections: which launches.",
        *_section("always", always(site)),
        *_section("one-node", site.environment.one_node),
        *_section("several-nodes", site.environment.several_nodes),
    ]
    return "\n".join(lines) + "\n"


def variables(site: Site, nodes: int) -> dict[str, str]:
    """Return the variables of launches on that many nodes; an earlier section wins."""
    several = site.environment.several_nodes if nodes > 1 else site.environment.one_node
    return {**several, **always(site)}


def always(site: Site) -> dict[str, str]:
    """Return the variables of every launch, with any number of nodes."""
    own = {
        "SIFWRIGHT_SITE": site.name,
        "SIFWRIGHT_VENDOR": site.vendor,
        "SIFWRIGHT_INTERFACE": site.interface,
        "SIFWRIGHT_GPU_VISIBILITY": site.gpu_visibility,
    }
    return {name: value for name, value in own.items() if value} | dict(site.environment.always)


def _section(name: str, values: Mapping[str, str]) -> Iterator[str]:
    yield f"[{name}]"
    yield from (f"{key}={value}" for key, value in values.items())
