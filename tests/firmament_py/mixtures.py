"""Random clusters with inter-task constraints, drawn one choice at a time.

`Mixture` sends the same events to a cluster and a plain world (peer_oracle.py). All its choices go through `one`, so
that hypothesis (which shrinks) can drive it as well as random.Random.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from firmament_py.model.constraints import (
    NO_DEMAND,
    NO_PEERS,
    NodeDemand,
    PeerDemand,
    PeerSelector,
    PeerTerm,
    PreferenceSet,
    Requirement,
    Spread,
    Taint,
    Term,
    Toleration,
)
from firmament_py.model.events import ClassDefined, NamespaceObserved, NodeObserved, NodeRemoved, PlacementRejected
from firmament_py.policy import Policy
from tests.builders import (
    NOW_US,
    SECOND_US,
    Cluster,
    ended,
    make_class,
    make_cluster,
    make_label_set,
    make_node,
    make_tasks,
    needs,
    removed,
)
from tests.firmament_py.peer_oracle import Task, World

One = Callable[[Sequence[Any]], Any]

KEYS = ("zone", "zone", "host", "rack")
NAMESPACES = ("default", "other", "third")
LABELS: tuple[dict[str, str], ...] = ({}, *[{"app": "a"}] * 4, {"app": "b"}, {"app": "a", "tier": "x"})
SPOT = Taint("spot", "", "NoSchedule")
TOKENS = (*[()] * 12, ("TCP:80",), ("TCP:80/a",), ("TCP:80/b", "UDP:53"), ("TCP:80", "TCP:80/a"))


class Mixture:
    """A cluster, the plain world beside it, and ways to change both."""

    def __init__(
        self, one: One, *, preferences: bool = False, most_waiting: int = 12, policy: Policy | None = None
    ) -> None:
        self.one = one
        self.cluster: Cluster = make_cluster(policy=policy)
        self.world = World()
        self.classes: list[ClassDefined] = []
        self.label_sets: list[tuple[int, str, dict[str, str]]] = []
        self.uid = 0
        self._preferences = preferences
        for name in NAMESPACES:
            self.describe_namespace(name)
        for _ in range(one(range(1, 9))):
            self.add_node()
        for number in range(1, one(range(2, 7))):
            self.add_class(number)
        for _ in range(one(range(5))):
            self.add_tasks(bound=True)
        for _ in range(one(range(1, 6))):
            self.add_tasks(one(range(1, most_waiting // 2)))

    # -- values ---------------------------------------------------------------------------------------------------

    def few(self, make: Callable[[], Any], weights: Sequence[int]) -> tuple[Any, ...]:
        """A number of values out of `weights`, each made anew."""
        return tuple(make() for _ in range(self.one(weights)))

    def requirement(self) -> Requirement:
        found: Requirement = self.one(
            [
                *[needs("app", "In", "a")] * 4,
                *(needs("app", "In", "b"), needs("app", "In", "a", "b"), needs("tier", "DoesNotExist")),
                *(needs("app"), needs("app", "NotIn", "b"), needs("tier", "In", "x")),
            ]
        )
        return found

    def selector(self) -> PeerSelector:
        namespace = self.one([*[0] * 6, 1, 2, 3])
        return PeerSelector(
            frozenset([("default",), ("default", "other"), (), ("third",)][namespace]),
            [None, None, (), (needs("team", "In", "red"),)][namespace],
            self.one([*[self.few(self.requirement, (1, 1, 1, 2))] * 6, (), None]),
        )

    def peer_term(self) -> PeerTerm:
        return PeerTerm(self.selector(), self.one(KEYS))

    def spread(self) -> Spread:
        one = self.one
        return Spread(
            self.selector(),
            one(KEYS),
            one([1, 1, 2]),
            one([1, 1, 1, 1, 2, 3]),
            one([True, True, False]),
            one([False, True]),
        )

    def peers(self) -> PeerDemand:
        match self.one(range(8)):
            case 0:
                return NO_PEERS
            case 1:
                return PeerDemand(affinity=self.few(self.peer_term, (1, 1, 2)))
            case 2 | 3:
                return PeerDemand(anti_affinity=self.few(self.peer_term, (1, 1, 2)))
            case 4 | 5:
                return PeerDemand(spread=self.few(self.spread, (1, 1, 2, 3)))
        return PeerDemand(
            self.few(self.peer_term, (0, 0, 1)), self.few(self.peer_term, (0, 1)), self.few(self.spread, (0, 1, 2))
        )

    def wishes(self) -> PreferenceSet:
        if not self._preferences:
            return PreferenceSet()
        one = self.one
        return PreferenceSet(
            nodes=self.few(lambda: (one([1, 50, 100]), Term((needs("zone", "In", one(["a", "b"])),))), (0, 1)),
            peers=self.few(lambda: (one([-100, -1, 1, 100]), self.peer_term()), (0, 1, 2)),
            spread=self.few(self.spread, (0, 1)),
            images=one([(), ("image",)]),
            avoided_as=one(["", "owner"]),
        )

    def demand(self) -> NodeDemand:
        if self.one([True, True, False]):
            return NO_DEMAND
        one = self.one
        return NodeDemand(
            selector=self.few(lambda: needs("zone", "In", *one([("a",), ("a", "b")])), (0, 0, 1)),
            affinity=self.few(lambda: (Term((needs("host", "NotIn", "n0"),)), Term((needs("rack"),))), (0, 1)),
            tolerations=self.few(lambda: Toleration("spot", "Exists", "", one(["", "NoSchedule"])), (0, 1)),
            further=self.few(lambda: ("disk", (Term((needs("zone", "In", one(["a", "b"])),)),)), (0, 0, 1)),
        )

    # -- events -----------------------------------------------------------------------------------------------------

    def describe_namespace(self, name: str) -> None:
        labels = self.one([{}, {"team": "red"}, {"team": "blue"}])
        self.cluster.tell(NamespaceObserved(name, labels))
        self.world.namespaces[name] = labels

    def add_node(self, again: NodeObserved | None = None) -> None:
        one = self.one
        name = again.name if again else f"n{len(self.world.nodes) + one([0, 0, 0, 1])}"
        labels = {
            "zone": one(["a", "a", "b", "b", "c", ""]),
            "rack": one(["r", "s", ""]),
            "host": one([*[name] * 7, ""]),
        }
        node = make_node(
            name,
            pods=one([9, 9, 9, 4, 2, 1, 0]),
            cpu=one([16, 16, 8, 8, 4, 2, 0]),
            labels={key: value for key, value in labels.items() if value},
            taints=one([*[()] * 8, (SPOT,), (Taint("soft", "", "PreferNoSchedule"),)]),
        )
        self.cluster.tell(node)
        self.world.nodes[node.id] = node

    def add_class(self, number: int) -> None:
        one = self.one
        cls = make_class(
            number,
            priority=one([0, 0, 1, 2]),
            demand=self.demand(),
            peers=self.peers(),
            preferences=self.wishes(),
            tokens=one(TOKENS),
            cpu=one([0, 1, 1, 1, 2, 3]),
        )
        self.cluster.tell(cls)
        self.classes.append(cls)

    def label_set(self) -> int:
        """The number of a label set, 0 for none."""
        if self.one([False] * 15 + [True]):
            return 0
        namespace, labels = self.one([*["default"] * 5, *NAMESPACES]), self.one(LABELS)
        for number, of, known in self.label_sets:
            if (of, known) == (namespace, labels):
                return number
        number = len(self.label_sets) + 1
        self.label_sets.append((number, namespace, labels))
        self.cluster.tell(make_label_set(number, namespace, **labels))
        return number

    def inputs(self) -> int:
        """The number of an input set for a task, 0 for none."""
        return 0

    def member(self, uid: int) -> tuple[int, int]:
        """Gang and role of a task, which may have been told of before; 0: no gang."""
        return 0, 0

    def add_tasks(self, count: int = 1, bound: bool = False) -> None:
        """Tasks of one class and label set."""
        one = self.one
        cls, label_set, leaving = one(self.classes), self.label_set(), bound and one([False, False, True])
        for _ in range(count):
            self.uid += 1
            on = one([*(node.name for node in self.world.nodes.values()), "unknown"]) if bound else None
            self._tell_task(self.uid, cls, label_set, on, leaving, one([0, 0, 3, 100]))

    def _tell_task(self, uid: int, cls: ClassDefined, label_set: int, on: str | None, leaving: bool, age: int) -> None:
        created_us = NOW_US - age * SECOND_US
        gang, role = self.member(uid)
        self.cluster.tell(
            make_tasks(
                [uid],
                cls.id,
                on=on,
                created_us=created_us,
                label_set=label_set,
                leaving=leaving,
                inputs=self.inputs(),
                gang=gang,
                role=role,
            )
        )
        namespace, labels = next((p[1:] for p in self.label_sets if p[0] == label_set), ("", None))
        self.world.tasks[uid] = Task(cls, namespace, labels, on and f"id-{on}", leaving, created_us)

    def change(self) -> None:
        """Applies a random event."""
        one, world = self.one, self.world
        placed = sorted(uid for uid, task in world.tasks.items() if task.node is not None)
        nodes = sorted(world.nodes)
        match one(["task", "task", "bound", "gone", "rejected", "node", "removed", "relabel", "namespace"]):
            case "task":
                self.add_tasks(one([1, 2, 3]))
            case "bound":
                self.add_tasks(bound=True)
            case "gone" if placed:
                uid = one(placed)
                self.cluster.tell(one([removed, ended])(uid))
                del world.tasks[uid]
            case "rejected" if placed:
                uid = one(placed)
                outcome = self.cluster.tell(PlacementRejected(uid, world.tasks[uid].node or ""))[0]
                if not outcome.unknown:
                    world.tasks[uid].node = None
            case "node" if nodes:
                self.add_node(one([None, world.nodes[one(nodes)]]))
            case "removed" if nodes:
                self.cluster.tell(NodeRemoved(gone := one(nodes)))
                del world.nodes[gone]
            case "relabel" if placed:
                uid = one(placed)
                task = world.tasks[uid]
                assert task.node is not None
                age = (NOW_US - task.created_us) // SECOND_US
                self._tell_task(uid, task.cls, self.label_set(), task.node.removeprefix("id-"), one([False, True]), age)
            case "namespace":
                self.describe_namespace(one(NAMESPACES))

    # -- rounds -----------------------------------------------------------------------------------------------------

    def round(self) -> tuple[list[list[tuple[int, str]]], Any]:
        """Runs a round: what it placed as (uid, node id), batch after batch; and its result. The world is unchanged."""
        recorder = Recorder(self.cluster.scheduler.verification.checker)
        self.cluster.scheduler.verification.checker = recorder  # type: ignore[assignment]
        result = self.cluster.run()
        self.cluster.scheduler.verification.checker = recorder.checker
        tasks, nodes, batch = recorder.checked
        state = self.cluster.state
        batches: dict[int, list[tuple[int, str]]] = {}
        for i in np.argsort(batch, kind="stable").tolist():
            at = (int(state.tasks.uid[tasks[i]]), state.nodes.id[int(nodes[i])])
            batches.setdefault(int(batch[i]), []).append(at)
        return list(batches.values()), result

    def waiting(self) -> list[int]:
        return sorted(uid for uid, task in self.world.tasks.items() if task.node is None)


class Recorder:
    """Records the placements that are passed to the independent check."""

    def __init__(self, checker: Any) -> None:
        self.checker = checker
        self.checked: tuple[np.ndarray, np.ndarray, np.ndarray]

    def check(self, tasks: np.ndarray, nodes: np.ndarray, batch: np.ndarray) -> Any:
        self.checked = (tasks, nodes, batch)
        return self.checker.check(tasks, nodes, batch)
