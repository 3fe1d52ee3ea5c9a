"""The image that a plan starts from. The digest of its tag is in recorded_inputs.py."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from sifwright.catalog import image_name, mirrors
from sifwright.catalog.mirrors import MirrorRule
from sifwright.catalog.model import Site
from sifwright.errors import Problem, SifwrightError
from sifwright.host.network import registry
from sifwright.host.network.registry import Reference
from sifwright.images.sif import sif_file
from sifwright.plan.model import Plan, Step
from sifwright.system import digest_cache

# Bootstrap of an image that a file of this machine identifies.
_FILES = {"localimage", *image_name.LOCAL} - {image_name.DAEMON}


@dataclass(frozen=True, kw_only=True, slots=True)
class BaseImage:
    """The image that `step`, the first of a plan, starts from.

    An image of a registry has a `reference`, where the mirrors file leads to.
    """

    step: Step
    reference: Reference | None = None

    @property
    def kind(self) -> str:
        return self.step.header.get("Bootstrap", "")

    @property
    def name(self) -> str:
        return self.step.header.get("From", "")

    @property
    def file(self) -> Path | None:
        """Return the file of this machine that identifies the image, if it exists."""
        # It names all else in the folder by digests, which are compared while that is read.
        path = Path(self.name, "index.json") if self.kind == "oci" else Path(self.name)
        return path if self.kind in _FILES and self.name and path.is_file() else None

    @property
    def layer(self) -> str:
        return self.step.layer.name

    @property
    def is_redirected(self) -> bool:
        plain = self.reference and replace(self.reference, http=False)
        return plain is not None and plain != registry.parse(self.name)

    @property
    def environment(self) -> Mapping[str, str]:
        """Return Apptainer's variables: the engine, or no TLS (its option --no-https)."""
        if self.kind == image_name.DAEMON:
            return {"DOCKER_HOST": engine_address()}
        names = ("APPTAINER_NOHTTPS", "SINGULARITY_NOHTTPS")
        return dict.fromkeys(names, "true") if self.reference and self.reference.http else {}

    def local_digest(self, *, from_disk: bool = False) -> str:
        """Return the digest of an image of this machine; empty for another kind.

        `from_disk`: of its bytes as they are now, without a remembered digest.
        """
        if self.kind == image_name.DAEMON:
            return engine_image_id(self.name)
        if (path := self.file) is None:
            return ""
        return digest_cache.read(path) if from_disk else digest_cache.sha256(path)

    def overlay_problems(self) -> Iterator[Problem]:
        """Yield a problem if it has overlays, which Apptainer 1.4.5 leaves out and ends with 0.

        Apptainer itself refuses a file that is no SIF.
        """
        if (path := self.file) is None:
            return
        try:
            image = sif_file.read(path)
        except sif_file.SifError:
            return
        others = [part for part in image.descriptors if part.is_overlay and not part.is_squashfs]
        if count := len(image.partitions[1:]) + len(others):
            yield Problem(
                where=str(path),
                what=f"layer '{self.layer}' starts from it, and would take the first of its"
                f" {count + 1} partitions only",
                fix=f"sifwright flatten {path} NEW.sif, and start from NEW.sif"
                " (or build it with --layout flat).",
            )


def base_image_of(plan: Plan) -> BaseImage:
    """Return the image that a plan starts from.

    The mirrors file says where a registry's is found, and else the site, which may have one for
    Docker Hub.
    """
    base = BaseImage(step=plan.steps[0])
    if base.kind != image_name.REGISTRY or not base.name:
        return base
    return replace(base, reference=redirected_reference(plan.site, base.name))


def redirected_reference(site: Site, name: str) -> Reference:
    """Return the address of an image, redirected by the mirrors file, else by the site."""
    plain = str(registry.parse(name))
    address = mirrors.redirect(mirrors.load().of("oci"), plain)
    if address == plain and site.registry_mirror:
        hub = MirrorRule(kind="oci", source=registry.DOCKER_HUB, target=site.registry_mirror)
        address = mirrors.redirect((hub,), plain)
    return registry.parse(address)


def engine_address() -> str:
    """Return the address of the engine; empty if there is none."""
    from sifwright.host.engines.docker import find_engine  # noqa: PLC0415  # most images start from none

    return next(iter(find_engine.addresses()), "")


def engine_image_id(name: str) -> str:
    """Return the id (sha256:…) of an image; empty if the engine has none, or does not answer.

    Later code that reads the image asks again, and says why there is none.
    """
    from sifwright.images.sources import docker_engine  # noqa: PLC0415  # as above

    try:
        return docker_engine.identity(name)
    except SifwrightError:
        return ""
