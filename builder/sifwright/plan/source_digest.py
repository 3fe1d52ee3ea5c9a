"""The digest of a source, as a build found it."""

from dataclasses import dataclass

# For a source's name, which has no blank: an archive of Debian or Ubuntu, which moves on.
ARCHIVE = "apt archive"


@dataclass(frozen=True, kw_only=True, slots=True)
class SourceDigest:
    """A source of a build: a commit, the sha256 of an archive, or the digest of a base image.

    For an archive of packages (`ARCHIVE`), `ref` is the suite and `digest` the time of its release.
    """

    layer: str
    source: str
    ref: str
    digest: str

    @property
    def key(self) -> str:
        return f"{self.layer} {self.source} {self.ref}"
