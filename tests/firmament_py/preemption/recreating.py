"""Clusters whose owners create evicted tasks again, as a ReplicaSet does: at once, while the evicted ones still run."""

from tests.builders import NOW_US, SECOND_US, Cluster, make_tasks, removed


class Recreating:
    """kinds: uid of each task that an owner creates again -> how (arguments of make_tasks). grace: how many rounds an
    evicted task still runs."""

    def __init__(self, cluster: Cluster, kinds, grace=0):
        self.cluster = cluster
        self.kinds = dict(kinds)
        self.grace = grace
        self.where: dict[int, str] = {}
        self.evicted: list[int] = []
        self._leaving: list[tuple[int, int]] = []  # the round in which a task is gone, and its uid
        self._next, self._rounds = 1_000, 0

    def round(self):
        """A round that is carried out: placed tasks run, evicted ones are created again and leave later."""
        now_us = NOW_US + self._rounds * SECOND_US
        result = self.cluster.run(now_us)
        for uid, node in self.cluster.names(result).items():
            self.where[uid] = node
            if uid in self.kinds:
                self.cluster.tell(make_tasks([uid], on=node, **self.kinds[uid]))
        for uid in self.cluster.preempted(result):
            self.evicted.append(uid)
            self._leaving.append((self._rounds + self.grace, uid))
            if uid in self.kinds:
                self._next += 1
                self.kinds[self._next] = {**self.kinds[uid], "created_us": now_us}
                self.cluster.tell(make_tasks([self._next], **self.kinds[self._next]))
        gone = [uid for at, uid in self._leaving if at <= self._rounds]
        if gone:
            self.cluster.tell(removed(*gone))
        self._leaving = [each for each in self._leaving if each[1] not in gone]
        self._rounds += 1

    def rounds(self, count=12):
        for _ in range(count):
            self.round()
        return self
