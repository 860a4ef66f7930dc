"""Pods of services and controllers are spread over zones, although the nodes of the zones are unequal in number."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

from tests.e2e.api import Json
from tests.e2e.backends import Backend
from tests.e2e.conftest import SYNTHETIC
from tests.e2e.objects import container, node, pod
from tests.e2e.processes import Scheduler

Schedule = Callable[..., Scheduler]

ZONE = "topology.kubernetes.io/zone"
LABELS = {"app": "web"}
ZONES = {"a1": "a", "a2": "a", "b1": "b"}
EVEN_OVER_NODES = {"a": 4, "b": 2}
"""Of six pods that only the load-spreading policy spreads, two to a node."""


def nodes() -> list[Json]:
    return [node(name, labels={ZONE: zone}) for name, zone in ZONES.items()]


def service() -> Json:
    spec = {"selector": LABELS, "ports": [{"port": 80}]}
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"}, "spec": spec}


def pods(count: int, **spec: Any) -> list[Json]:
    return [pod(f"p{at}", metadata={"labels": LABELS}, **spec) for at in range(count)]


def by_zone(where: Mapping[str, str]) -> Counter[str]:
    return Counter(ZONES[name] for name in where.values())


def test_pods_of_a_service_are_spread_over_zones(backend: Backend, schedule: Schedule) -> None:
    backend.create(service(), *nodes(), *pods(7))
    schedule()
    assert sorted(by_zone(backend.until_bound(7)).values()) == [3, 4]


def test_pods_that_arrive_one_after_the_other_are_spread_likewise(backend: Backend, schedule: Schedule) -> None:
    backend.create(service(), *nodes())
    schedule()
    for count, item in enumerate(pods(7), 1):
        backend.create(item)
        zones = by_zone(backend.until_bound(count))
        assert max(zones.values()) - min(zones["a"], zones["b"]) <= 1


@SYNTHETIC
def test_pods_of_a_replication_controller_are_spread_over_zones(backend: Backend, schedule: Schedule) -> None:
    template = {"metadata": {"labels": LABELS}, "spec": {"schedulerName": "poseidon", "containers": [container()]}}
    spec = {"replicas": 7, "selector": LABELS, "template": template}
    backend.create(*nodes())
    schedule()
    about = {"apiVersion": "v1", "kind": "ReplicationController", "metadata": {"name": "web"}}
    backend.create(about | {"spec": spec})
    assert sorted(by_zone(backend.until_bound(7, "web-")).values()) == [3, 4]


def test_pods_of_no_service_and_no_controller_are_not(backend: Backend, schedule: Schedule) -> None:
    other = service()
    other["spec"]["selector"] = LABELS | {"tier": "front"}
    backend.create(other, *nodes(), *pods(6))
    schedule()
    assert by_zone(backend.until_bound(6)) == EVEN_OVER_NODES


def test_pods_with_constraints_of_their_own_are_not(backend: Backend, schedule: Schedule) -> None:
    selector = {"labelSelector": {"matchLabels": LABELS}}
    own = {"maxSkew": 1, "topologyKey": "kubernetes.io/hostname", "whenUnsatisfiable": "ScheduleAnyway", **selector}
    backend.create(service(), *nodes(), *pods(6, topologySpreadConstraints=[own]))
    schedule()
    assert by_zone(backend.until_bound(6)) == EVEN_OVER_NODES


def test_default_spreading_can_be_turned_off(backend: Backend, schedule: Schedule) -> None:
    backend.create(service(), *nodes(), *pods(6))
    schedule("--default-spreading", "none")
    assert by_zone(backend.until_bound(6)) == EVEN_OVER_NODES


def test_a_policy_that_packs_pods_does_not_spread_them(backend: Backend, schedule: Schedule) -> None:
    backend.create(service(), *nodes(), *pods(6))
    schedule("--policy", "bin-packing")
    assert len(set(backend.until_bound(6).values())) == 1
