"""Gangs in flight while the leading replica is killed repeatedly, checked over the API server's whole history."""

from __future__ import annotations

import signal
from collections import Counter
from collections.abc import Callable

import pytest

from tests.e2e.api import Json
from tests.e2e.backends import PODS, Synthetic
from tests.e2e.conftest import SYNTHETIC
from tests.e2e.objects import node, pod
from tests.e2e.processes import Scheduler
from tests.e2e.test_restarts import LEASE
from tests.effort import QUARTER, THOROUGH

Schedule = Callable[..., Scheduler]
SIZE = 12
"""Of each gang, and the cores of the cluster: the second gang fits once the first has gone entirely."""


def gang(name: str, size: int = SIZE) -> list[Json]:
    annotations = {
        "pod-group.scheduling.x-k8s.io/name": name,
        "pod-group.scheduling.x-k8s.io/min-available": str(size),
    }
    return [pod(f"{name}-{at:02d}", cpu="1", metadata={"labels": annotations}) for at in range(size)]


def history(synthetic: Synthetic, since: int) -> list[tuple[str, Counter[str]]]:
    """After each change of bound pods: the change, and the number of bound pods of each gang."""
    bound: dict[str, str] = {}
    found = []
    for entry in synthetic.api("GET", "/_audit")["entries"][since:]:
        if entry["what"] == "bind":
            bound[entry["uid"]] = entry["name"].partition("-")[0]
        elif bound.pop(entry["uid"], None) is None:
            continue
        found.append((f"{entry['what']} {entry['name']}", Counter(bound.values())))
    return found


def assert_never_beside(synthetic: Synthetic, since: int, one: str, other: str) -> None:
    """At no instant were members of both bound, and none was unwound, so the respective leader completed each gang that
    was begun."""
    for what, counts in history(synthetic, since):
        assert not (counts[one] and counts[other]), f"after {what}: {counts}"
        assert not what.startswith("evict"), what


@SYNTHETIC
def test_a_leader_that_is_killed_at_any_stage_leaves_a_gang_that_the_next_one_completes(
    synthetic: Synthetic, schedule: Schedule
) -> None:
    synthetic.create(*(node(f"n{at}", cpu="4") for at in range(SIZE // 4)))
    synthetic.faults({"rules": [{"verbs": ["create"], "resources": ["pods/binding"], "latency_ms": 60}]})
    leader = schedule(*LEASE, "--bind-concurrency", "2")
    leader.until_says("leading: ")
    # one that never fits, and is never begun by any leader
    synthetic.create(*gang("huge", 21))
    stages: tuple[int, ...] = (0, 1, SIZE // 2, SIZE - 1, SIZE)
    stages = stages if THOROUGH else stages[QUARTER : QUARTER + 2]
    for stage, seen in enumerate(stages):
        standby = schedule(*LEASE, "--bind-concurrency", "2")
        since = len(synthetic.api("GET", "/_audit")["entries"])
        one, other = f"a{stage}", f"b{stage}"
        members = zip(gang(one), gang(other), strict=True)
        synthetic.create(*(each for pair in members for each in pair))
        if seen:
            synthetic.until_bound(seen)
        leader.expected = {-signal.SIGKILL}
        leader.end(signal.SIGKILL)
        standby.until_says("leading: ")
        leader = standby
        bound = synthetic.until_bound(SIZE)
        assert len(bound) == SIZE
        assert len({name.partition("-")[0] for name in bound}) == 1
        synthetic.delete(PODS, *bound)
        last = other if one in next(iter(bound)) else one
        synthetic.until_bound(SIZE, last)
        assert_never_beside(synthetic, since, one, other)
        synthetic.delete(PODS, *(f"{last}-{at:02d}" for at in range(SIZE)))
    assert synthetic.bound("huge") == {}
    synthetic.create(node("more", cpu=str(21 - SIZE)))
    synthetic.until_bound(21, "huge")
    uids = [bind.uid for bind in synthetic.binds()]
    assert len(uids) == len(set(uids)) == len(stages) * 2 * SIZE + 21


@SYNTHETIC
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGSTOP], ids=["SIGTERM", "SIGSTOP"])
def test_a_leader_that_is_stopped_or_suspended_while_it_binds(
    synthetic: Synthetic, schedule: Schedule, number: int
) -> None:
    """The suspended leader must not continue to bind when it resumes."""
    synthetic.create(*(node(f"n{at}", cpu="4") for at in range(SIZE // 4)))
    synthetic.faults({"rules": [{"verbs": ["create"], "resources": ["pods/binding"], "latency_ms": 60}]})
    since = len(synthetic.api("GET", "/_audit")["entries"])
    leader = schedule(*LEASE, "--bind-concurrency", "1")
    leader.until_says("leading: ")
    standby = schedule(*LEASE, "--bind-concurrency", "1")
    synthetic.create(*gang("a"), *gang("b"))
    synthetic.until_bound(3)
    if number == signal.SIGTERM:
        assert leader.end(number) == 0
    else:
        leader.popen.send_signal(number)
    standby.until_says("leading: ")
    bound = synthetic.until_bound(SIZE)
    if number == signal.SIGSTOP:
        leader.popen.send_signal(signal.SIGCONT)
        leader.until_says("standing by")
    last = "b" if next(iter(bound)).startswith("a") else "a"
    assert synthetic.bound(last) == {}
    synthetic.delete(PODS, *bound)
    synthetic.until_bound(SIZE, last)
    assert_never_beside(synthetic, since, "a", "b")
