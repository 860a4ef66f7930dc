"""Which step of a round has placed a task."""

from collections import Counter
from enum import IntEnum

from firmament_py.model.arrays import U8


class PlacedBy(IntEnum):
    """Numbers are those of the contract (`PlacedBy` in protos/flow.proto); docs/architecture.md has the files."""

    UNKNOWN = 0
    """No round of this engine: the task ran when it was first seen."""
    FLOW = 1
    """A flow of least cost."""
    CHEAPEST_SLOTS = 2
    """Slots of least cost for a few tasks of one class: what a flow would choose, without a network."""
    GREEDY = 3
    """Class by class on the cheapest nodes, what flows have left or where the solver found none."""
    REQUIRED_NODE = 4
    """Before any flow, on the only node that it may have."""
    NOMINATION = 5
    """On the node that was kept for it: its victims have left, or the task whose successor it is has."""
    GANG_SEARCH = 6
    """The exact search for members of several classes that flows could not place together."""
    PACKING = 7
    """Packed anew with others of its round, of which more fit so."""
    PATTERNS = 8
    """Likewise on many equal nodes, by patterns of what fits on one."""
    LISTS = 9
    """One at a time, from lists of the tasks of a small round with constraints between tasks."""
    PREEMPTION = 10
    """At once by a decision on evictions and moves, where its share needed none of them to leave first."""
    SEARCH = 11
    """A search beside the rounds, which decided on it together with evictions and moves."""

    @property
    def label(self) -> str:
        """As in statistics, metrics and `poseidon explain`."""
        return self.name.lower().replace("_", " ")


def count_steps(steps: U8) -> dict[str, int]:
    """How often each PlacedBy occurs among `steps` (K,), by label."""
    return {PlacedBy(step).label: count for step, count in sorted(Counter(steps.tolist()).items())}
