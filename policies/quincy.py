"""Quincy: tasks go to nodes near their data (Isard et al., SOSP'09, section 4; Firmament, OSDI'16, section 3.3).

For a task that reads B bytes, of which r are in a node's rack and b <= r on the node itself, in units of `unit-mib`:

    cost of the node = (B - r) + rack-weight x (r - b)      bytes over the core, and bytes inside the rack

A node has a preference arc if b is at least `threshold` of B, a rack if r is; the rack's arc costs as much as a node of
the rack that holds none of the data. All other nodes are reached through the class, at B: the worst case. So a cost can
be too high by less than `threshold` of B, is never too low, and is exact for nodes with preference arcs.

    slot[n, k] = spread-mib x used share of n's scarcest resource with k more tasks of the mean request

fills nodes evenly that are equally far from the data, and all nodes for tasks without data.

Example, unit 1 MiB, rack-weight 0.5: a task reads 1000 MiB, of which node a has 600 and node b, in a's rack, another
200. On a: 200 + 0.5 x 200 = 300; on b: 200 + 0.5 x 600 = 500; elsewhere in the rack 200 + 0.5 x 800 = 600; in any
other rack 1000. If the worst case of a task exceeds COST_MAX, all its costs are scaled down to COST_MAX.

With `wait-mib` above 0 a task waits for a better node: in its first second if its node would cost more than that, after
a seconds if it would cost more than (a + 1) x wait-mib; so it is the bandwidth, in MiB a second, at which waiting is as
costly as reading (Quincy's cost of the unscheduled vertex, section 4.2). A task without data never waits.

A running task that may be moved is, if that saves more than `move-mib`, and more the more work it loses.
"""

import numpy as np

from firmament_py.policy import (
    COST_MAX,
    DELAY_MAX,
    F64,
    I64,
    Costs,
    DataCosts,
    Inputs,
    Victims,
    View,
    moving_cost,
    waiting_cost,
)

_MIB = 2**20
RACK_LABELS = ("topology.kubernetes.io/rack", "topology.kubernetes.io/zone")


class Quincy:
    """Tasks near their input data: fewest bytes moved; bytes inside a rack cost less than bytes over the core."""

    name = "quincy"

    def __init__(
        self,
        threshold: float = 0.02,
        rack_weight: float = 0.5,
        rack_label: str = "",
        unit_mib: int = 1,
        spread_mib: int = 16,
        move_mib: int = 4096,
        wait_mib: float = 0,
    ) -> None:
        if not 0 <= threshold <= 1:
            raise ValueError(f"option threshold is {threshold}; give a share of a task's input, 0 .. 1")
        if not 0 <= rack_weight <= 1:
            raise ValueError(f"option rack-weight is {rack_weight}; give the cost of a byte inside a rack, 0 .. 1")
        if unit_mib < 1:
            raise ValueError(f"option unit-mib is {unit_mib}; give a size of 1 or more")
        if not 0 <= spread_mib <= COST_MAX * unit_mib:
            raise ValueError(f"option spread-mib is {spread_mib}; give a size of 0 .. {COST_MAX * unit_mib}")
        if not 1 <= move_mib <= COST_MAX * unit_mib:
            raise ValueError(f"option move-mib is {move_mib}; give a size of 1 .. {COST_MAX * unit_mib}")
        if not 0 <= wait_mib <= COST_MAX * unit_mib:
            raise ValueError(f"option wait-mib is {wait_mib}; give a size of 0 .. {COST_MAX * unit_mib}")
        self._threshold = threshold
        self._rack_weight = rack_weight
        self._unit = unit_mib * _MIB
        self._spread = spread_mib / unit_mib
        self._move = max(round(move_mib / unit_mib), 1)
        self._wait = wait_mib * _MIB
        self.rack_labels = (rack_label,) if rack_label else RACK_LABELS

    def costs(self, view: View) -> Costs:
        return Costs(
            place=np.zeros((1, 1), np.int64),
            slot=self._slot(view),
            wait=waiting_cost(view),
            data=None if view.inputs is None else self._data(view.inputs),
            delay=self._delay(view, view.inputs) if self._wait and view.inputs is not None else None,
        )

    def place_kinds(self, victims: Victims) -> I64:
        return np.zeros(len(victims.requests), np.int64)  # data alone makes a difference

    def moving_costs(self, victims: Victims) -> I64:
        return moving_cost(victims, self._move)

    def _data(self, inputs: Inputs) -> DataCosts:
        total = inputs.total.astype(np.float64)
        scale = self._scale(total)
        near, rack = (
            self._named(inputs.near_set, inputs.near_bytes, total),
            self._named(inputs.rack_set, inputs.rack_bytes, total),
        )
        in_rack = _looked_up(inputs, inputs.near_set, inputs.rack[inputs.near_node])
        return DataCosts(
            of_task=inputs.of_task,
            anywhere=_rounded(total * scale),
            near_set=inputs.near_set[near],
            near_node=inputs.near_node[near],
            near_cost=self._cost(inputs.near_set, total, in_rack, inputs.near_bytes, scale)[near],
            rack=inputs.rack,
            rack_set=inputs.rack_set[rack],
            rack_id=inputs.rack_id[rack],
            rack_cost=self._cost(inputs.rack_set, total, inputs.rack_bytes, 0, scale)[rack],
        )

    def _delay(self, view: View, inputs: Inputs) -> I64:
        """(T,) the cost of as many bytes as a task of that age may wait to save, on the scale of its set."""
        scale = np.append(self._scale(inputs.total.astype(np.float64)), np.inf)[inputs.of_task]
        seconds = 1 + view.task_age_us // 1_000_000
        return _rounded(np.minimum(self._wait * scale * seconds, DELAY_MAX))

    def _scale(self, total: F64) -> F64:
        """(S,) the cost of a byte of each set."""
        return np.minimum(1 / self._unit, COST_MAX / np.maximum(total, 1.0))

    def _named(self, of_set: I64, stored: I64, total: F64) -> I64:
        """Positions of the pairs of an input set and a node or rack that holds enough of it for a preference arc."""
        return np.flatnonzero(stored >= self._threshold * total[of_set])

    def _cost(self, of_set: I64, total: F64, in_rack: I64, on_node: I64 | int, scale: F64) -> I64:
        moved = (total[of_set] - in_rack) + self._rack_weight * (in_rack - on_node)
        return _rounded(moved * scale[of_set])

    def _slot(self, view: View) -> I64:
        if not self._spread:
            return np.zeros((1, 1), np.int64)
        mean = view.waiting @ view.requests / max(int(view.waiting.sum()), 1)  # (R,)
        offered = np.maximum(view.allocatable, 1)
        share = np.zeros((len(offered), len(view.slot_offsets)))
        for r in np.flatnonzero(mean).tolist():
            used = view.load[:, r, None] + view.slot_offsets[None, :] * mean[r]
            np.maximum(share, used / offered[:, r, None], out=share)
        return _rounded(self._spread * np.clip(share, 0.0, 1.0))


def _looked_up(inputs: Inputs, of_set: I64, rack: I64) -> I64:
    """(K,) bytes of set of_set[i] in rack[i]; for nodes without a rack, the bytes on the node itself."""
    racks = int(inputs.rack.max(initial=-1)) + 1
    known = inputs.rack_set * racks + inputs.rack_id
    found = np.searchsorted(known, of_set * racks + rack)
    inside = rack >= 0
    result = inputs.near_bytes.copy()
    result[inside] = inputs.rack_bytes[found[inside]]
    return result


def _rounded(cost: F64) -> I64:
    return np.rint(cost).astype(np.int64)
