"""Which pods go so that one of higher priority fits, and when none goes. The cases are those of kube-scheduler's tests
of preemption.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from tests.e2e.api import Json
from tests.e2e.backends import PODS, Backend, Synthetic
from tests.e2e.conftest import SYNTHETIC
from tests.e2e.objects import condition, container, node, taint
from tests.e2e.preemption import (
    HIGH,
    LONG,
    LOW,
    MID,
    NEVER,
    another_round,
    attempts,
    define_priorities,
    guard,
    none_is_evicted_for,
    preempted,
    ranked,
    relax,
    until_nominated,
    until_terminating,
)
from tests.e2e.processes import Scheduler
from tests.e2e.real_backend import Real
from tests.e2e.test_constraints import HOST, ZONE, far, port, term

Schedule = Callable[..., Scheduler]


@pytest.fixture(autouse=True)
def _priorities(backend: Backend) -> None:
    define_priorities(backend)


def full(backend: Backend, scheduler: Scheduler, *pods: Json, **resources: str) -> None:
    """One node, `a`, with these pods on it."""
    offered: Json = {"cpu": "2"} | resources
    backend.create(node("a", labels={HOST: "a", ZONE: "x"}, **offered))
    backend.until_seen_by(scheduler)
    backend.create(*pods)
    backend.until_bound(len(pods))
    backend.until_seen_by(scheduler)


def test_a_victim_is_marked_deleted_and_reported_and_its_preemptor_takes_its_place(
    backend: Backend, scheduler: Scheduler
) -> None:
    before = attempts(scheduler)
    full(backend, scheduler, ranked("victim", LOW, cpu="2", grace=LONG))
    backend.create(ranked("preemptor", HIGH, cpu="2"))
    (victim,) = until_terminating(backend)
    assert victim["metadata"]["deletionGracePeriodSeconds"] == LONG
    found = condition(victim, "DisruptionTarget")
    assert (found["status"], found["reason"]) == ("True", "PreemptionByScheduler")
    assert found["message"] == "poseidon: preempting to accommodate a higher priority pod"
    event = backend.until_event("Preempted", "victim", "on node a")
    assert (event["type"], event["related"]["name"]) == ("Normal", "preemptor")
    until_nominated(backend, "preemptor", "a")
    assert "preemptor" not in backend.bound()
    assert scheduler.status()["last_round"]["nominated"] == 1
    backend.delete(PODS, "victim")
    assert backend.until_bound(1, "preemptor") == {"preemptor": "a"}
    assert attempts(scheduler) == before + 1


def test_a_pod_that_fits_somewhere_preempts_none(backend: Backend, scheduler: Scheduler) -> None:
    full(backend, scheduler, ranked("low", LOW, cpu="2"))
    backend.create(node("b", cpu="2"))
    backend.until_seen_by(scheduler)
    backend.create(ranked("high", HIGH, cpu="2"))
    assert backend.until_bound(2) == {"low": "a", "high": "b"}
    assert preempted(backend) == []


@pytest.mark.parametrize("priority", ["system-cluster-critical", "system-node-critical"])
def test_a_critical_pod_preempts_pods_of_any_user(backend: Backend, scheduler: Scheduler, priority: str) -> None:
    full(backend, scheduler, ranked("user", HIGH, cpu="2"))
    backend.create(ranked("critical", priority, cpu="2"))
    assert backend.until_bound(1, "critical") == {"critical": "a"}
    assert preempted(backend) == ["user"]


@pytest.mark.parametrize(
    ("resident", "arrives"),
    [
        pytest.param(LOW, NEVER, id="its policy is Never"),
        pytest.param(MID, MID, id="equal priority"),
        pytest.param(HIGH, MID, id="higher priority"),
        pytest.param("system-node-critical", "system-cluster-critical", id="critical"),
    ],
)
def test_no_pod_is_evicted_for_a_pod_that_may_not_preempt(
    backend: Backend, scheduler: Scheduler, resident: str, arrives: str
) -> None:
    full(backend, scheduler, ranked("stays", resident, cpu="2"))
    backend.create(ranked("waits", arrives, cpu="2"))
    none_is_evicted_for(backend, scheduler, "waits")
    backend.delete(PODS, "stays")
    backend.until_bound(1, "waits")
    assert preempted(backend) == []


@pytest.mark.flags("--preemption", "off")
def test_no_pod_is_evicted_if_preemption_is_off(backend: Backend, scheduler: Scheduler) -> None:
    full(backend, scheduler, ranked("stays", LOW, cpu="2"))
    backend.create(ranked("waits", HIGH, cpu="2"))
    none_is_evicted_for(backend, scheduler, "waits")
    assert preempted(backend) == []


@pytest.mark.parametrize(
    ("wrong", "spec"),
    [
        pytest.param({}, {"nodeSelector": {"pool": "right"}}, id="selector"),
        pytest.param({"spec": {"taints": [taint("dedicated")]}}, {}, id="taint"),
        pytest.param({"spec": {"unschedulable": True}}, {}, id="cordoned"),
        pytest.param({}, {"cpu": "3"}, id="too small"),
    ],
)
def test_no_pod_is_evicted_from_a_node_on_which_the_pod_cannot_run(
    backend: Backend, scheduler: Scheduler, wrong: Json, spec: Json
) -> None:
    full(backend, scheduler, ranked("stays", LOW, cpu="2"))
    backend.create(node("b", cpu="3", labels={"pool": "right"}))
    backend.until_seen_by(scheduler)
    backend.create(ranked("other", MID, cpu="3"))
    backend.until_bound(2)
    backend.patch_node("a", wrong | {"metadata": {"labels": {"seen": "yes"}}})
    # a pod that can only be placed by who knows the change, which came with this label
    backend.create(ranked("seen", LOW, cpu="0", nodeSelector={"seen": "yes"}, tolerations=[{"operator": "Exists"}]))
    backend.until_bound(1, "seen")
    asked: Json = {"cpu": "2"} | spec
    backend.create(ranked("equal", MID, **asked))
    none_is_evicted_for(backend, scheduler, "equal")
    # on the other node it can, and a more important pod goes
    backend.create(ranked("high", HIGH, **asked))
    assert backend.until_bound(1, "high") == {"high": "b"}
    assert preempted(backend) == ["other"]


# -- constraints between pods ----------------------------------------------------------------------------------------


def labelled(name: str, priority: str, app: str, **spec: Any) -> Json:
    return ranked(name, priority, metadata={"labels": {"app": app}}, **spec)


ALONE = far(term("noisy"))


def test_a_pod_goes_that_the_preemptor_must_not_run_beside(backend: Backend, scheduler: Scheduler) -> None:
    full(backend, scheduler, labelled("noisy", LOW, "noisy"), labelled("other", LOW, "other"), cpu="4")
    backend.create(ranked("quiet", HIGH, affinity=ALONE))
    assert backend.until_bound(1, "quiet") == {"quiet": "a"}
    assert preempted(backend) == ["noisy"]
    assert set(backend.bound()) == {"other", "quiet"}


def test_a_pod_goes_that_must_not_run_beside_the_preemptor(backend: Backend, scheduler: Scheduler) -> None:
    full(backend, scheduler, labelled("quiet", LOW, "quiet", affinity=ALONE), labelled("other", LOW, "other"), cpu="4")
    backend.create(labelled("noisy", HIGH, "noisy"))
    assert backend.until_bound(1, "noisy") == {"noisy": "a"}
    assert preempted(backend) == ["quiet"]
    assert set(backend.bound()) == {"other", "noisy"}


@pytest.mark.parametrize("priority", [MID, HIGH], ids=["equal", "higher"])
def test_a_pod_that_the_preemptor_must_not_run_beside_stays_if_it_matters_as_much(
    backend: Backend, scheduler: Scheduler, priority: str
) -> None:
    full(backend, scheduler, labelled("noisy", priority, "noisy"), labelled("other", LOW, "other"), cpu="4")
    backend.create(ranked("quiet", MID, affinity=ALONE))
    none_is_evicted_for(backend, scheduler, "quiet")
    assert preempted(backend) == []


def test_no_pod_is_evicted_for_a_pod_that_another_one_in_the_zone_repels(
    backend: Backend, scheduler: Scheduler
) -> None:
    """Its removal from another node of the zone would be needed: kube-scheduler does not do that either."""
    full(backend, scheduler, labelled("noisy", HIGH, "noisy"), cpu="4")
    backend.create(node("b", labels={ZONE: "x"}, cpu="2"))
    backend.create(ranked("low", LOW, cpu="2", nodeSelector={HOST: "b"}))
    backend.until_bound(1, "low")
    backend.create(ranked("quiet", MID, cpu="2", affinity=far(term("noisy", ZONE))))
    none_is_evicted_for(backend, scheduler, "quiet")
    assert preempted(backend) == []


def test_a_pod_goes_whose_host_port_the_preemptor_needs(backend: Backend, scheduler: Scheduler) -> None:
    full(backend, scheduler, ranked("holds", LOW, containers=port(8080)), ranked("free", LOW, containers=port(9090)))
    backend.create(ranked("equal", LOW, containers=port(8080)))
    none_is_evicted_for(backend, scheduler, "equal")
    backend.create(ranked("needs", HIGH, containers=port(8080)))
    assert backend.until_bound(1, "needs") == {"needs": "a"}
    assert preempted(backend) == ["holds"]


# -- how many, and which ---------------------------------------------------------------------------------------------


def test_several_pods_go_for_one(backend: Backend, scheduler: Scheduler) -> None:
    lows = [ranked(f"low-{at}", LOW, cpu="1") for at in range(3)]
    full(backend, scheduler, *lows, ranked("mid", MID, cpu="1"), cpu="4")
    backend.create(ranked("high", HIGH, cpu="2"))
    backend.until_bound(1, "high")
    # two of the lowest priority are enough
    victims = preempted(backend)
    assert len(victims) == 2
    assert all(name.startswith("low-") for name in victims)


def test_all_go_for_one_if_all_are_in_its_way(backend: Backend, scheduler: Scheduler) -> None:
    gpus = [ranked(f"low-{at}", LOW, containers=[container(cpu="100m", gpu=1)]) for at in range(2)]
    full(backend, scheduler, *gpus, ranked("other", LOW), cpu="4", gpu="2")
    backend.create(ranked("high", HIGH, containers=[container(cpu="100m", gpu=2)]))
    backend.until_bound(1, "high")
    assert sorted(preempted(backend)) == ["low-0", "low-1"]
    backend.until_event("Preempted", "low-0")
    backend.until_event("Preempted", "low-1")


def test_the_least_important_pods_of_all_nodes_go(backend: Backend, scheduler: Scheduler) -> None:
    backend.create(*(node(name, cpu="2") for name in "abc"))
    backend.until_seen_by(scheduler)
    places = {"mid": ("a", MID), "low": ("b", LOW), "high": ("c", HIGH)}
    backend.create(*(ranked(name, rank, cpu="2", nodeSelector={HOST: where}) for name, (where, rank) in places.items()))
    backend.until_bound(3)
    backend.create(ranked("first", HIGH, cpu="2"))
    assert backend.until_bound(1, "first") == {"first": "b"}
    backend.create(ranked("second", HIGH, cpu="2"))
    assert backend.until_bound(1, "second") == {"second": "a"}
    backend.create(ranked("third", HIGH, cpu="2"))
    none_is_evicted_for(backend, scheduler, "third")
    assert preempted(backend) == ["low", "mid"]


def test_replica_sets_get_capacity_in_the_order_of_their_priorities(backend: Backend, scheduler: Scheduler) -> None:
    backend.create(node("a", cpu="2"), node("b", cpu="2"))
    backend.until_seen_by(scheduler)
    sets = [ReplicaSet(backend, LOW, 4)]
    until_settled(backend, sets, {LOW: 4})
    sets.append(ReplicaSet(backend, MID, 2))
    until_settled(backend, sets, {LOW: 2, MID: 2})
    sets.append(ReplicaSet(backend, HIGH, 3))
    until_settled(backend, sets, {LOW: 0, MID: 1, HIGH: 3})
    another_round(backend)
    # each is replaced by its ReplicaSet, and the new one waits
    victims = [name.partition("-")[0] for name in preempted(backend)]
    assert victims[:2] == [LOW, LOW]
    assert sorted(victims[2:]) == [LOW, LOW, MID]


class ReplicaSet:
    """A ReplicaSet of pods of one priority; where there is no controller, the test acts as it."""

    def __init__(self, backend: Backend, priority: str, replicas: int) -> None:
        self.priority, self.replicas = priority, replicas
        self._backend = backend
        self._made = 0
        labels = {"app": priority}
        template = ranked("", priority, metadata={"labels": labels}, cpu="1")
        self._template = {"metadata": {"labels": labels}, "spec": template["spec"]}
        spec = {"replicas": replicas, "selector": {"matchLabels": labels}, "template": self._template}
        (self._item,) = backend.create(
            {"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": {"name": priority}, "spec": spec}
        )

    def reconcile(self) -> None:
        if not isinstance(self._backend, Real):
            return
        gone = [p for what, p in self._backend.pods.history if what == "DELETED" and app_of(p) == self.priority]
        owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": self.priority, "controller": True}
        owner["uid"] = self._item["metadata"]["uid"]
        for _ in range(self.replicas + len(gone) - self._made):
            self._made += 1
            about = {"name": f"{self.priority}-{self._made}", "ownerReferences": [owner]}
            item = {"apiVersion": "v1", "kind": "Pod", **self._template, "metadata": self._template["metadata"] | about}
            self._backend.create(item)


def app_of(item: Json) -> str:
    return str(item["metadata"].get("labels", {}).get("app", ""))


def until_settled(backend: Backend, sets: list[ReplicaSet], expected: dict[str, int]) -> None:
    """Waits until all ReplicaSets are complete, and this many pods of each are bound."""

    def settled(pods: list[Json]) -> bool:
        for each in sets:
            each.reconcile()
        bound = Counter(app_of(p) for p in pods if p["spec"].get("nodeName"))
        complete = Counter(filter(None, map(app_of, pods))) == {each.priority: each.replicas for each in sets}
        return complete and bound == {name: count for name, count in expected.items() if count}

    backend.pods.until(settled, f"{expected} bound pods of ReplicaSets")


# -- disruption budgets ----------------------------------------------------------------------------------------------


def two_nodes(backend: Backend) -> None:
    """A low pod on `a` and a middle one on `b`, both running: budgets count only those."""
    backend.create(node("a", cpu="2"), node("b", cpu="2"))
    backend.create(labelled("low", LOW, "low", cpu="2"), labelled("mid", MID, "mid", cpu="2"))
    backend.bind("low", "a")
    backend.bind("mid", "b")


def test_a_pod_goes_whose_budget_allows_it_although_its_priority_is_higher(
    backend: Backend, schedule: Schedule
) -> None:
    two_nodes(backend)
    guard(backend, {"app": "low"}, allowed=0)
    guard(backend, {"app": "mid"}, allowed=1)
    schedule()
    backend.create(ranked("high", HIGH, cpu="2"))
    assert backend.until_bound(1, "high") == {"high": "b"}
    assert preempted(backend) == ["mid"]


def test_no_pod_is_evicted_while_budgets_allow_none(backend: Backend, schedule: Schedule) -> None:
    two_nodes(backend)
    guard(backend, {"app": "low"})
    guard(backend, {"app": "mid"})
    scheduler = schedule()
    backend.create(ranked("high", HIGH, cpu="2"))
    none_is_evicted_for(backend, scheduler, "high")
    assert preempted(backend) == []
    relax(backend, "mid", allowed=1)
    assert backend.until_bound(1, "high") == {"high": "b"}
    assert preempted(backend) == ["mid"]


def test_a_budget_is_exceeded_if_that_is_allowed_and_nothing_else_helps(backend: Backend, schedule: Schedule) -> None:
    two_nodes(backend)
    guard(backend, {"app": "low"})
    guard(backend, {"app": "mid"})
    schedule("--preempt-beyond-budgets")
    backend.create(ranked("high", HIGH, cpu="2"))
    assert backend.until_bound(1, "high") == {"high": "a"}
    assert preempted(backend) == ["low"]


@pytest.mark.parametrize("flags", [(), ("--preempt-beyond-budgets",)], ids=["within budgets", "beyond budgets"])
def test_a_budget_for_one_of_two(backend: Backend, schedule: Schedule, flags: tuple[str, ...]) -> None:
    backend.create(node("a", cpu="2"))
    backend.create(*(labelled(name, LOW, "low", cpu="1") for name in ("first", "second")))
    for name in ("first", "second"):
        backend.bind(name, "a")
    guard(backend, {"app": "low"}, allowed=1)
    scheduler = schedule(*flags)
    backend.create(ranked("large", MID, cpu="2"))
    if flags:
        backend.until_bound(1, "large")
        assert sorted(preempted(backend)) == ["first", "second"]
        return
    none_is_evicted_for(backend, scheduler, "large")
    backend.create(ranked("small", HIGH, cpu="1"))
    backend.until_bound(1, "small")
    assert len(preempted(backend)) == 1


# -- failing requests ------------------------------------------------------------------------------------------------


@SYNTHETIC
@pytest.mark.parametrize("verb", ["delete", "patch"])
@pytest.mark.parametrize("kind", ["429", "500"])
def test_requests_that_fail_are_repeated(synthetic: Synthetic, scheduler: Scheduler, verb: str, kind: str) -> None:
    full(synthetic, scheduler, ranked("victim", LOW, cpu="2"))
    before = synthetic.faults({})["counts"].get(kind, 0)
    rule = {"verbs": [verb], "resources": ["pods", "pods/status"], "first": 3, "retry_after_s": 0, f"rate_{kind}": 1.0}
    synthetic.faults({"rules": [rule]})
    synthetic.create(ranked("preemptor", HIGH, cpu="2"))
    synthetic.until_bound(1, "preemptor")
    assert preempted(synthetic) == ["victim"]
    synthetic.until_event("Preempted", "victim")
    assert synthetic.faults({})["counts"][kind] == before + 3
