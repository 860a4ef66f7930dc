"""Shares by water filling: KAI's cases (resource_division_test), and what defines weighted max-min fairness."""

from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from firmament_py.model.queues import UNLIMITED, Division, Sharing
from firmament_py.queues.past_use import decayed, newness, past_share, usage_score
from firmament_py.queues.shares import fair_shares, guarantees
from firmament_py.queues.tree import build
from tests.effort import examples
from tests.firmament_py.queues.trees import queue, queue_id, quota, tree, trees


def proportional(*queues, **fields):
    return build(tree(*queues, sharing=Sharing.PROPORTIONAL, flavors=["red"], **fields))


def shares(queues, total, requests, past=None):
    """name -> share of one column."""
    request = np.zeros_like(queues.nominal)
    for name, amount in requests.items():
        request[queues.row[queue_id(name)], 0] = amount
    share = fair_shares(queues, np.full(request.shape[1], total), request, past)
    return {queue.name: int(share[row, 0]) for row, queue in enumerate(queues.definitions)}


def siblings(*described):
    """Roots with (deserved, weight, request, limit, priority)."""
    queues = [
        queue(str(number), "", quota(deserved, limit=limit), weight=weight, priority=priority)
        for number, (deserved, weight, _, limit, priority) in enumerate(described, 1)
    ]
    return proportional(*queues), {str(number): request for number, (_, _, request, *_) in enumerate(described, 1)}


def q(deserved, weight, request, limit=None, priority=0):
    return deserved, weight, request, limit, priority


@pytest.mark.parametrize(
    ("total", "described", "expected"),
    [
        pytest.param(2, [q(3, 0, 2)], [2], id="what is requested"),
        pytest.param(3, [q(3, 0, 2)], [2], id="no more than is requested"),
        pytest.param(3, [q(2, 0, 4, limit=2)], [2], id="no more than the limit"),
        pytest.param(1, [q(3, 0, 2)], [2], id="deserved although there is less"),
        pytest.param(7, [q(3, 0, 5)], [3], id="only deserved if the weight is zero"),
        pytest.param(2, [q(0, 0, 2)], [0], id="nothing without deserved and weight"),
        pytest.param(5, [q(3, 1, 5)], [5], id="above deserved"),
        pytest.param(6, [q(3, 1, 5)], [5], id="above deserved, no more than is requested"),
        pytest.param(5, [q(3, 1, 5, limit=4)], [4], id="above deserved, up to the limit"),
        pytest.param(6, [q(0, 1, 5)], [5], id="above a deserved of zero"),
        pytest.param(10, [q(3, 0, 5), q(3, 1, 3)], [3, 3], id="two queues, one without weight"),
        pytest.param(15, [q(2, 2, 6), q(2, 2, 6)], [6, 6], id="more than both request"),
        pytest.param(12, [q(2, 2, 6), q(2, 2, 6)], [6, 6], id="as much as both request"),
        pytest.param(8, [q(2, 1, 6), q(2, 3, 6)], [3, 5], id="the surplus by weight"),
        pytest.param(12, [q(2, 2, 6, limit=5), q(2, 2, 6)], [5, 6], id="a limit, and the rest to the other"),
        pytest.param(11, [q(2, 1, 10), q(2, 4, 10)], [3, 8], id="the last unit to the largest fraction"),
        pytest.param(11, [q(2, 2, 6), q(2, 2, 6)], [6, 5], id="the last unit to the first of equals"),
        pytest.param(4, [q(2, 2, 6, priority=1), q(2, 2, 6, priority=2)], [2, 2], id="deserved whatever the priority"),
        pytest.param(6, [q(2, 2, 6, priority=1), q(2, 2, 6, priority=2)], [2, 4], id="the surplus by priority"),
        pytest.param(6, [q(2, 100, 6, priority=1), q(2, 1, 6, priority=2)], [2, 4], id="priority before weight"),
        pytest.param(
            5,
            [q(2, 2, 5, priority=2), q(2, 2, 5, priority=2), q(1, 2, 0, priority=1)],
            [3, 2, 0],
            id="the last unit among the highest priority",
        ),
        pytest.param(10000, [q(5000, 5000, 10000), q(0, 0, 5000)], [10000, 0], id="nothing is left without weight"),
        pytest.param(10000, [q(5000, 5000, 5000)] * 3, [5000] * 3, id="three queues deserve more than there is"),
        pytest.param(18000, [q(5000, 5000, 6000)] * 3, [6000] * 3, id="three queues above their deserved"),
        pytest.param(
            10000,
            [q(5000, 5000, 7000), q(5000, 5000, 2000), q(5000, 5000, 2000)],
            [6000, 2000, 2000],
            id="what two queues leave of their deserved",
        ),
        pytest.param(
            10000,
            [q(5000, 5000, 7000, limit=7000), q(5000, 5000, 5000), q(5000, 5000, 2000)],
            [5000, 5000, 2000],
            id="nothing above deserved while others use theirs",
        ),
        pytest.param(
            10000,
            [q(5000, 5000, 5000), q(0, 5000, 5000), q(5000, 5000, 5000)],
            [5000, 0, 5000],
            id="no surplus for a queue that deserves nothing",
        ),
        pytest.param(1000, [q(250, 1, 5000), q(150, 2, 5000)], [450, 550], id="250 + 600/3 and 150 + 1200/3"),
        pytest.param(10, [q(1, 1, 8), q(1, 1, 8)], [5, 5], id="even weights"),
        pytest.param(9999, [q(1000, 1, 10000)] * 3, [3333] * 3, id="three even weights"),
        pytest.param(
            9999, [q(0, 6, 10000), q(0, 2, 10000), q(0, 1, 10000)], [6666, 2222, 1111], id="weights 6 : 2 : 1"
        ),
        pytest.param(
            4500, [q(1200, 12, 3255), q(700, 7, 950), q(200, 2, 165, limit=200)], [3255, 950, 165], id="all satisfied"
        ),
        pytest.param(5, [q(2, 2, 3), q(2, 2, 3)], [3, 2], id="one unit for two alike"),
        pytest.param(6, [q(UNLIMITED, 1, 9), q(1, 1, 4)], [6, 1], id="an unlimited deserved is all that there is"),
        pytest.param(6, [q(UNLIMITED, 1, 2), q(1, 1, 4)], [2, 4], id="an unlimited deserved that is not requested"),
    ],
)
def test_kai_fair_share(total, described, expected):
    queues, requests = siblings(*described)
    assert list(shares(queues, total, requests).values()) == expected


