"""Pods run near the data that their annotation locates."""

import json
from collections.abc import Callable

from tests.e2e.backends import Backend
from tests.e2e.objects import node, pod
from tests.e2e.processes import Scheduler

Schedule = Callable[..., Scheduler]

DATA = "poseidon.io/data"


def reading(name: str, data: object, **fields: str) -> dict[str, object]:
    text = data if isinstance(data, str) else json.dumps(data)
    return pod(name, metadata={"annotations": {DATA: text}}, **fields)


def test_pods_run_near_their_data(backend: Backend, schedule: Schedule) -> None:
    """n0 and n1 are in a rack. Of three that read from n0 two fit; the third, with the smallest input, runs on n1."""
    racks = {"n0": "r", "n1": "r", "n2": "s"}
    backend.create(*(node(name, cpu="2", labels={"topology.kubernetes.io/rack": rack}) for name, rack in racks.items()))
    backend.create(
        reading("most", [{"bytes": "30Gi", "nodes": ["n0"]}], cpu="1"),
        reading("more", "20Gi@n0 1Gi@n2", cpu="1"),
        reading("least", "10Gi@n0", cpu="1"),
        reading("racked", [{"bytes": "1Gi", "racks": ["s"]}], cpu="1"),
    )
    scheduler = schedule("--policy", "quincy")
    assert backend.until_bound(4) == {"most": "n0", "more": "n0", "least": "n1", "racked": "n2"}
    assert scheduler.metric("scheduler_schedule_attempts_total") == 4


def test_an_invalid_annotation_is_reported_and_the_pod_is_placed(backend: Backend, schedule: Schedule) -> None:
    backend.create(node("n0"))
    schedule("--policy", "quincy")
    backend.create(reading("odd", [{"bytes": "lots", "nodes": ["n0"]}]))
    assert backend.until_bound(1) == {"odd": "n0"}
    message = backend.until_event("InvalidAnnotation", "odd", "[poseidon.io/data][0].bytes: 'lots' is not a quantity")
    assert 'give a size such as "10Gi"' in message["message"]
    assert message["type"] == "Warning"
