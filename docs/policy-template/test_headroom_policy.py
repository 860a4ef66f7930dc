import numpy as np
import pytest
from headroom_policy import Headroom

from firmament_py.policy import View
from firmament_py.policy.conformance import check


def test_it_conforms():
    assert check(Headroom()) == []


def test_a_node_below_its_headroom_costs_more():
    view = View(
        resources=("cpu",),
        requests=np.array([[1]]),
        priority=np.array([0]),
        waiting=np.array([1]),
        allocatable=np.array([[10], [10]]),
        free=np.array([[3], [1]]),  # 30 % and 10 % free
        running=np.array([0, 0]),
        slot_offsets=np.array([0, 1, 2]),
        task_class=np.array([0]),
        task_age_us=np.array([0]),
    )
    # with two tasks more the first node is at 10 %: 200 + 10,000 x (0.2 - 0.1); the second is there at once
    assert Headroom(keep=0.2).costs(view).slot.tolist() == [[0, 100, 1200], [1000, 2100, 3200]]


def test_options_have_a_range():
    with pytest.raises(ValueError, match="give a share from 0 to 1"):
        Headroom(keep=7.0)
