"""All that is installed in an image, and which system it is, from the files that say so."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from sifwright.images.contents import packages, systems
from sifwright.images.contents.image_tree import ImageTree
from sifwright.images.contents.layer_stack import LayeredNode
from sifwright.images.contents.listing import ListedPath, bytes_of
from sifwright.images.contents.packages import Kind, Package

_DOCUMENTS = "usr/share/doc/"
_SOURCES = (
    *("etc/apt/", "etc/yum.repos.d/", "etc/zypp/repos.d/"),
    *("etc/dnf/vars/", "etc/yum/vars/"),
)
_PLAN = "opt/sifwright/plan.json"
_RECORD = ".dist-info/RECORD"


@dataclass(frozen=True, kw_only=True, slots=True)
class Inventory:
    """`system` are the values of os-release, `sources` the files that name archives of packages.

    `plan` is the document in an image of ours. `records` has the sha256 of each Python package's
    RECORD, by `Package.folder`. Other files of the same version have another RECORD.
    """

    system: Mapping[str, str]
    packages: tuple[Package, ...]
    sources: Mapping[str, str]
    plan: Mapping[str, Any]
    records: Mapping[str, str] = field(default_factory=dict)

    def of(self, kind: Kind) -> list[Package]:
        return [package for package in self.packages if package.kind == kind]


def inventory(tree: ImageTree) -> Inventory:
    """Return what is installed in an image of which these files were read."""
    records = [path for path in tree.files if path.endswith(_RECORD)]
    texts = {
        bytes_of(path): data for path, data in tree.files.items() if not path.endswith(_RECORD)
    }
    return Inventory(
        system=systems.release(tree),
        packages=tuple(packages.find(texts, dict(_shared_documents(tree)))),
        sources={path: tree.text(path) or "" for path in tree.files if path.startswith(_SOURCES)},
        plan=tree.json(_PLAN),
        records={f"/{path.removesuffix('/RECORD')}": tree.text(path) or "" for path in records},
    )


def _shared_documents(tree: ImageTree) -> Iterator[tuple[bytes, LayeredNode]]:
    for path, target in tree.links.items():
        if path.startswith(_DOCUMENTS):
            node = ListedPath(path=bytes_of(path), kind="symlink", target=bytes_of(target))
            yield node.path, LayeredNode(node=node, layer=0)
