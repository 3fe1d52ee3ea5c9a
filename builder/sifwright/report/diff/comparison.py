"""Two sides and all that differs between them, as data."""

from dataclasses import dataclass
from typing import Any

from sifwright.images.contents.layer_stack import LayerStack
from sifwright.report.diff import trees
from sifwright.report.diff.packages import PackageChange
from sifwright.report.diff.plans import PlanChanges
from sifwright.report.diff.sides import Side
from sifwright.report.diff.trees import TreeChanges

# Paths of each state that the document names; all of them are counted.
_NAMED = 200


@dataclass(frozen=True, kw_only=True, slots=True)
class Comparison:
    """Two sides and what differs; None is what could not be compared, since a side has none.

    Sizes and layouts are no difference by themselves: the same tree can be packed in many ways.
    """

    sides: tuple[Side, Side]
    plan: PlanChanges | None = None
    packages: list[PackageChange] | None = None
    files: TreeChanges | None = None
    stacks: tuple[LayerStack, LayerStack] | None = None
    notes: tuple[str, ...] = ()

    @property
    def differs(self) -> bool:
        files = self.files.differences if self.files else ()
        return bool(self.plan or self.packages or files)

    def document(self) -> dict[str, Any]:
        return {
            "equal": not self.differs,
            "old": self.sides[0].document(),
            "new": self.sides[1].document(),
            "notes": list(self.notes),
            "plan": self.plan.document() if self.plan is not None else None,
            "packages": self.packages and [change.document() for change in self.packages],
            "files": _files(self.files) if self.files else None,
            "sizes": [_sizes(stack) for stack in self.stacks or ()],
        }


def _sizes(stack: LayerStack) -> dict[str, Any]:
    return {
        "packed": sum(stack.sizes),
        "unpacked": stack.unpacked,
        "layers": [list(layer) for layer in zip(stack.names, stack.sizes, strict=True)],
    }


def _files(changes: TreeChanges) -> dict[str, Any]:
    states = {state: changes.of(state) for state in trees.STATES}
    return {
        **{
            state: {
                "count": len(some),
                "bytes": sum(difference.bytes for difference in some),
                "largest": [difference.document() for difference in some[:_NAMED]],
            }
            for state, some in states.items()
        },
        "layers": changes.layers(),
    }
