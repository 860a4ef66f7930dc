"""Quota by recursion over dictionaries, one column at a time, in Kueue's terms."""

from functools import cached_property


class Node:
    """A queue with one column of amounts; None: no limit."""

    def __init__(self, own, nominal=0, borrowing=None, lending=None, limit=None):
        self.nominal, self.borrowing, self.lending, self.limit, self.own = nominal, borrowing, lending, limit, own
        self.parent = None
        self.children = []

    def adopt(self, child):
        child.parent = self
        self.children.append(child)

    @cached_property
    def subtree(self):
        return self.nominal + sum(child.subtree - child.local for child in self.children)

    @cached_property
    def local(self):
        return 0 if self.lending is None else max(0, self.subtree - self.lending)

    @cached_property
    def usage(self):
        return self.own + sum(max(0, child.usage - child.local) for child in self.children)

    @cached_property
    def total(self):
        return self.own + sum(child.total for child in self.children)

    @cached_property
    def quota_available(self):
        if self.parent is None:
            return self.subtree - self.usage
        above = self.parent.quota_available
        if self.borrowing is not None:
            used_above = max(0, self.usage - self.local)
            above = min(above, self.subtree - self.local - used_above + self.borrowing)
        return max(0, self.local - self.usage) + above

    @cached_property
    def quota_potential(self):
        if self.parent is None:
            return self.subtree
        amount = self.local + self.parent.quota_potential
        return amount if self.borrowing is None else min(amount, self.subtree + self.borrowing)

    def ancestors(self):
        """The queue itself, its parent, ..., its root."""
        return [self, *(self.parent.ancestors() if self.parent else [])]

    @property
    def available(self):
        caps = [node.limit - node.total for node in self.ancestors() if node.limit is not None]
        return min([self.quota_available, *caps])

    @property
    def potential(self):
        return min([self.quota_potential, *(node.limit for node in self.ancestors() if node.limit is not None)])

    @property
    def borrowed(self):
        return 0 if self.parent is None else max(0, self.usage - self.subtree)


def nodes(described, flavor, resource, own):
    """id -> Node for one column of a tree; `own`: id -> usage of the queue's own tasks."""
    known = {}
    for queue in described.queues:
        amounts = [q for q in queue.quotas if (q.flavor, q.resource) == (flavor, resource)]
        q = amounts[0] if amounts else None
        arguments = (q.nominal, q.borrowing_limit, q.lending_limit, q.limit) if q else ()
        known[queue.id] = Node(own.get(queue.id, 0), *arguments)
    for queue in described.queues:
        if queue.parent:
            known[queue.parent].adopt(known[queue.id])
    return known
