"""Whare-map: each program on the machines that suit it (Whare-Map, ISCA'13, as in Firmament's cost model), by both
platform and neighbours.

    place[c, n] = 1000 x (slowdown - 1)
    slot[n, k]  = 1000 x w[n] x k x (mean P among waiting tasks) / 10,000 + tasks running on n + k
    slowdown    = best speed of c / its speed on n's platform
                  x (1 + w[n] x sum over kinds x of (tasks of kind x on n) x P[c, x] / 10,000)

slowdown is the duration of a task relative to its duration alone on the best machine: Whare-Map's score, time per
instruction relative to the best. One solve gives the machines of a platform to the tasks that gain most from it.

If the usage of tasks of a program (trait `program`) is measured, it gives the program's speed: the same work takes more
cpu time on a slower machine, as with Whare-Map's time per instruction. The speed on a platform is 1 / the mean cpu use
of at least 3 tasks there, in the unit of `speed` if both know a common platform; measured speeds override stated ones.
(This holds for tasks whose work arrives from outside, such as services; tasks that use all available cpu use the same
amount everywhere and count as equally fast.)

A platform is the value of a node label (option platform-label). A class's speeds come from the trait `speed`,
"c5=1.6,m5=1", in any unit, as only ratios count; an unlisted platform counts as fast as the slowest listed one; a class
without the trait is equally fast everywhere. P is the table of colocation.py, in hundredths of a per cent of slowdown
per neighbour; w[n] = mean cpu of a node / cpu of n. Example: with "c5=1.6,m5=1" an idle m5 costs 1000 x (1.6 - 1) =
600; one devil slows a rabbit by another 10 %: 1000 x (1.6 x 1.1 - 1) = 760.
"""

import numpy as np

from firmament_py.policy import COST_MAX, F64, Costs, View, waiting_cost
from policies import colocation
from policies.colocation import KINDS

_SCALE = 1000
_PER_PENALTY = 1 / 10_000
_MIN_TASKS = 3
_MIN_CPU = 1.0  # millicores; a smaller mean does not indicate speed


class WhareMap:
    """Each program on the platform and beside the neighbours that slow it least."""

    name = "whare-map"
    wants_usage = True

    def __init__(
        self, platform_label: str = "node.kubernetes.io/instance-type", penalties: str = "", default: str = "sheep"
    ) -> None:
        """platform_label: the node label with the type of a machine; penalties, default: see policy interference."""
        if not platform_label:
            raise ValueError("platform-label is empty; name a node label")
        self._label = platform_label
        self._slowing = colocation.penalties(penalties) * _PER_PENALTY
        self._default = colocation.kind_number(default, "default")

    def costs(self, view: View) -> Costs:
        kinds = colocation.kinds_of_classes(view, self._default)
        size = colocation.relative_size(view)
        beside = 1.0 + size * (self._slowing[kinds] @ colocation.neighbours(view, self._default).T)
        place = _SCALE * (self._slowdown(view) * beside - 1.0)
        k = view.slot_offsets.astype(np.float64)
        amount = np.bincount(kinds, view.waiting, minlength=len(KINDS)) / max(int(view.waiting.sum()), 1)
        among = float(amount @ self._slowing @ amount)
        slot = _SCALE * among * size[:, None] * k + view.running[:, None] + k
        return Costs(
            place=np.rint(np.clip(place, 0, COST_MAX)).astype(np.int64),
            slot=np.rint(np.minimum(slot, COST_MAX)).astype(np.int64),
            wait=waiting_cost(view),
        )

    def _slowdown(self, view: View) -> F64:
        """(C, N), 1 or more: slowdown of each class on each node's platform, relative to the best platform."""
        platforms, platform = view.domains(self._label)
        measured = self._measured(view)
        slowdown = np.ones((len(view.requests), len(platform)))
        for c, (text, program) in enumerate(zip(view.trait("speed"), view.trait("program"), strict=True)):
            known = _merged(_speeds(text), measured.get(program, {}))
            if known and len(platform):
                slowest = min(known.values())
                speed = np.array([*(known.get(name, slowest) for name in platforms), slowest])[platform]
                slowdown[c] = speed.max() / speed
        return slowdown

    def _measured(self, view: View) -> dict[str, dict[str, float]]:
        """Program -> platform -> speed, for those with enough measured tasks."""
        programs, platforms = view.census("program")[0], view.domains(self._label)[0]
        cpu, tasks = view.cpu_of("program", self._label)
        found: dict[str, dict[str, float]] = {}
        for p, m in np.argwhere((tasks >= _MIN_TASKS) & (cpu >= _MIN_CPU)).tolist():
            found.setdefault(programs[p], {})[platforms[m]] = 1.0 / float(cpu[p, m])
        return found


def _merged(stated: dict[str, float], measured: dict[str, float]) -> dict[str, float]:
    """Speeds by platform, in the unit of `stated`; without a common platform, the measured ones."""
    if not measured:
        return stated
    common = stated.keys() & measured.keys()
    if not common:
        return measured
    scale = sum(stated[name] for name in common) / sum(measured[name] for name in common)
    return stated | {name: scale * speed for name, speed in measured.items()}


def _speeds(text: str) -> dict[str, float]:
    """Platform -> speed above 0; invalid entries are ignored."""
    found = {}
    for part in text.split(","):
        platform, equals, number = (piece.strip() for piece in part.partition("="))
        try:
            speed = float(number)
        except ValueError:
            continue
        if equals and platform and 0 < speed < float("inf"):
            found[platform] = speed
    return found
