"""Dominant shares: Kueue's cases (fair_sharing_test)."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from firmament_py.model.queues import UNLIMITED, Sharing
from firmament_py.queues.dominant import dominant_shares, lendable
from firmament_py.queues.quota import capacity, counted_usage
from firmament_py.queues.tree import build
from tests.effort import examples
from tests.firmament_py.queues.trees import queue, queue_id, quota, tree, trees


def both(cpu, gpu):
    return quota(cpu, on="default/cpu"), gpu if isinstance(gpu, object) and hasattr(gpu, "flavor") else quota(
        gpu, on="default/gpu"
    )


def shares(queues, usage):
    """name -> (share rounded up as Kueue reports it, dominant resource); queues that borrow nothing are left out."""
    of = capacity(queues)
    own = np.zeros_like(queues.nominal)
    for on, amount in usage.items():
        own[queues.row[queue_id("cq")], queues.column(*on.split("/"))] = amount
    result = dominant_shares(queues, of, counted_usage(queues, of, own))
    return {
        queue.name: (
            result.reported(row) if math.isinf(result.reported(row)) else math.ceil(result.reported(row)),
            queues.resources[result.resource[row]] if result.resource[row] >= 0 else "",
        )
        for row, queue in enumerate(queues.definitions)
        if result.borrowed[row].any()
    }


PAIR = (queue("cohort"), queue("lender", "cohort", *both(8000, 5)))
NO_LOAN = quota(64, None, 0, on="default/gpu")


@pytest.mark.parametrize(
    ("queues", "usage", "expected"),
    [
        pytest.param([queue("cq", "", *both(2000, 5))], {"default/cpu": 9000}, {}, id="no cohort"),
        pytest.param(
            [*PAIR, queue("cq", "cohort", *both(2000, 5))],
            {"default/cpu": 1000, "default/gpu": 2},
            {},
            id="below nominal",
        ),
        pytest.param(
            [*PAIR, queue("cq", "cohort", *both(2000, 5))],
            {"default/cpu": 3000, "default/gpu": 7},
            {"cq": (200, "gpu")},  # (7 - 5) x 1000 / 10
            id="above nominal",
        ),
        pytest.param(
            [queue("cohort"), queue("b", "cohort", *both(0, 1000)), queue("cq", "cohort", *both(0, 500))],
            {"default/gpu": 501},
            {"cq": (1, "gpu")},
            id="slightly above nominal of a large cohort: rounded up",
        ),
        pytest.param(
            [queue("cohort"), queue("b", "cohort", *both(0, 1000)), queue("cq", "cohort", *both(0, 500), weight=300.0)],
            {"default/gpu": 800},
            {"cq": (1, "gpu")},  # 300 x 1000 / 1500 / 300
            id="far above nominal with a large weight",
        ),
        pytest.param(
            [*PAIR, queue("cq", "cohort", *both(2000, 5))],
            {"default/cpu": 3000, "default/gpu": 3},
            {"cq": (100, "cpu")},
            id="one resource above nominal",
        ),
        pytest.param(
            [*PAIR, queue("cq", "cohort", *both(2000, 5))],
            {"default/cpu": 5000, "default/gpu": 6},
            {"cq": (300, "cpu")},  # (1 + 4 - 2) x 1000 / 10
            id="with a task",
        ),
        pytest.param(
            [
                queue("cohort"),
                queue("b", "cohort", *both(8000, NO_LOAN)),
                queue("cq", "cohort", *both(2000, quota(2, None, 0, on="default/gpu"))),
            ],
            {"default/cpu": 5000, "default/gpu": 5},
            {"cq": (300, "cpu")},
            id="a resource that no queue lends",
        ),
        pytest.param(
            [
                queue("cohort"),
                queue("b", "cohort", quota(100, on="default/cpu")),
                queue("cq", "cohort", quota(20, on="on-demand/cpu"), quota(80, on="spot/cpu")),
            ],
            {"on-demand/cpu": 25, "spot/cpu": 5},
            {"cq": (25, "cpu")},  # 5 x 1000 / 200
            id="several flavors",
        ),
        pytest.param(
            [queue("cohort"), queue("b", "cohort", *both(0, 5)), queue("cq", "cohort", *both(0, 5), weight=2.0)],
            {"default/gpu": 7},
            {"cq": (100, "gpu")},
            id="a weight",
        ),
        pytest.param(
            [queue("cohort"), queue("b", "cohort", *both(0, 5)), queue("cq", "cohort", *both(0, 5), weight=0.5)],
            {"default/gpu": 7},
            {"cq": (400, "gpu")},
            id="a weight below one",
        ),
        pytest.param(
            [queue("cohort"), queue("b", "cohort", *both(0, 5)), queue("cq", "cohort", *both(0, 5), weight=0.0)],
            {"default/gpu": 7},
            {"cq": (math.inf, "gpu")},
            id="no weight",
        ),
        pytest.param(
            [
                queue("root", "", quota(45, on="default/gpu")),
                queue("child", "root", weight=2.0),
                queue("cq", "child", quota(5, on="default/gpu")),
            ],
            {"default/gpu": 10},
            {"cq": (100, "gpu"), "child": (50, "gpu")},  # 5 of 50, and half of it
            id="a cohort with a share",
        ),
        pytest.param(
            [
                queue("root", "", quota(50, on="default/gpu")),
                queue("child", "root", weight=2.0),
                queue("cq", "child", quota(0, on="default/gpu")),
            ],
            {"default/gpu": 10},
            {"cq": (200, "gpu"), "child": (100, "gpu")},
            id="quota at the root only",
        ),
        pytest.param(
            [
                queue("root", "", quota(50, on="default/gpu")),
                queue("child", "root", quota(0, 10, on="default/gpu")),
                queue("cq", "child", quota(0, on="default/gpu")),
            ],
            {"default/gpu": 10},
            {"cq": (1000, "gpu"), "child": (200, "gpu")},  # of 10 that the child may borrow, of 50
            id="a borrowing limit reduces what is lendable",
        ),
        pytest.param(
            [
                queue("cohort"),
                queue("b", "cohort", quota(UNLIMITED, on="default/cpu")),
                queue("cq", "cohort", quota(0, on="default/cpu")),
            ],
            {"default/cpu": 1000},
            {"cq": (1, "cpu")},
            id="of an unlimited amount",
        ),
    ],
)
def test_kueue_dominant_share(queues, usage, expected):
    assert shares(build(tree(*queues)), usage) == expected


def test_lendable_capacity_is_the_sum_over_flavors():
    queues = build(tree(queue("c"), queue("a", "c", quota(3, on="red/cpu"), quota(4, None, 1, on="blue/cpu"))))
    assert lendable(queues, capacity(queues)).tolist() == [[4.0], [7.0]]


def test_without_weights_the_ratio_decides():
    """Both borrow without a weight, above one that borrows ten times as much with one."""
    queues = build(
        tree(
            queue("c", "", quota(1000)),
            queue("a", "c", quota(0), weight=0.0),
            queue("b", "c", quota(0), weight=0.0),
            queue("d", "c", quota(0), weight=1e-9),
        )
    )
    of = capacity(queues)
    usage = counted_usage(queues, of, np.array([[0] * 2, [2, 0], [1, 0], [20, 0]])[:, : queues.nominal.shape[1]])
    a, b, d = dominant_shares(queues, of, usage).share[1:]
    assert d < b < a


@examples(60)
@given(trees(sharing=Sharing.FAIR), st.data())
def test_dominant_shares_follow_their_definition(described, data):
    queues = build(described)
    of = capacity(queues)
    size = queues.nominal.size
    own = np.array(data.draw(st.lists(st.integers(0, 40), min_size=size, max_size=size)), np.int64)
    usage = counted_usage(queues, of, own.reshape(queues.nominal.shape))
    result = dominant_shares(queues, of, usage)
    for row in range(queues.count):
        best = 0.0
        for r in range(len(queues.resources)):
            columns = [f * len(queues.resources) + r for f in range(len(queues.flavors))]
            borrowed = sum(max(0, usage[row, v] - of.subtree[row, v]) for v in columns if queues.known[row, v])
            parent = queues.parent[row]
            there = sum(of.potential[parent, v] for v in columns) if parent >= 0 else 0
            if there:
                best = max(best, 1000 * borrowed / there)
        assert result.ratio[row] == pytest.approx(best)
        weight = queues.weight[row]
        assert result.reported(row) == pytest.approx(
            math.inf if best and not weight else best / weight if weight else 0
        )
