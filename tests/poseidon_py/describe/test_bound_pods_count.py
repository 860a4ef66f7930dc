"""What is refused concerns pods that wait: what runs is counted in full."""

import pytest

from poseidon_py.feed.update_rows import describe_pod, target
from poseidon_py.state.store import Store
from tests.poseidon_py.builders import pod

AFFINITY = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": ""}]}}
SPREAD = [{"topologyKey": "", "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule"}]
REFUSED = [
    pytest.param({"labels": {"kai.scheduler/node-pool": ""}}, id="pool"),
    pytest.param({"annotations": {"volcano.sh/jdb-min-available": "1"}}, id="disruption"),
    pytest.param({"annotations": {"volcano.sh/vgpu-mode": "mig"}}, id="shared-gpu"),
    pytest.param({"spec": {"affinity": AFFINITY}}, id="affinity"),
    pytest.param({"spec": {"topologySpreadConstraints": SPREAD}}, id="spread"),
    pytest.param({"spec": {"tolerations": [{"key": "a", "operator": "Like"}]}}, id="toleration"),
]


def described(node, fields):
    store = Store(["poseidon"])
    store.observe_pod(pod("p", node=node, cpu="2", **fields))
    known = store.pods["uid-p"]
    describe_pod(store, known)
    return store, known


@pytest.mark.parametrize("fields", REFUSED)
def test_a_pod_that_runs_counts_in_full_and_one_that_waits_is_refused(fields):
    store, known = described("n", fields)
    plain_store, plain = described("n", {})
    state, expected = target(store, known), target(plain_store, plain)
    assert state is not None
    assert expected is not None
    assert store.classes.get(state.class_id).requests == plain_store.classes.get(expected.class_id).requests
    store, known = described("", fields)
    assert target(store, known) is None
    assert known.described.problem


def test_a_bound_pod_whose_requests_cannot_be_read_takes_a_slot():
    container = {"name": "c", "resources": {"requests": {"cpu": "many"}}}
    store, known = described("n", {"spec": {"containers": [container]}})
    state = target(store, known)
    assert state is not None
    assert dict(store.classes.get(state.class_id).requests) == {"pods": 1}
