"""The arithmetic of octopus."""

import pytest

from policies.octopus import Octopus
from tests.policies.rig import make_view


@pytest.mark.parametrize(
    ("running", "milli", "offsets", "costs"),
    [
        # the example of the module
        pytest.param(0, 4000, range(5), [0, 1, 2, 3, 100], id="idle"),
        pytest.param(1, 4000, range(4), [101, 102, 103, 200], id="one-running"),
        # 5 = 1 x 4 + 1: 500 + 100 + 1
        pytest.param(5, 4000, (0, 2, 3), [601, 603, 700], id="second-turn"),
        pytest.param(2, 500, (0, 1), [400, 500], id="less-than-a-core-is-one"),
        pytest.param(0, 0, (0, 1), [0, 100], id="no-cpu-at-all"),
        # core 127 has no cost of its own, so that costs do not fall when the second turn begins
        pytest.param(0, 128_000, (98, 99, 127, 128), [98, 99, 99, 100], id="many-cores"),
        pytest.param(100_000, 4000, (0,), [1_000_000], id="cut-at-the-dearest"),
    ],
)
def test_slot_costs(running, milli, offsets, costs):
    view = make_view(allocatable=[[110, milli]], running=[running], offsets=offsets)
    assert Octopus().costs(view).slot.tolist() == [costs]


def test_without_a_resource_named_cpu_a_machine_has_one_core():
    view = make_view(resources=("pods", "slots"), allocatable=[[110, 9]], running=[1])
    assert Octopus().costs(view).slot.tolist() == [[200, 300, 400]]
