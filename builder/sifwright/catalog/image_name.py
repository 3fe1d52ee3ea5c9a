"""Names of images: the kind of store (registry, archive, engine) and the name there."""

REGISTRY = "docker"
# Images of this machine's Docker Engine.
DAEMON = "docker-daemon"
# Images in files and folders, and in the engine.
LOCAL = ("oci-archive", "docker-archive", "oci", DAEMON)


def split(text: str) -> tuple[str, str]:
    """Return kind and name: `oci-archive:x.tar` has kind oci-archive, a bare name docker."""
    if text.startswith(f"{REGISTRY}://"):
        return REGISTRY, text.removeprefix(f"{REGISTRY}://")
    kind, colon, name = text.partition(":")
    return (kind, name) if colon and kind in LOCAL else (REGISTRY, text)


def of_engine(image: str, site: str, values: str = "") -> str:
    """Return the name that an engine has for an image of ours: sifwright/IMAGE:SITE-VALUE.

    `values` is `@VALUE` for each option of --matrix. A tag has neither + nor @.
    """
    return f"sifwright/{image}:{site}{values.replace('@', '-').replace('+', '_')}"
