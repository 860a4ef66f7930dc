"""Network-aware: the next task goes where links are used least (Firmament's network-aware policy, OSDI'16 section 3.3:
request aggregators, with arcs to the machines whose links have the bandwidth; the less a link is used, the less they
cost).

    place[c, n] = 100,000 x sum over ingress, egress of r x (2 u + r)
    slot[n, k]  = 100,000 x sum over ingress, egress of 2 k m^2, + tasks running on n + k
    soft_limit[c, n] = c's share of what n's link lacks to the level that all links come to
    soft_limit_cost[c] = 100,000 x 4 r^2

with, as shares of n's link, r: request of one task, u: what is used, m: mean request of waiting tasks. What is used is
the larger of requested and measured.

Costs add up to 100,000 times the sum of the squares of all links' use, each task at what it adds to it: large requests
avoid used links more than small ones do, and the busiest links are relieved first. Between tasks of one solve, slots
count them by the mean request; `soft_limit` prevents that a link that is little used gets only large ones. Tasks that
request no bandwidth are spread by number.

A request aggregator is a class here: tasks with the same bandwidth and all else the same. A link is a resource like
others (`bandwidth.ingress`, `bandwidth.egress`), so none is over-committed. One without a limit costs as much as the
largest that has one, or as one of 10 Gbit/s. Example: on a link of 10 Gbit/s, half used, a task of 1 Gbit/s costs
100,000 x 0.1 x (2 x 0.5 + 0.1) = 11,000, and on an idle one 1,000. Poured over these two links, four such tasks fill
40 % of the idle one and leave the other alone: the soft limits are 4 and 0.
"""

import numpy as np

from firmament_py.policy import COST_MAX, F64, I64, Costs, View, waiting_cost

_LINKS = ("bandwidth.ingress", "bandwidth.egress")  # bits a second
_SCALE = 100_000
_SOFT_LIMIT_COST = 4
_NOMINAL = 10_000_000_000  # of a link without a limit, if no other has one
_UNLIMITED = 10**15  # no link that has a limit has more
_FULLEST = 2.0  # use beyond this share counts as this share
_ANY = 2**40  # tasks


class NetworkAware:
    """Least used links first, by requested or measured bandwidth; no link is over-committed."""

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
    """(N,) bits a second, above 0: what links have, or count as if they had no limit."""
    limited = allocatable < _UNLIMITED
    nominal = allocatable[limited].max(initial=0) or _NOMINAL
    return np.where(limited, np.maximum(allocatable, 1), nominal).astype(np.float64)


def _used(view: View, column: int) -> F64:
    """(N,) bits a second of a link that count as used: the larger of requested and measured."""
    requested = (view.allocatable[:, column] - view.free[:, column]).astype(np.float64)
    measured = 8 * (view.usage.rx if view.resources[column] == "bandwidth.ingress" else view.usage.tx)
    return np.fmax(requested, measured)


def _soft_limit(view: View, column: int, capacity: F64, used: F64) -> I64:
    """(C, N): how many tasks of each class fill each link, with their share of the others, up to the common level."""
    total = float(view.waiting @ view.requests[:, column].astype(np.float64))
    lacking = np.maximum(_level(capacity, used, total) - used, 0.0) * capacity
    part = view.waiting[:, None] / max(total, 1.0) * lacking[None, :]
    count = np.where(part < 1.0, np.ceil(part), np.rint(part))
    requests_any = view.requests[:, column] > 0
    return np.where(requests_any[:, None], np.minimum(count, _ANY), _ANY).astype(np.int64)


def _level(capacity: F64, used: F64, amount: float) -> float:
    """The share up to which links of `capacity` (N,), of which shares `used` (N,) are used, are filled if `amount` is
    poured over them like water."""
    if not len(used):
        return 0.0
    order = np.lexsort((capacity, used))
    share, width = used[order], np.cumsum(capacity[order])
    below = np.cumsum(share * capacity[order])
    first = int(np.searchsorted(share * width - below, amount, side="right"))  # how many links are below the level
    return float((amount + below[first - 1]) / width[first - 1])


def _mean(values: F64) -> float:
    """The mean, to the last bit independent of the order; 0 if there are no values."""
    return float(np.sort(values).mean()) if len(values) else 0.0


def _costs(amount: F64) -> I64:
    return np.rint(np.minimum(_SCALE * amount, COST_MAX)).astype(np.int64)
