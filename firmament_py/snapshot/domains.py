"""Topology domains: the groups of nodes that have the same value of a label, and conditions on the tasks in them."""

from dataclasses import dataclass

import numpy as np

from firmament_py.model.arrays import I64, Bools
from firmament_py.snapshot.domain_limits import UNLIMITED, has_one_node_each
from firmament_py.state.node_index import NodeIndex


class Domains:
    """The domains of `nodes` (N,), rows of the node table, by label key; each key is looked up once."""

    def __init__(self, node_index: NodeIndex, nodes: I64) -> None:
        self.nodes = nodes
        self._node_index = node_index
        self._of_key: dict[str, I64] = {}
        self._per_node: dict[str, bool] = {}

    def __getitem__(self, key: str) -> I64:
        """(N,) the domain of each node by label `key`, 0 .. D - 1, -1 without the label."""
        domain = self._of_key.get(key)
        if domain is None:
            domain = self._of_key[key] = self._node_index.domains(key, self.nodes)
        return domain

    def is_per_node(self, key: str) -> bool:
        """Whether no domain of label `key` has more than one node."""
        per_node = self._per_node.get(key)
        if per_node is None:
            per_node = self._per_node[key] = has_one_node_each(self[key])
        return per_node


def domain_count(domain: I64) -> int:
    """D, the number of domains in domain (N,)."""
    return int(domain.max(initial=-1)) + 1


def nested(narrow: I64, wide: I64) -> I64:
    """(N,) dense numbers of the pairs of domains narrow (N,) and wide (N,), -1 where one of them is."""
    inside = (narrow >= 0) & (wide >= 0)
    found = np.full(len(narrow), -1, np.int64)
    pairs = narrow[inside] * np.int64(domain_count(wide)) + wide[inside]
    found[inside] = np.unique(pairs, return_inverse=True)[1].reshape(-1)
    return found


def per_domain(domain: I64, counts: I64) -> I64:
    """(D + 1,) sums of counts (N,) by domain (N,); the last is 0, for nodes without the label (domain -1)."""
    inside = domain >= 0
    sums = np.bincount(domain[inside], counts[inside], minlength=domain_count(domain))
    return np.append(sums.astype(np.int64), 0)


def keep_within(domain: I64, count: I64, limit: I64) -> I64:
    """count (K,) reduced to the limit (D,) of each domain (K,), earlier entries first; domain -1 has no limit."""
    order = np.argsort(domain, kind="stable")
    of, sorted_count = domain[order], count[order]
    total = np.cumsum(sorted_count) - sorted_count
    first = np.searchsorted(of, of)  # start of each entry's domain
    before = total - total[first] if len(of) else total
    result = np.empty_like(count)
    result[order] = np.clip(np.append(limit, UNLIMITED)[of] - before, 0, sorted_count)
    return result


@dataclass(frozen=True, slots=True)
class Condition:
    """A constraint of one task on others as a condition on counts by domain. From it follows what it says of a node
    once tasks on that node are gone: only the count of the node's own domain is lower then.

    domain (N,): that of each node, -1: none. counts (D + 1,): tasks that it counts, the last is 0. label_sets,
    classes: rows of these tables whose tasks it counts; None: of all. staying: tasks that are leaving do not count."""

    domain: I64
    counts: I64
    label_sets: Bools | None = None
    classes: Bools | None = None
    staying: bool = False

    def counted(self, cls: I64, label_set: I64, leaving: Bools) -> Bools:
        """(P,) whether it counts tasks of these classes and label sets."""
        counted = ~leaving if self.staying else np.ones(len(cls), np.bool_)
        if self.label_sets is not None:
            counted &= self.label_sets[label_set]
        if self.classes is not None:
            counted &= self.classes[cls]
        return counted

    def met(self, node: I64, less: I64) -> Bools:
        """(K,) whether it is met with the task on node[k], if less[k] of what it counts on that node are gone."""
        raise NotImplementedError
