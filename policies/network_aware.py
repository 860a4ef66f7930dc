"""Network-aware: the next task goes to the node whose links are used least (Firmament's network-aware policy, OSDI'16
section 3.3: request aggregators with arcs to the machines that have the bandwidth; arcs to less used links cost less).

    place[c, n] = 100,000 x sum over ingress, egress of r x (2 u + r)
    slot[n, k]  = 100,000 x sum over ingress, egress of 2 k m^2, + tasks running on n + k
    soft_limit[c, n] = c's share of the bandwidth that fills n's link to the common level
    soft_limit_cost[c] = 100,000 x 4 r^2

with, as shares of n's link, r: request of one task, u: used, m: mean request of waiting tasks. Used is the larger of
requested and measured.

Costs add up to 100,000 times the sum of the squared utilisation of all links; each task costs what it adds to that sum.
So large requests avoid used links more than small ones do, and the busiest links get the fewest tasks. Slot costs count
the tasks of one solve by their mean request; `soft_limit` keeps a little used link from getting only large tasks. Tasks
that request no bandwidth are spread by number.

A request aggregator is a class here: tasks with the same bandwidth and all else the same. A link is a resource like
others (`bandwidth.ingress`, `bandwidth.egress`), so none is over-committed. A link without a limit costs as much as the
largest link with one, or as a link of 10 Gbit/s. Example: on a link of 10 Gbit/s, half used, a task of 1 Gbit/s costs
100,000 x 0.1 x (2 x 0.5 + 0.1) = 11,000, and on an idle link 1,000. The common level of these two links and four such
tasks is 40 % of the idle link, below the use of the other: the soft limits are 4 and 0.
"""

import numpy as np

from firmament_py.policy import COST_MAX, F64, I64, Costs, View, waiting_cost

_LINKS = ("bandwidth.ingress", "bandwidth.egress")  # bits per second
_SCALE = 100_000
_SOFT_LIMIT_COST = 4
_NOMINAL = 10_000_000_000  # capacity of links without a limit, if no link has one
_UNLIMITED = 10**15  # a link of this capacity or more has no limit
_FULLEST = 2.0  # a larger used share counts as this share
_ANY = 2**40  # tasks


class NetworkAware:
    """Least used links first, by requested or measured bandwidth; links are never over-committed."""

    name = "network-aware"
    counts_links = True
    wants_usage = True

    def costs(self, view: View) -> Costs:
        classes, nodes = len(view.requests), len(view.allocatable)
        place, slot = np.zeros((classes, nodes)), np.zeros((nodes, len(view.slot_offsets)))
        soft_limit, soft_limit_cost = np.full((classes, nodes), _ANY), np.zeros(classes)
        for link in (link for link in _LINKS if link in view.resources):
            column = view.resources.index(link)
            capacity = _capacity(view.allocatable[:, column])
            used = np.clip(_used(view, column) / capacity, 0.0, _FULLEST)
            request = view.requests[:, column, None] / capacity  # (C, N)
            place += request * (2 * used + request)
            mean = view.waiting @ request / max(int(view.waiting.sum()), 1)
            slot += 2 * view.slot_offsets[None, :] * (mean**2)[:, None]
            soft_limit = np.minimum(soft_limit, _soft_limit(view, column, capacity, used))
            soft_limit_cost += (
                _SOFT_LIMIT_COST * view.requests[:, column].astype(np.float64) ** 2 * _mean(capacity**-2.0)
            )
        number = view.running[:, None] + view.slot_offsets[None, :]
        return Costs(
            place=_costs(place),
            slot=np.minimum(_costs(slot) + number, COST_MAX),
            wait=waiting_cost(view),
            soft_limit=soft_limit,
            soft_limit_cost=_costs(soft_limit_cost),
        )


def _capacity(allocatable: I64) -> F64:
    """(N,) bits per second, above 0: capacity of each link; the nominal one for links without a limit."""
    limited = allocatable < _UNLIMITED
    nominal = allocatable[limited].max(initial=0) or _NOMINAL
    return np.where(limited, np.maximum(allocatable, 1), nominal).astype(np.float64)


def _used(view: View, column: int) -> F64:
    """(N,) bits per second of a link that count as used: the larger of requested and measured."""
    requested = (view.allocatable[:, column] - view.free[:, column]).astype(np.float64)
    measured = 8 * (view.usage.rx if view.resources[column] == "bandwidth.ingress" else view.usage.tx)
    return np.fmax(requested, measured)


def _soft_limit(view: View, column: int, capacity: F64, used: F64) -> I64:
    """(C, N) number of tasks of each class, of a proportional mix of all, that fill each link to the common level."""
    total = float(view.waiting @ view.requests[:, column].astype(np.float64))
    lacking = np.maximum(_level(capacity, used, total) - used, 0.0) * capacity
    part = view.waiting[:, None] / max(total, 1.0) * lacking[None, :]
    count = np.where(part < 1.0, np.ceil(part), np.rint(part))
    requests_any = view.requests[:, column] > 0
    return np.where(requests_any[:, None], np.minimum(count, _ANY), _ANY).astype(np.int64)


def _level(capacity: F64, used: F64, amount: float) -> float:
    """The common level, as a share, to which `amount` fills links of `capacity` (N,) with used shares `used` (N,)
    (water-filling)."""
    if not len(used):
        return 0.0
    order = np.lexsort((capacity, used))
    share, width = used[order], np.cumsum(capacity[order])
    below = np.cumsum(share * capacity[order])
    first = int(np.searchsorted(share * width - below, amount, side="right"))  # number of links below the level
    return float((amount + below[first - 1]) / width[first - 1])


def _mean(values: F64) -> float:
    """The mean, bitwise independent of the order; 0 if there are no values."""
    return float(np.sort(values).mean()) if len(values) else 0.0


def _costs(amount: F64) -> I64:
    return np.rint(np.minimum(_SCALE * amount, COST_MAX)).astype(np.int64)
