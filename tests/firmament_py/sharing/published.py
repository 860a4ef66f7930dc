"""Cases that other schedulers publish for whole rounds with queues, in few words, and a world that plays them.

queues  "name quota w<weight> <limit !<priority> in <parent> closed cpu=<quota> cpu<<limit cpu><guarantee"; amounts
        without a name are GPUs; a quota of -1 is unlimited
nodes   "name GPUs cpu=... memory=... pods=..."
jobs    "name queue GPUs cpu=... memory=... !priority @<node>,<node> +<waiting> min=<minimum> -<node> fixed never":
        each GPUs per task; tasks that run, that wait, and that leave. Several tasks are a gang, which needs all of them
        or `min`. fixed: may not be evicted, never: evict no others
runs    "name=<tasks that run in the end>", or what a single round evicts and places: "-name +name"
"""

from collections.abc import Iterable
from typing import Any, NamedTuple

from firmament_py.model.events import QueuesObserved
from firmament_py.model.options import Preempting
from firmament_py.model.queues import UNLIMITED, QueueDefinition, Quota, Stop
from tests.builders import NOW_US, SECOND_US, make_class, make_cluster, make_gang, make_node, make_tasks, removed
from tests.firmament_py.queues.trees import queue_id

UNITS = {"gpu": 1, "cpu": 1000, "memory": 1000}
"""Parts of each unit that the cases use."""

QUEUE_PRIORITY = 100


class Played(NamedTuple):
    """`differs`: what runs in the end here, and why, if that is not what the other scheduler does."""

    name: str
    queues: str
    nodes: str
    jobs: str
    runs: str
    differs: str = ""
    why: str = ""


def _entries(text: str) -> list[list[str]]:
    return [entry.split() for entry in text.split("; ") if entry]


def _amounts(words: Iterable[str], first: str) -> dict[str, Any]:
    named = {"gpu": first, **dict(word.split("=") for word in words if word.partition("=")[0] in UNITS)}
    return {name: round(float(value) * UNITS[name]) for name, value in named.items()}


def _pods(words: Iterable[str]) -> int:
    return next((int(word[5:]) for word in words if word.startswith("pods=")), 110)


def _bounds(words: Iterable[str], sign: str) -> dict[str, int]:
    """Limits ("<") or guarantees (">") by resource."""
    found = [word.partition(sign) for word in words if sign in word]
    return {name or "gpu": round(float(value) * UNITS[name or "gpu"]) for name, _, value in found}


def described(text: str, *, unlimited: bool = True, **fields: Any) -> list[QueueDefinition]:
    """The queues of a case. unlimited: an amount that is not stated is unlimited, else it is not stated for the queue,
    either; fields: of each queue."""
    found = []
    for name, gpus, *words in _entries(text):
        quota = _amounts(words, gpus)
        limits, kept_back = _bounds(words, "<"), _bounds(words, ">")
        weight = next((float(word[1:]) for word in words if word.startswith("w")), 1.0)
        parent = words[words.index("in") + 1] if "in" in words else ""
        quotas = tuple(
            Quota(
                "all",
                resource,
                nominal := quota[resource] if quota.get(resource, -1) >= 0 else UNLIMITED if unlimited else 0,
                lending_limit=nominal - kept_back[resource] if resource in kept_back else None,
                limit=limits.get(resource),
                weight=weight if resource == "gpu" else 1.0,
            )
            for resource in UNITS
            if unlimited or quota.get(resource, -1) >= 0 or resource in limits
        )
        priority = next((int(word[1:]) for word in words if word.startswith("!")), QUEUE_PRIORITY)
        found.append(
            QueueDefinition(
                queue_id(name),
                name,
                queue_id(parent),
                quotas,
                weight=weight,
                priority=priority,
                unlimited=True,
                stop=Stop.HOLD if "closed" in words else Stop.NONE,
                **fields,
            )
        )
    return found


