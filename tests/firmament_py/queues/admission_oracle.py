"""Admission one task at a time: all is calculated anew before each, by recursion over dictionaries."""

from firmament_py.model.queues import Reclaim, Sharing
from tests.firmament_py.queues.quota_oracle import nodes


class Oracle:
    """Kueue's orders for a description without limits of shares; `jobs` as dictionaries; `scores`: by (queue, lane);
    `usage`: name -> {column: amount}."""

    def __init__(self, described, resources, jobs, scores, usage=None):
        self.scores = dict(scores)
        self.described, self.resources, self.jobs = described, resources, jobs
        self.flavors = [flavor.name for flavor in described.flavors]
        self.queues = {queue.id: queue for queue in described.queues}
        self.own: dict[tuple[str, str], dict[int, int]] = {(f, r): {} for f in self.flavors for r in resources}
        for queue in described.queues:
            for column, amount in (usage or {}).get(queue.name, {}).items():
                self.own[tuple(column.split("/"))][queue.id] = amount
        self.left = [job["count"] for job in jobs]
        self.refused = set()
        self.lacking = set()
        self.sequence = []
        self.renew()

    def renew(self):
        self.nodes = {column: nodes(self.described, *column, own) for column, own in self.own.items()}

    def children(self, parent):
        return sorted(
            (q for q in self.described.queues if q.parent == parent), key=lambda queue: -queue.priority
        )  # stable: as they come

    def run(self):
        while (chosen := self.tournament(0)) is not None:
            job, flavors, _ = chosen
            if job in self.lacking:
                self.keep(job, flavors)
                continue
            self.add(job, flavors)
            self.left[job] -= 1
            self.scores[self.lane(job)] += self.jobs[job]["charge"]
            self.sequence.append(job)
        return self

    def add(self, job, flavors, sign=1):
        queue = self.jobs[job]["queue"]
        for resource, flavor in flavors.items():
            own = self.own[flavor, resource]
            own[queue] = own.get(queue, 0) + sign * self.jobs[job]["request"][resource]
        self.renew()

    def tournament(self, parent):
        """The best (job, flavors, key among siblings) among the children of a queue."""
        best = None
        for child in self.children(parent):
            below = self.children(child.id)
            candidate = self.tournament(child.id) if below else self.head(child)
            if candidate is not None:
                job, flavors, _ = candidate
                candidate = job, flavors, self.key(child, job, flavors)
                if best is None or candidate[2] < best[2]:
                    best = candidate
        return best

    def lane(self, j):
        return self.jobs[j]["queue"], self.jobs[j]["lane"]

    def head(self, queue):
        own = [j for j, job in enumerate(self.jobs) if job["queue"] == queue.id]

        def order(j):
            lane = self.lane(j)
            return self.scores[lane], -self.jobs[j]["priority"], self.jobs[j]["created"], lane, j

        for j in sorted(own, key=order):
            if self.left[j] and j not in self.refused:
                flavors = self.choose(queue, self.jobs[j])
                if flavors is not None:
                    return j, flavors, None
                flavors = self.kept_flavors(queue, self.jobs[j])
                if flavors is not None:
                    self.lacking.add(j)
                    return j, flavors, None
                self.refused.add(j)
                if queue.strict_fifo:
                    self.refused.update(own)
        return None

    def kept_flavors(self, queue, job):
        """Where quota is kept for the head of a strict queue that lacks it; None: for this one none is. Strict queues
        are described with one flavor."""
        requested = {r: self.flavors[0] for r in self.resources if job["request"][r]}
        if not queue.strict_fifo or queue.reclaim is Reclaim.ANY:
            return None
        for resource, flavor in requested.items():
            node, amount = self.nodes[flavor, resource][queue.id], job["request"][resource]
            if not any((q.flavor, q.resource) == (flavor, resource) for q in queue.quotas) or amount > node.potential:
                return None
            root = node.ancestors()[-1]
            below_root = self.level(queue, flavor, resource, job) < self.height(root)
            may_preempt = self.described.sharing is Sharing.FAIR and queue.reclaim is not Reclaim.NEVER
            if not (amount <= node.available or amount <= node.nominal or below_root or may_preempt):
                return None
        return requested

    def keep(self, j, flavors):
        job = self.jobs[j]
        queue = self.queues[job["queue"]]
        borrows = any(self.level(queue, f, r, job) for r, f in flavors.items())
        for resource, flavor in flavors.items():
            node = self.nodes[flavor, resource][queue.id]
            bound = node.nominal - node.usage
            if borrows:
                bound = bound + node.borrowing if node.borrowing is not None else job["request"][resource]
            own = self.own[flavor, resource]
            own[queue.id] = own.get(queue.id, 0) + max(0, min(job["request"][resource], bound))
        self.renew()
        self.refused.update(j for j, job in enumerate(self.jobs) if job["queue"] == queue.id)

    def choose(self, queue, job):
        requested = [r for r in self.resources if job["request"][r]]
        groups = queue.resource_groups or (tuple(dict.fromkeys(q.resource for q in queue.quotas)),)
        chosen: dict[str, str] = {}
        for group in groups:
            here = [r for r in requested if r in group]
            options = []
            for flavor in dict.fromkeys(q.flavor for q in queue.quotas if q.resource in group):
                if here and flavor in job["flavors"] and all(self.fits(queue, flavor, r, job) for r in here):
                    options.append(flavor)
            if here and not options:
                return None
            if here:
                levels = [max(self.level(queue, f, r, job) for r in here) for f in options]
                avoid = queue.fungibility.try_next_to_avoid_borrowing
                chosen |= dict.fromkeys(here, options[levels.index(min(levels))] if avoid else options[0])
        return chosen if len(chosen) == len(requested) else None

    def fits(self, queue, flavor, resource, job):
        stated = any((q.flavor, q.resource) == (flavor, resource) for q in queue.quotas)
        return stated and job["request"][resource] <= self.nodes[flavor, resource][queue.id].available

    def level(self, queue, flavor, resource, job):
        """The height of the lowest ancestor within whose quota the request is, too."""
        node, amount = self.nodes[flavor, resource][queue.id], job["request"][resource]
        first = node
        while node.usage + amount > node.subtree:
            if node.parent is None:
                return max(1, self.height(node))
            amount -= max(0, node.local - node.usage)
            node = node.parent
        return 0 if node is first else self.height(node)

    def height(self, node):
        return max((self.height(child) + 1 for child in node.children), default=0)

    def key(self, queue, job, flavors):
        described = self.jobs[job]
        last = -described["priority"], described["created"]
        if self.described.sharing is Sharing.CLASSICAL:
            own = self.queues[described["queue"]]
            return max([self.level(own, f, r, described) for r, f in flavors.items()], default=0), *last
        if not queue.parent:
            return False, (0, 0), *last
        self.add(job, flavors)
        ratio, borrows = 0.0, False
        for resource in self.resources:
            borrowed = there = 0
            for flavor in self.flavors:
                node = self.nodes[flavor, resource][queue.id]
                if self.known(queue, flavor, resource):
                    borrowed += node.borrowed
                    borrows |= node.borrowed > 0 and flavors.get(resource) == flavor
                there += node.parent.potential
            if there:
                ratio = max(ratio, 1000 * borrowed / there)
        self.add(job, flavors, -1)
        share = (1, ratio) if ratio and not queue.weight else (0, ratio / queue.weight if ratio else 0)
        return borrows, share, *last

    def known(self, queue, flavor, resource):
        return any((q.flavor, q.resource) == (flavor, resource) for q in queue.quotas) or any(
            self.known(child, flavor, resource) for child in self.children(queue.id)
        )
