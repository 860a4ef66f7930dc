"""The resources that are devices, the nodes on which they are wasted, and the used shares of nodes."""

import numpy as np
import pytest

from policies.scarcity import devices, used, wasted
from tests.policies.rig import make_view

RESOURCES = ("pods", "cpu", "gpu")


def view(*nodes, requests=((1, 1, 0), (1, 1, 1)), free=None):
    return make_view(resources=RESOURCES, requests=requests, allocatable=nodes, free=free)


@pytest.mark.parametrize(
    ("nodes", "found"),
    [
        pytest.param([(9, 8, 4), (9, 8, 0)], [False, False, True], id="some-have-it"),
        pytest.param([(9, 8, 4), (9, 8, 1)], [False, False, False], id="all-have-it"),
        pytest.param([(9, 8, 0), (9, 8, 0)], [False, False, False], id="none-has-it"),
        pytest.param([(9, 8, 0), (9, 0, 0)], [False, False, False], id="a-node-without-cpu-makes-cpu-no-device"),
        pytest.param([], [False, False, False], id="no-nodes"),
    ],
)
def test_devices_are_resources_that_some_nodes_lack(nodes, found):
    assert devices(view(*nodes)).tolist() == found


def test_devices_are_wasted_on_tasks_that_request_none():
    found = wasted(view((9, 8, 4), (9, 8, 0)))
    assert found is not None
    assert found.tolist() == [[True, False], [False, False]]


def test_nothing_is_wasted_without_devices_or_if_all_request_them():
    assert wasted(view((9, 8, 0), (9, 8, 0))) is None
    assert wasted(view((9, 8, 4), (9, 8, 0), requests=[(1, 1, 1)])) is None


def test_the_used_share_is_that_of_the_scarcest():
    full = view((10, 8, 4), (10, 8, 0), (0, 0, 0), (10, 8, 0), free=[(9, 4, 3), (9, 7, -1), (-1, -1, 0), (10, -8, 0)])
    assert used(full).tolist() == [0.5, 0.125, 0.0, 1.0]
    assert used(full, np.array([False, False, True])).tolist() == [0.25, 0.0, 0.0, 0.0]
    assert used(full, np.zeros(3, np.bool_)).tolist() == [0.0] * 4