class _Job:
    def __init__(self, number: int, words: list[str]) -> None:
        self.number, (self.name, self.queue, gpus, *words) = number, words
        self.requests = _amounts(words, gpus)
        self.priority = next((int(word[1:]) for word in words if word.startswith("!")), 50)
        self.on = next((word[1:].split(",") for word in words if word.startswith("@")), [])
        self.leaving = next((word[1:].split(",") for word in words if word.startswith("-")), [])
        self.waiting = next((int(word[1:]) for word in words if word.startswith("+")), 0)
        size = len(self.on) + len(self.leaving) + self.waiting
        self.minimum = next((int(word[4:]) for word in words if word.startswith("min=")), size)
        self.gang = number if size > 1 else 0
        self.fixed = "fixed" in words
        self.never = "never" in words
        self.size = size


class World:
    """Victims end at once and come back as new tasks; what is placed runs on."""

    def __init__(self, queues: QueuesObserved, played: Played, *, movable: bool = True) -> None:
        self.now_us = NOW_US
        self._movable = movable
        self.jobs = {words[0]: _Job(number, words) for number, words in enumerate(_entries(played.jobs), 1)}
        nodes = [
            make_node(name, pods=_pods(words), **{"cpu": 10**9, "memory": 10**9, **_amounts(words, gpus)})
            for name, gpus, *words in _entries(played.nodes)
        ]
        classes = [
            make_class(job.number, priority=job.priority, never_preempts=job.never, **job.requests)
            for job in self.jobs.values()
        ]
        gangs = [
            make_gang(job.number, job.minimum, created_us=self._created_us(job), whole=job.minimum == job.size)
            for job in self.jobs.values()
            if job.gang
        ]
        self.cluster = make_cluster(*nodes, *classes, *gangs, queues, preempting=Preempting.WITHIN_BUDGETS)
        self._uid = 0
        self.running: dict[int, tuple[_Job, str]] = {}
        self.waiting: dict[int, _Job] = {}
        for job in self.jobs.values():
            for node in job.on:
                self._uid += 1
                self.running[self._uid] = job, node
                self._tell(self._uid)
            for node in job.leaving:
                self._uid += 1
                self._tell(self._uid, job, node, leaving=True)
            for _ in range(job.waiting):
                self._create(job)

    def _created_us(self, job: _Job) -> int:
        """By priority, then in the order of the case."""
        order = sorted(self.jobs.values(), key=lambda each: (-each.priority, each.number))
        return NOW_US - (len(order) - order.index(job)) * 60 * SECOND_US

    def _create(self, job: _Job) -> None:
        self._uid += 1
        self.waiting[self._uid] = job
        self._tell(self._uid)

    def _tell(self, uid: int, job: _Job | None = None, node: str | None = None, *, leaving: bool = False) -> None:
        if job is None:
            job, node = self.running[uid] if uid in self.running else (self.waiting[uid], None)
        created_us = self._created_us(job)
        self.cluster.tell(
            make_tasks(
                [uid],
                job.number,
                on=node,
                queue=queue_id(job.queue),
                gang=job.gang,
                created_us=created_us,
                started_us=0 if not node else created_us if self.now_us == NOW_US else self.now_us,
                unevictable=job.fixed,
                movable=self._movable and not job.fixed,
                leaving=leaving,
            )
        )

    def decision(self) -> str:
        """What the first round evicts and places."""
        result = self.cluster.run(self.now_us)
        evicted = [f"-{self.running[uid][0].name}" for uid in self.cluster.preempted(result)]
        return " ".join(sorted(evicted) + sorted(f"+{self.waiting[uid].name}" for uid in self.cluster.names(result)))

    def round(self) -> bool:
        """Whether anything happened."""
        self.now_us += SECOND_US
        result = self.cluster.run(self.now_us)
        placed, victims = self.cluster.names(result), self.cluster.preempted(result)
        for uid, node in placed.items():
            self.running[uid] = self.waiting.pop(uid), node
            self._tell(uid)
        for uid in [*victims, *self.cluster.migrating(result)]:
            job, _ = self.running.pop(uid)
            self.cluster.tell(removed(uid))
            self._create(job)
        return bool(placed or victims)

    def play(self, rounds: int = 40) -> str:
        """What runs in the end, as in a case; it has to come to rest."""
        idle = 0
        for _ in range(rounds):
            idle = 0 if self.round() else idle + 1
            if idle == 3:
                counts = dict.fromkeys(sorted(self.jobs), 0)
                for job, _ in self.running.values():
                    counts[job.name] += 1
                return " ".join(f"{name}={count}" for name, count in counts.items())
        raise AssertionError("it does not come to rest")
