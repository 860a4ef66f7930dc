"""A cluster whose parts are slow: an API server, owners, kubelets and a controller of disruption budgets, in virtual
time. Whoever watches learns of changes later, and of changes of different kinds in any order."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from heapq import heappop, heappush
from itertools import count
from random import Random

from protos.gen import flow_pb2
from tests.builders import NOW_US, SECOND_US

ZONES = ("a", "b", "c")
CPU, MEMORY, GPUS = 16, 32, 4


@dataclass(frozen=True)
class App:
    """Pods that are alike. job: 0: they have no owner, which creates others in place of those that go. seconds: how
    long a pod runs; 0: until it is deleted. gang, queue: ids; 0: none."""

    number: int
    message: flow_pb2.TaskClass
    job: int
    pods: int
    seconds: float = 0.0
    movable: bool = False
    unevictable: bool = False
    gang: int = 0
    queue: int = 0
    grace: float = 0.0
    budgeted: bool = False
    """Whether a disruption budget lets a few of its pods be missing."""

    @property
    def priority(self) -> int:
        return self.message.priority


@dataclass
class Pod:
    """As on the API server."""

    uid: int
    app: App
    created_us: int
    role: int = 0
    labelled: bool = True
    """Whether it has the labels of its app; else others."""
    node: str = ""
    started_us: int = 0
    deleting: bool = False
    outcome: str = ""
    """`succeeded`, `failed` or `deleted` once it is gone."""


@dataclass
class Node:
    name: str
    id: str
    cpu: int
    memory: int
    gpus: int
    zone: str
    cordoned: bool = False

    def message(self) -> flow_pb2.Node:
        taints = [{"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}] if self.cordoned else []
        return flow_pb2.Node(
            id=self.id,
            name=self.name,
            allocatable={"pods": 12, "cpu": self.cpu, "memory": self.memory, "gpu": self.gpus},
            labels={"zone": self.zone, "kubernetes.io/hostname": self.name},
            taints=taints,
        )


class Clock:
    """Calls what is due, in order of time."""

    def __init__(self) -> None:
        self.now_us = NOW_US
        self._due: list[tuple[int, int, Callable[[], object]]] = []
        self._number = count()

    def later(self, seconds: float, call: Callable[..., object], *arguments: object) -> None:
        due_us = self.now_us + round(seconds * SECOND_US)
        heappush(self._due, (due_us, next(self._number), lambda: call(*arguments)))

    def run_until(self, end_us: int) -> None:
        while self._due and self._due[0][0] <= end_us:
            at, _, call = heappop(self._due)
            self.now_us = max(self.now_us, at)
            call()
        self.now_us = end_us


@dataclass
class BusyCluster:
    """slow: multiplies all delays. watchers: called with the kind and the key of each object that changes. allowed: by
    the number of an app with a budget, how many of its pods may be evicted."""

    rng: Random
    clock: Clock
    slow: float = 1.0
    watchers: list[Callable[[str, object], None]] = field(default_factory=list)
    pods: dict[int, Pod] = field(default_factory=dict)
    nodes: dict[str, Node] = field(default_factory=dict)
    apps: dict[int, App] = field(default_factory=dict)
    gangs: dict[int, flow_pb2.Gang] = field(default_factory=dict)
    allowed: dict[int, int] = field(default_factory=dict)
    counts: Counter[str] = field(default_factory=Counter)
    _uids: int = 0
    _node_ids: int = 0

    def changed(self, kind: str, key: object) -> None:
        for watcher in self.watchers:
            watcher(kind, key)

    def pause(self, typical: float) -> float:
        """Seconds: about the typical time, now and then a much longer one."""
        return self.slow * typical * (self.rng.expovariate(1.0) + (10.0 if self.rng.random() < 0.05 else 0.0))

    # -- objects ----------------------------------------------------------------------------------------------

    def submit(self, app: App, gang: flow_pb2.Gang | None = None) -> None:
        self.apps[app.number] = app
        if gang is not None:
            self.gangs[app.gang] = gang
            self.changed("gang", app.gang)
        for i in range(app.pods):
            role = i % max(len(gang.roles), 1) if gang is not None else 0
            self.clock.later(self.pause(0.02), self.create, app, role)
        if app.budgeted:
            self.count_budget(app)

    def create(self, app: App, role: int = 0) -> None:
        if app.number not in self.apps:
            return
        self._uids += 1
        self.pods[self._uids] = Pod(self._uids, app, self.clock.now_us // SECOND_US * SECOND_US, role)
        self.changed("pod", self._uids)

    def bind(self, uid: int, node: str) -> bool:
        """Whether the API server accepts the binding."""
        pod = self.pods.get(uid)
        if pod is None or pod.node or pod.deleting or pod.outcome:
            return False
        pod.node = node
        self.clock.later(self.pause(0.5), self._start, uid)
        self.changed("pod", uid)
        self._budget_of(pod)
        return True

    def _start(self, uid: int) -> None:
        pod = self.pods.get(uid)
        if pod is None or pod.node not in self.nodes or pod.deleting or pod.started_us:
            return
        pod.started_us = self.clock.now_us
        self.changed("pod", uid)
        self._budget_of(pod)
        if pod.app.seconds:
            outcome = "failed" if self.rng.random() < 0.2 else "succeeded"
            self.clock.later(pod.app.seconds * self.rng.uniform(0.5, 1.5), self.gone, uid, outcome)

    def delete(self, uid: int) -> None:
        """Begins the deletion of a pod."""
        pod = self.pods.get(uid)
        if pod is None or pod.deleting:
            return
        if not pod.node:
            self.gone(uid, "deleted")
            return
        pod.deleting = True
        self.changed("pod", uid)
        self._budget_of(pod)
        self._replace(pod)
        self.clock.later(self.pause(pod.app.grace or 0.05), self.gone, uid, "deleted")

    def gone(self, uid: int, outcome: str) -> None:
        pod = self.pods.pop(uid, None)
        if pod is None:
            return
        pod.outcome = outcome
        self.changed("pod", uid)
        self._budget_of(pod)
        if not pod.deleting and outcome != "succeeded":
            self._replace(pod)
        if pod.app.gang and outcome == "succeeded" and not self.of_app(pod.app.number):
            self.end_app(pod.app.number)

    def evict(self, uid: int) -> bool:
        """Whether budgets permit that; they are counted late, as on a real API server only their status is."""
        pod = self.pods.get(uid)
        if pod is not None and pod.app.budgeted and self.allowed.get(pod.app.number, 0) <= 0:
            return False
        if pod is not None and pod.app.budgeted:
            self.allowed[pod.app.number] -= 1
            self.changed("budget", pod.app.number)
        self.delete(uid)
        return True

    def _replace(self, pod: Pod) -> None:
        if pod.app.job:
            self.clock.later(self.pause(0.1), self.create, pod.app, pod.role)

    def end_app(self, number: int) -> None:
        """Its owner is deleted, then its pods."""
        app = self.apps.pop(number, None)
        if app is None:
            return
        for uid in self.of_app(number):
            self.delete(uid)
        if app.gang:
            del self.gangs[app.gang]
            self.changed("gang", app.gang)
        if app.budgeted:
            self.allowed.pop(number, None)
            self.changed("budget", number)

    def of_app(self, number: int) -> list[int]:
        return [uid for uid, pod in self.pods.items() if pod.app.number == number]

    def _budget_of(self, pod: Pod) -> None:
        if pod.app.budgeted:
            self.clock.later(self.pause(0.1), self.count_budget, pod.app)

    def count_budget(self, app: App) -> None:
        """A third of the pods may be missing."""
        if app.number not in self.apps:
            return
        healthy = sum(
            bool(self.pods[uid].started_us) and not self.pods[uid].deleting for uid in self.of_app(app.number)
        )
        self.allowed[app.number] = max(healthy - (app.pods - max(app.pods // 3, 1)), 0)
        self.changed("budget", app.number)

    # -- nodes ------------------------------------------------------------------------------------------------

    def add_node(self, name: str) -> None:
        self._node_ids += 1
        number = int(name[1:])
        cpu = self.rng.choice([CPU, CPU, CPU // 2])
        self.nodes[name] = Node(
            name, f"{name}-{self._node_ids}", cpu, MEMORY, GPUS if number % 3 == 0 else 0, ZONES[number % len(ZONES)]
        )
        self.changed("node", name)

    def remove_node(self, name: str) -> None:
        """Its pods are deleted a while later."""
        del self.nodes[name]
        self.changed("node", name)
        for uid, pod in list(self.pods.items()):
            if pod.node == name:
                self.clock.later(self.pause(20.0), self.gone, uid, "deleted")

    def change_node(self, name: str) -> None:
        node = self.nodes[name]
        match self.rng.choice(["cordon", "shrink", "zone", "grow"]):
            case "cordon":
                node.cordoned = not node.cordoned
            case "shrink":
                node.cpu = max(node.cpu // 2, 1)
            case "grow":
                node.cpu = CPU
            case "zone":
                node.zone = self.rng.choice(ZONES)
        self.changed("node", name)

    def drain(self, name: str) -> None:
        self.nodes[name].cordoned = True
        self.changed("node", name)
        for uid, pod in list(self.pods.items()):
            if pod.node == name:
                self.clock.later(self.pause(2.0), self.evict, uid)
