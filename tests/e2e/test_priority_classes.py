"""Annotations of PriorityClasses that say who may preempt their pods, while they change and the scheduler restarts."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

import pytest

from tests.e2e.api import Json
from tests.e2e.backends import PODS, Backend
from tests.e2e.objects import condition, node
from tests.e2e.preemption import (
    HIGH,
    LONG,
    LOW,
    MID,
    PRIORITIES,
    define_priorities,
    none_is_evicted_for,
    preempted,
    ranked,
    until_nominated,
    until_terminating,
)
from tests.e2e.processes import Scheduler

Schedule = Callable[..., Scheduler]

CLASSES = "/apis/scheduling.k8s.io/v1/priorityclasses"
YUNIKORN, GODEL = "yunikorn.apache.org/allow-preemption", "godel.bytedance.com/can-be-preempted"
TOLERATION = "preemption-toleration.scheduling.x-k8s.io"
MINIMUM, SECONDS = f"{TOLERATION}/minimum-preemptable-priority", f"{TOLERATION}/toleration-seconds"


@pytest.fixture(autouse=True)
def _priorities(backend: Backend) -> None:
    define_priorities(backend)


def annotate(backend: Backend, name: str, **annotations: str | None) -> None:
    backend.patch(f"{CLASSES}/{name}", {"metadata": {"annotations": annotations}})


def a_full_node(backend: Backend, scheduler: Scheduler) -> None:
    """With one pod of the class LOW."""
    backend.create(node("a", cpu="2"))
    backend.until_seen_by(scheduler)
    backend.create(ranked("running", LOW, cpu="2", grace=LONG))
    backend.until_bound(1)
    backend.until_seen_by(scheduler)


@pytest.mark.parametrize("key", [YUNIKORN, GODEL])
def test_pods_of_a_class_that_opts_out_stay_until_it_opts_in(backend: Backend, scheduler: Scheduler, key: str) -> None:
    a_full_node(backend, scheduler)
    annotate(backend, LOW, **{key: "false"})
    backend.create(ranked("urgent", HIGH, cpu="2"))
    none_is_evicted_for(backend, scheduler, "urgent")
    annotate(backend, LOW, **{key: "true"})
    assert [each["metadata"]["name"] for each in until_terminating(backend)] == ["running"]
    until_nominated(backend, "urgent", "a")


def test_pods_are_exempt_from_preemption_by_pods_below_the_minimum(backend: Backend, scheduler: Scheduler) -> None:
    annotate(backend, LOW, **{MINIMUM: str(PRIORITIES[MID] + 1), SECONDS: "-1"})
    a_full_node(backend, scheduler)
    backend.create(ranked("middle", MID, cpu="2"))
    none_is_evicted_for(backend, scheduler, "middle")
    backend.create(ranked("urgent", HIGH, cpu="2"))
    until_terminating(backend)
    until_nominated(backend, "urgent", "a")


def test_an_exemption_ends_some_seconds_after_the_pod_was_bound(backend: Backend, scheduler: Scheduler) -> None:
    annotate(backend, LOW, **{MINIMUM: str(PRIORITIES[HIGH] + 1), SECONDS: "3"})
    a_full_node(backend, scheduler)
    backend.create(ranked("urgent", HIGH, cpu="2"))
    (victim,) = until_terminating(backend)
    bound, evicted = (when(condition(victim, each)) for each in ("PodScheduled", "DisruptionTarget"))
    assert (evicted - bound).total_seconds() >= 3


def when(found: Json) -> datetime:
    return datetime.fromisoformat(found["lastTransitionTime"])


def test_the_exemption_holds_after_a_restart(backend: Backend, schedule: Schedule) -> None:
    annotate(backend, LOW, **{YUNIKORN: "false"})
    first = schedule()
    a_full_node(backend, first)
    first.end()
    backend.create(ranked("urgent", HIGH, cpu="2"))
    second = schedule()
    none_is_evicted_for(backend, second, "urgent")
    assert preempted(backend) == []
    backend.patch(f"{PODS}/running", {"metadata": {"annotations": {YUNIKORN: "true"}}})
    until_terminating(backend)


def test_an_invalid_value_is_named_on_the_class(backend: Backend, scheduler: Scheduler) -> None:
    annotate(backend, LOW, **{MINIMUM: "1000", SECONDS: "1h"})

    def probe(events: list[Json]) -> str:
        about = [each for each in events if each["involvedObject"]["kind"] == "PriorityClass"]
        return next((each["message"] for each in about if each["involvedObject"]["name"] == LOW), "")

    found = backend.events.until(probe, "event on the class")
    assert found == (
        f"metadata.annotations[{SECONDS}]: '1h' counts as 0, so that its pods are not exempt from preemption; give a "
        "whole number"
    )
    a_full_node(backend, scheduler)
    backend.create(ranked("middle", MID, cpu="2"))
    until_terminating(backend)
