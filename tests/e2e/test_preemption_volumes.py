"""Users of claims with access mode ReadWriteOncePod that leave for pods of higher priority, as with kube-scheduler.

Claims are named after their case, because a real API server without controllers does not remove claims.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from tests.e2e.api import Json
from tests.e2e.backends import PODS, Backend
from tests.e2e.conftest import REAL
from tests.e2e.objects import node
from tests.e2e.preemption import (
    HIGH,
    LONG,
    LOW,
    NEVER,
    another_round,
    define_priorities,
    preempted,
    ranked,
    until_nominated,
    until_terminating,
)
from tests.e2e.processes import Process, Scheduler
from tests.e2e.test_constraints import claim, make, volume
from tests.e2e.test_feasibility import kube_scheduler, normal

__all__ = ["kube_scheduler"]

IN_USE = (
    "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by another pod"
)
POSEIDON = "poseidon"


@pytest.fixture(autouse=True)
def _priorities(backend: Backend) -> None:
    define_priorities(backend)


def one_pod_claim(backend: Backend, name: str) -> None:
    alone: Json = {"accessModes": ["ReadWriteOncePod"]}
    make(backend, [volume(name, **alone), claim(name, volumeName=name, **alone)])


def using(name: str, priority: str, *claims: str, **fields: Any) -> Json:
    volumes = [{"name": each, "persistentVolumeClaim": {"claimName": each}} for each in claims]
    return ranked(name, priority, volumes=volumes, **fields)


@dataclass(frozen=True)
class Case:
    """Users of claims (name -> node and claims), and what becomes of a pod that uses all of these claims."""

    users: dict[str, tuple[str, tuple[str, ...]]]
    victims: tuple[str, ...] = ()
    where: str = ""
    priority: str = HIGH
    fields: tuple[tuple[str, str], ...] = ()


CASES = {
    "one-claim": Case({"user": ("b", ("one",))}, victims=("user",), where="b"),
    "two-claims-of-one-pod": Case({"user": ("a", ("one", "two"))}, victims=("user",), where="a"),
    "two-claims-on-one-node": Case(
        {"first": ("b", ("one",)), "second": ("b", ("two",)), "other": ("b", ())},
        victims=("first", "second"),
        where="b",
    ),
    "two-claims-on-two-nodes": Case({"first": ("a", ("one",)), "second": ("b", ("two",))}),
    "equal-priority": Case({"user": ("b", ("one",))}, priority=LOW),
    "never-preempts": Case({"user": ("b", ("one",))}, priority=NEVER),
    "user-and-capacity": Case(
        # the others leave no room elsewhere once one victim is gone before the other
        {"user": ("b", ("one",)), "large": ("b", ()), "other": ("a", ()), "another": ("c", ())},
        victims=("large", "user"),
        where="b",
        fields=(("cpu", "4"),),
    ),
}


def outcome(backend: Backend, scheduler: Scheduler, name: str, case: Case, by: str) -> tuple[list[str], str, str]:
    """The victims, the node of the preemptor, and the message about it if it has none."""
    named = {each: f"{name}-{each}" for each in ("one", "two")}
    for each in named.values():
        one_pod_claim(backend, each)
    backend.create(node("a"), node("b"), node("c"))
    backend.until_seen_by(scheduler)
    for user, (where, claims) in case.users.items():
        backend.create(using(user, LOW, *(named[each] for each in claims), nodeName=where))
    backend.until_seen_by(scheduler)
    needed = sorted({named[each] for _, claims in case.users.values() for each in claims})
    backend.create(using("p", case.priority, *needed, scheduler=by, **dict(case.fields)))
    if case.where:
        found = backend.until_bound(1, "p")["p"]
        return sorted(preempted(backend)), found, ""
    message = backend.until_unschedulable("p")
    if by == POSEIDON:
        another_round(backend)
    return sorted(preempted(backend)), "", normal(message)


@pytest.mark.parametrize(("name", "case"), [pytest.param(*both, id=both[0]) for both in CASES.items()])
def test_users_of_claims_leave(backend: Backend, scheduler: Scheduler, name: str, case: Case) -> None:
    why = "" if case.where else f"0/3 nodes are available: 3 {IN_USE}"
    assert outcome(backend, scheduler, name, case, POSEIDON) == (sorted(case.victims), case.where, why)


def test_the_pod_is_nominated_while_the_user_terminates(backend: Backend, scheduler: Scheduler) -> None:
    one_pod_claim(backend, "terminating")
    backend.create(node("a"), node("b"))
    backend.until_seen_by(scheduler)
    backend.create(using("user", LOW, "terminating", grace=LONG))
    where = backend.until_bound(1, "user")["user"]
    backend.create(using("p", HIGH, "terminating"))
    until_terminating(backend)
    until_nominated(backend, "p", where)
    another_round(backend)
    assert not backend.bound("p")
    backend.delete(PODS, "user")
    assert backend.until_bound(1, "p") == {"p": where}
    assert preempted(backend) == ["user"]
    backend.until_event("Preempted", "user")


@REAL
@pytest.mark.parametrize(("name", "case"), [pytest.param(*both, id=both[0]) for both in CASES.items()])
def test_as_kube_scheduler(
    kube_scheduler: Process, backend: Backend, scheduler: Scheduler, name: str, case: Case
) -> None:
    why = "" if case.where else f"0/3 nodes are available: 3 {IN_USE}"
    assert outcome(backend, scheduler, name, case, "default-scheduler") == (sorted(case.victims), case.where, why)
