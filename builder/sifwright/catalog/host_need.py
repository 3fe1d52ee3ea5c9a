"""Things that a host must have for a layer, in place of packages that an image installs."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal


@dataclass(frozen=True, kw_only=True, slots=True)
class HostNeed:
    """A thing that a host must have in place of a Debian package, which images install.

    `module` is a pattern of the names of modules that may have it. `without` says what happens
    without: if it is empty, nothing can be installed. `when`: an option that must be on.
    """

    kind: Literal["header", "library", "shared-library", "program"]
    name: str
    package: str
    module: str
    without: str = ""
    suits: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    when: str = ""