def test_a_parents_share_is_divided_among_its_children():
    """Departments a and b share 100 by 3 : 1; b's children need less than b could have."""
    queues = proportional(
        queue("a", "", weight=3.0),
        queue("b", "", weight=1.0),
        queue("a1", "a", quota(10), weight=1.0),
        queue("a2", "a", quota(0), weight=2.0),
        queue("b1", "b", quota(0)),
    )
    assert shares(queues, 100, {"a1": 90, "a2": 90, "b1": 90}) == {"a": 75, "b": 25, "a1": 32, "a2": 43, "b1": 25}
    assert shares(queues, 100, {"a1": 90, "a2": 90, "b1": 5})["a"] == 95


def test_children_of_a_queue_with_an_unlimited_deserved_share_what_there_is_by_weight():
    """8 of 16 that are requested. KAI gives the parent the total (resource_division.go, setDeservedResource)."""
    queues = proportional(
        queue("a", "", quota(UNLIMITED), weight=1.0),
        queue("a1", "a", quota(0), weight=1.0),
        queue("a2", "a", quota(0), weight=3.0),
    )
    assert shares(queues, 8, {"a1": 8, "a2": 8}) == {"a": 8, "a1": 2, "a2": 6}


def test_guarantees_without_bounds_add_up_to_one_without_bounds():
    children = (queue(f"q{number}", "root", quota(UNLIMITED, lending_limit=0)) for number in range(9))
    queues = build(tree(queue("root", "", quota(10)), *children))
    assert guarantees(queues)[:, 0].tolist() == [UNLIMITED] * 10


def test_a_limit_of_a_child_is_a_limit_of_its_parents_demand():
    queues = proportional(queue("a"), queue("b"), queue("a1", "a", quota(limit=10)), queue("b1", "b"))
    assert shares(queues, 100, {"a1": 90, "b1": 90}) == {"a": 10, "b": 90, "a1": 10, "b1": 90}


@pytest.mark.parametrize(
    ("k", "past", "expected"),
    [
        pytest.param(0.0, [0.9, 0.0], [50, 50], id="the past does not count"),
        pytest.param(1.0, [0.5, 0.5], [50, 50], id="equal pasts"),
        # weights 1/2 + 1 (1/2 - 1/4) = 3/4 and 1/2 + 1/2 = 1
        pytest.param(1.0, [0.25, 0.0], [43, 57], id="a quarter of the cluster in the past"),
        pytest.param(1.0, [1.0, 0.0], [0, 100], id="all of the cluster in the past"),
        pytest.param(1.0, [1.0, 1.0], [0, 0], id="a past that leaves no weight"),
    ],
)
def test_usage_in_the_past_reduces_weights(k, past, expected):
    queues = proportional(queue("1", "", quota()), queue("2", "", quota()), usage_weight=k)
    assert list(shares(queues, 100, {"1": 100, "2": 100}, np.array(past)[:, None]).values()) == expected


