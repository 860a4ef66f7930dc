"""The claim of a pod's extended resources has as many devices as kube-scheduler counts for the pod."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from poseidon_py.describe.requests import requests
from poseidon_py.devices.objects import DeviceClass
from poseidon_py.devices.pod_needs import extended_requests
from poseidon_py.kube.objects import Metadata
from poseidon_py.state.devices.extended import extended_claim
from tests.effort import examples
from tests.poseidon_py.builders import pod

GPU = "example.com/gpu"


def container(name, amount, **fields):
    amounts = {GPU: str(amount)} if amount else {}
    return {"name": name, "resources": {"requests": amounts, "limits": amounts}, **fields}


def claim_of(initial, regular):
    """`initial`: amount, and whether the container is a sidecar."""
    init = [
        container(f"i{n}", amount, **({"restartPolicy": "Always"} if runs_on else {}))
        for n, (amount, runs_on) in enumerate(initial)
    ]
    item = pod(
        "p", spec={"initContainers": init, "containers": [container(f"c{n}", each) for n, each in enumerate(regular)]}
    )
    serving = {GPU: DeviceClass(Metadata(name="gpu"))}.get
    return item, extended_claim(extended_requests(item), serving)


@given(
    st.lists(st.tuples(st.integers(0, 3), st.booleans()), max_size=4),
    st.lists(st.integers(0, 3), min_size=1, max_size=3),
)
@examples(100)
def test_the_devices_are_as_many_as_the_pod_requests(initial, regular):
    item, found = claim_of(initial, regular)
    assert sum(each.alternatives[0].number for each in found.requests) == requests(item).get(GPU, 0)


@pytest.mark.parametrize(
    ("initial", "regular", "mappings"),
    [
        ([], [1, 2], {("c0", "container-0-request-0"), ("c1", "container-1-request-0")}),
        ([(1, False)], [2], {("i0", "container-1-request-0"), ("c0", "container-1-request-0")}),
        (
            [(3, False)],
            [2],
            {("i0", "container-1-request-0"), ("i0", "container-0-request-0"), ("c0", "container-1-request-0")},
        ),
        ([(1, True), (1, False)], [0], {("i0", "container-0-request-0"), ("i1", "container-1-request-0")}),
        ([(1, False), (1, True)], [0], {("i0", "container-1-request-0"), ("i1", "container-1-request-0")}),
    ],
)
def test_who_uses_which_request(initial, regular, mappings):
    """Init containers end before regular ones start, and before sidecars that come later."""
    _, found = claim_of(initial, regular)
    assert {(each.container, each.request) for each in found.mappings} == mappings