def test_a_satisfied_queue_leaves_its_part_to_those_with_a_past():
    queues = proportional(queue("1", "", quota()), queue("2", "", quota()), usage_weight=1.0)
    past = np.array([[0.25], [0.0]])
    assert list(shares(queues, 100, {"1": 100, "2": 10}, past).values()) == [90, 10]


def test_volcano_proportion_divides_the_total_by_weight():
    """Weights 1 : 3; the second queue requests less than its part, the third does not use its guarantee of 30."""
    queues = proportional(
        queue("1", "", quota(), weight=1.0),
        queue("2", "", quota(), weight=3.0),
        queue("3", "", quota(30, None, 0), weight=0.0),
        division=Division.TOTAL_BY_WEIGHT,
    )
    assert shares(queues, 100, {"1": 100, "2": 40}) == {"1": 30, "2": 40, "3": 30}
    assert shares(queues, 100, {"1": 100, "2": 100}) == {"1": 18, "2": 52, "3": 30}  # 70/4 = 17.5 and 52.5: 1 first


def test_volcano_capacity_deserves_what_is_stated():
    queues = proportional(queue("1", "", quota(7)), queue("2", "", quota(9, limit=9)), division=Division.AS_STATED)
    assert shares(queues, 100, {}) == {"1": 7, "2": 9}


def test_large_amounts_are_divided_to_the_last_unit():
    total = 2**58 + 5
    queues, requests = siblings(*[q(0, weight, UNLIMITED) for weight in (1, 2, 3, 5, 7)])
    divided = shares(queues, total, requests)
    assert sum(divided.values()) == total
    for weight, share in zip((1, 2, 3, 5, 7), divided.values(), strict=True):
        assert abs(share - total * weight // 18) <= 2**12  # floats have 53 bits


rows = st.tuples(st.integers(0, 40), st.integers(0, 40), st.integers(0, 60), st.sampled_from([0.0, 0.5, 1.0, 2.0, 7.0]))
"""Floor or base, what is added to it as a limit, request, weight."""


@pytest.mark.slow
@examples(150)
@given(st.lists(rows, min_size=1, max_size=7), st.integers(0, 200), st.booleans())
def test_weighted_max_min_up_to_one_unit(described, total, by_surplus):
    """Who could have more has, by weight, no less than those who could have less, but for one unit of rounding."""
    if by_surplus:
        amounts = [quota(n, limit=n + extra) for n, extra, *_ in described]
        floors = [0] * len(described)
        given_before = [min(n, request) for n, _, request, _ in described]
        caps = [min(n + extra, request) - min(n, request) for n, extra, request, _ in described]
    else:
        amounts = [quota(n, None, 0, n + extra) for n, extra, *_ in described]
        floors = [n for n, *_ in described]
        given_before = [0] * len(described)
        caps = [max(n, min(n + extra, request)) for n, extra, request, _ in described]
    weights = [w for *_, w in described]
    queues = [queue(str(i), "", amounts[i], weight=w) for i, w in enumerate(weights)]
    built = proportional(*queues, division=Division.SURPLUS_BY_WEIGHT if by_surplus else Division.TOTAL_BY_WEIGHT)
    divided = shares(built, total, {str(i): request for i, (_, _, request, _) in enumerate(described)})
    gained = [divided[str(i)] - given_before[i] for i in range(len(described))]
    assert all(floor <= x <= cap for floor, x, cap in zip(floors, gained, caps, strict=True))
    could_have = [cap if w else floor for cap, w, floor in zip(caps, weights, floors, strict=True)]
    assert sum(gained) == max(sum(floors), min(max(0, total - sum(given_before)), sum(could_have)))
    for i, w in enumerate(weights):
        for j, v in enumerate(weights):
            if w and v and gained[i] < caps[i] and gained[j] > floors[j]:
                assert Fraction(gained[j] - 1) / Fraction(v) < Fraction(gained[i] + 1) / Fraction(w)
            if not v:
                assert gained[j] == floors[j]


@examples(100)
@given(st.lists(rows, min_size=2, max_size=6), st.integers(0, 200))
def test_a_larger_weight_is_no_loss(described, total):
    requests = {str(i): request for i, (_, _, request, _) in enumerate(described)}

    def share(weight):
        weights = [weight, *(w for *_, w in described[1:])]
        queues = [
            queue(str(i), "", quota(n), weight=w) for i, ((n, *_), w) in enumerate(zip(described, weights, strict=True))
        ]
        return shares(proportional(*queues), total, requests)["0"]

    by_weight = [share(w) for w in (0.0, 0.5, 1.0, 2.0, 7.0)]
    assert all(later >= earlier - 1 for earlier, later in pairwise(by_weight))  # rounding


def kai_surplus(left, caps, weights, past, k):
    """KAI's rounds in fractions, without rounding: what each queue gets of a surplus."""
    share = [Fraction(0)] * len(caps)
    left = Fraction(left)
    while left:
        lacking = [i for i, cap in enumerate(caps) if share[i] < cap]
        total = sum(weights[i] for i in lacking)
        if not total:
            break
        parts = {i: Fraction(weights[i]) / Fraction(total) for i in lacking}
        parts = {i: max(Fraction(0), n + k * (n - past[i])) if n else Fraction(0) for i, n in parts.items()}
        if not sum(parts.values()):
            break
        given = {i: min(caps[i] - share[i], left * n / sum(parts.values())) for i, n in parts.items()}
        satisfied = any(n and given[i] == caps[i] - share[i] for i, n in parts.items())
        left -= sum(given.values())
        share = [share[i] + given.get(i, 0) for i in range(len(caps))]
        if not satisfied:
            break
    return share


@examples(100)
@given(
    st.lists(st.tuples(st.integers(0, 60), st.sampled_from([0, 1, 2, 7]), st.integers(0, 4)), min_size=1, max_size=6),
    st.integers(0, 150),
    st.sampled_from([Fraction(1, 2), Fraction(1), Fraction(3)]),
)
def test_usage_in_the_past_counts_as_kai_counts_it(described, total, k):
    past = [Fraction(quarter, 4) for *_, quarter in described]
    queues = [queue(str(i), "", quota(), weight=float(w)) for i, (_, w, _) in enumerate(described)]
    caps, weights = [cap for cap, *_ in described], [w for _, w, _ in described]
    divided = shares(
        proportional(*queues, usage_weight=float(k)),
        total,
        {str(i): cap for i, cap in enumerate(caps)},
        np.array([[float(p)] for p in past]),
    )
    expected = kai_surplus(total, caps, weights, past if any(past) else [Fraction(0)] * len(past), k)
    assert all(abs(divided[str(i)] - share) < 1 + Fraction(1, 10**6) for i, share in enumerate(expected))
    assert abs(sum(divided.values()) - sum(expected)) <= Fraction(1, 2) + Fraction(1, 10**6)


@examples(40)
@given(trees(limit=True, sharing=Sharing.PROPORTIONAL), st.data())
def test_children_share_what_their_parent_has(described, data):
    queues = build(described)
    total = np.array(data.draw(st.lists(st.integers(0, 90), min_size=4, max_size=4)))[: queues.nominal.shape[1]]
    size = queues.nominal.size
    request = np.array(data.draw(st.lists(st.integers(0, 40), min_size=size, max_size=size)), np.int64)
    request = request.reshape(queues.nominal.shape)
    request[~queues.leaf] = 0
    share = fair_shares(queues, total, request)
    assert (share <= queues.limit).all()
    for row in range(-1, queues.count):
        children = np.nonzero(queues.parent == row)[0]
        if len(children) and queues.nominal.shape[1]:
            divided = total if row < 0 else share[row]
            deserved = np.minimum(queues.nominal[children], share[children]).sum(axis=0)
            assert (share[children].sum(axis=0) <= np.maximum(divided, deserved)).all()


def test_guarantees_of_children_are_their_parents():
    queues = build(
        tree(queue("a", "", quota(2, None, 1)), queue("b", "a", quota(5, None, 0)), queue("c", "a", quota(4, None, 3)))
    )
    assert guarantees(queues)[:, 0].tolist() == [6, 5, 1]


def test_usage_halves_in_a_half_life():
    assert newness(60.0, 60.0) == 0.5
    assert newness(60.0, 0.0) == 0.0
    past = np.array([8.0])
    assert decayed(past, np.array([0]), 120.0, 60.0).tolist() == [2.0]
    assert decayed(past, np.array([4]), 60.0, 60.0).tolist() == [6.0]
    assert decayed(past, np.array([4]), 60.0, 0.0).tolist() == [8.0]


def test_kueue_usage_of_admission_fair_sharing():
    """(1 x 4 + 10 x 0.5) / 2 = 4.5; a weight of 0 comes last, even without any usage."""
    consumed = np.array([[4.0, 0.5], [0.0, 0.0]])
    score = usage_score(consumed, np.zeros((2, 2)), np.array([1.0, 10.0]), np.array([2.0, 0.0]))
    assert score.tolist() == [4.5, np.inf]


def test_past_usage_is_a_part_of_the_capacity_at_each_level():
    queues = proportional(queue("a"), queue("b", "a", quota()), queue("c", "a"))
    past = past_share(queues, np.array([[0.0], [10.0], [15.0]]), np.array([100]))
    assert past[:, 0].tolist() == [0.25, 0.1, 0.15]
    assert past_share(queues, past, np.array([0])).max() == 0.0
