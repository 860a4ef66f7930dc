"""Costs outside the contract are refused, with a message that names the policy and the error."""

from dataclasses import replace
from typing import Any, cast

import numpy as np
import pytest

from firmament_py.policy import (
    COST_MAX,
    PRIORITY_STEP,
    WAIT_MAX,
    WAIT_MIN,
    Aggregators,
    AnywherePolicy,
    Costs,
    PolicyError,
    View,
    checked_costs,
    waiting_cost,
)
from tests.builders import SECOND_US


def make_view(*, priority=(3, 1), task_class=(0, 0, 1), age_us=(0, 0, 0), nodes=3) -> View:
    classes = len(priority)
    return View(
        resources=("pods",),
        requests=np.ones((classes, 1), np.int64),
        priority=np.array(priority, np.int64),
        waiting=np.bincount(task_class, minlength=classes),
        allocatable=np.full((nodes, 1), 9, np.int64),
        free=np.full((nodes, 1), 9, np.int64),
        running=np.zeros(nodes, np.int64),
        slot_offsets=np.arange(2, dtype=np.int64),
        task_class=np.array(task_class, np.int64),
        task_age_us=np.array(age_us, np.int64),
    )


VIEW = make_view()
WAIT = np.array([WAIT_MIN + PRIORITY_STEP, WAIT_MIN + PRIORITY_STEP, WAIT_MIN])
GOOD = Costs(place=np.zeros((2, 3), np.int64), slot=np.zeros((3, 2), np.int64), wait=WAIT)

LIMITED = replace(GOOD, soft_limit=np.ones((1, 3), np.int64), soft_limit_cost=np.ones(2, np.int64))


GROUPS = Aggregators(np.array([0, 1, -1]), np.ones((2, 2), np.int64), np.ones(2, np.int64))


class Unspeakable(Exception):
    def __str__(self):
        raise RuntimeError("no words")


class Answering:
    name = "answering"

    def __init__(self, answer):
        self.answer = answer

    def costs(self, view):
        if isinstance(self.answer, BaseException):
            raise self.answer
        return self.answer


def ones(shape, value=1, dtype=np.int64):
    return np.full(shape, value, dtype)


@pytest.mark.parametrize(
    ("answer", "complaint"),
    [
        pytest.param(ZeroDivisionError("ouch"), r"costs\(\) raised ZeroDivisionError: ouch", id="raises"),
        pytest.param(SystemExit(3), r"costs\(\) raised SystemExit: 3", id="exits"),
        pytest.param(Unspeakable(), r"costs\(\) raised Unspeakable, whose message cannot be read", id="unspeakable"),
        pytest.param(None, r"costs\(\) returned NoneType, not Costs", id="returns-nothing"),
        pytest.param((1, 2, 3), r"costs\(\) returned tuple, not Costs", id="returns-a-tuple"),
        pytest.param(replace(GOOD, place=ones((2, 3), np.nan, float)), "place is float64, not an int64", id="nan"),
        pytest.param(replace(GOOD, slot=ones((3, 2), 1, float)), "slot is float64, not an int64", id="float-slot"),
        pytest.param(replace(GOOD, wait=ones(3, 1, np.int32)), "wait is int32, not an int64", id="narrow-wait"),
        pytest.param(replace(GOOD, place=cast(Any, [[0]])), "place is list, not an int64", id="list"),
        pytest.param(replace(GOOD, place=ones((2, 3), -1)), "place leaves the range 0 .. 1000000: -1", id="negative"),
        pytest.param(
            replace(GOOD, place=ones((2, 3), COST_MAX + 1)), "place leaves the range .*: 1000001", id="place-too-dear"
        ),
        pytest.param(replace(GOOD, slot=ones((3, 2), COST_MAX + 1)), "slot leaves the range", id="slot-too-dear"),
        pytest.param(replace(GOOD, slot=ones((3, 2), -1)), "slot leaves the range", id="slot-negative"),
        pytest.param(replace(GOOD, wait=ones(3, WAIT_MIN - 1)), "wait leaves the range", id="wait-too-cheap"),
        pytest.param(replace(GOOD, wait=ones(3, WAIT_MAX + 1)), "wait leaves the range", id="wait-too-dear"),
        pytest.param(
            replace(GOOD, node_limit=ones(3, -1)), "node_limit leaves the range 0 ..", id="node-limit-negative"
        ),
        pytest.param(
            replace(GOOD, node_limit=ones((3, 1))), r"node_limit has shape \(3, 1\), not \(3,\)", id="node-limit-shape"
        ),
        pytest.param(replace(GOOD, place=ones((3, 2))), r"place has shape \(3, 2\), not \(2, 3\)", id="transposed"),
        pytest.param(replace(GOOD, place=ones(3)), r"place has shape \(3,\), not \(2, 3\)", id="flat-place"),
        pytest.param(replace(GOOD, slot=ones((2, 2))), r"slot has shape \(2, 2\), not \(3, 2\)", id="slot-shape"),
        pytest.param(replace(GOOD, wait=ones(2, WAIT_MIN)), r"wait has shape \(2,\), not \(3,\)", id="wait-short"),
        pytest.param(replace(GOOD, wait=ones(1, WAIT_MIN)), r"wait has shape \(1,\)", id="wait-is-not-repeated"),
        pytest.param(replace(GOOD, wait=ones((3, 1), WAIT_MIN)), r"wait has shape \(3, 1\)", id="wait-two-dim"),
        pytest.param(replace(GOOD, slot=np.array([[2, 1]])), "slot falls along K", id="falling-slots"),
        pytest.param(
            replace(GOOD, slot=np.array([[0, 1], [1, 1], [1, 0]])), "slot falls along K", id="falling-on-one-node"
        ),
        pytest.param(
            replace(GOOD, wait=WAIT - [0, 1, 0]),
            "wait lets a lower priority outweigh a higher one; keep them 6000000 apart",
            id="priorities-too-close",
        ),
        pytest.param(replace(GOOD, wait=ones(3, WAIT_MIN)), "wait lets a lower priority", id="priorities-alike"),
        pytest.param(replace(GOOD, wait=WAIT[::-1].copy()), "wait lets a lower priority", id="priorities-reversed"),
        pytest.param(
            replace(GOOD, soft_limit=ones((2, 3))), "soft_limit and soft_limit_cost go together", id="soft-limit-alone"
        ),
        pytest.param(
            replace(GOOD, soft_limit_cost=ones(2)),
            "soft_limit and soft_limit_cost go together",
            id="soft-limit-cost-alone",
        ),
        pytest.param(replace(LIMITED, slot=ones((1, 1)), fill=True), "fill sends a node all it can", id="fill-enough"),
        pytest.param(
            replace(LIMITED, soft_limit=ones((2, 3), -1)), "soft_limit leaves the range 0", id="soft-limit-negative"
        ),
        pytest.param(
            replace(LIMITED, soft_limit=ones((3, 2))), r"soft_limit has shape \(3, 2\)", id="soft-limit-transposed"
        ),
        pytest.param(
            replace(LIMITED, soft_limit_cost=ones(2, COST_MAX + 1)),
            "soft_limit_cost leaves the range",
            id="soft-limit-cost-too-dear",
        ),
        pytest.param(
            replace(LIMITED, soft_limit_cost=ones(3)),
            r"soft_limit_cost has shape \(3,\), not \(2,\)",
            id="soft-limit-cost-shape",
        ),
        pytest.param(
            replace(LIMITED, soft_limit_cost=ones(2, 1.5, float)),
            "soft_limit_cost is float64",
            id="soft-limit-cost-float",
        ),
        pytest.param(
            replace(GOOD, aggregators=cast(Any, "racks")), "aggregators is str, not Aggregators", id="groups-text"
        ),
        pytest.param(
            replace(GOOD, aggregators=replace(GROUPS, of_node=np.array([0, 2, -1]))),
            "aggregators.of_node leaves the range -1 .. 1",
            id="groups-unknown",
        ),
        pytest.param(
            replace(GOOD, aggregators=replace(GROUPS, soft_limit=ones((1, 2)))),
            r"aggregators.soft_limit is not an array of shape \(2, A\)",
            id="groups-not-repeated",
        ),
        pytest.param(
            replace(GOOD, aggregators=replace(GROUPS, soft_limit=ones((2, 2), -1))),
            "aggregators.soft_limit leaves the range 0",
            id="groups-negative",
        ),
        pytest.param(
            replace(GOOD, aggregators=replace(GROUPS, cost=ones(2, COST_MAX + 1))),
            "aggregators.cost leaves the range",
            id="groups-too-dear",
        ),
        pytest.param(replace(GOOD, delay=ones(2)), r"delay has shape \(2,\), not \(3,\)", id="delay-shape"),
        pytest.param(replace(GOOD, fill=cast(Any, ones(3, 1, bool))), "fill is ndarray, not bool", id="fill-by-node"),
        pytest.param(replace(GOOD, stage=ones(3)), r"stage has shape \(3,\), not \(2,\)", id="stage-shape"),
        pytest.param(replace(GOOD, stage=ones(2, -1)), "stage leaves the range 0", id="stage-negative"),
    ],
)
def test_a_breach_of_the_contract_is_named(answer, complaint):
    with pytest.raises(PolicyError, match=f"policy answering: {complaint}"):
        checked_costs(Answering(answer), VIEW)


@pytest.mark.parametrize(
    "costs",
    [
        pytest.param(GOOD, id="full"),
        pytest.param(replace(LIMITED, stage=np.arange(2)), id="soft-limit-and-stage"),
        pytest.param(replace(GOOD, place=ones((1, 1)), slot=ones((1, 1))), id="one-of-each"),
        pytest.param(replace(GOOD, place=ones((2, 1)), slot=ones((1, 2))), id="columns-and-rows"),
        pytest.param(replace(GOOD, place=ones((1, 3), COST_MAX), slot=ones((3, 1), COST_MAX)), id="dearest"),
        pytest.param(replace(GOOD, wait=WAIT - WAIT_MIN - PRIORITY_STEP + WAIT_MAX), id="dearest-wait"),
        pytest.param(replace(GOOD, wait=np.array([WAIT_MAX, 2 * WAIT_MIN, WAIT_MIN])), id="ages-far-apart"),
    ],
)
def test_costs_that_keep_the_contract_pass(costs):
    assert checked_costs(Answering(costs), VIEW) is costs


def test_an_empty_view_has_empty_costs():
    view = make_view(priority=(), task_class=(), age_us=(), nodes=0)
    assert checked_costs(AnywherePolicy(), view).wait.shape == (0,)


def test_waiting_costs_more_than_any_placement():
    # place and slot, and what preferences and wishes of domains may add: each at most 2 * COST_MAX more
    assert WAIT_MIN >= 6 * COST_MAX
    assert PRIORITY_STEP >= 6 * COST_MAX


@pytest.mark.parametrize(
    ("priority", "age_seconds", "cost"),
    [
        # WAIT_MIN + rank * 12,000,000 + floor(log2(age + 1)) * 50,000, and 250,000 for each from the tenth to the 19th
        pytest.param((5, 5, 5), (0, 0, 0), (0, 0, 0), id="alike"),
        pytest.param((9, 7, -3), (0, 0, 0), (24_000_000, 12_000_000, 0), id="priorities-count-by-rank"),
        pytest.param((5, 5, 5), (0, 1, 3), (0, 50_000, 100_000), id="doublings"),
        pytest.param((5, 5, 5), (2, 6, 7), (50_000, 100_000, 150_000), id="between-doublings"),
        pytest.param((5, 5, 5), (2**9, 2**11, 2**19), (450_000, 1_050_000, 3_450_000), id="from-minutes-on"),
        pytest.param((2, 1, 1), (0, 2**40, 0), (12_000_000, 4_500_000, 0), id="a-priority-outweighs-35,000-years"),
    ],
)
def test_waiting_cost(priority, age_seconds, cost):
    ages = [s * SECOND_US for s in age_seconds]
    view = make_view(priority=priority, task_class=(0, 1, 2), age_us=ages)
    assert (waiting_cost(view) - WAIT_MIN).tolist() == list(cost)


def test_age_never_outweighs_priority():
    view = make_view(priority=(2, 1), task_class=(0, 1), age_us=(0, 2**63 - 1))
    first, second = waiting_cost(view).tolist()
    assert first - second >= PRIORITY_STEP


@pytest.mark.parametrize(("dearer", "hours"), [(COST_MAX, 2), (2 * COST_MAX, 24), (3 * COST_MAX, 7 * 24)])
def test_a_costly_task_finally_goes_before_a_stream_of_new_ones(dearer, hours):
    """Against tasks of age one minute; `place`, `slot` and `data` add up to three times COST_MAX at most."""
    view = make_view(priority=(1,), task_class=(0, 0), age_us=(hours * 3600 * SECOND_US, 60 * SECOND_US))
    old, fresh = waiting_cost(view).tolist()
    assert old - fresh > dearer


def test_tasks_of_one_burst_cost_the_same():
    view = make_view(priority=(1,), task_class=(0, 0), age_us=(5 * SECOND_US, 5 * SECOND_US + 999_999))
    assert len(set(waiting_cost(view).tolist())) == 1


def test_array_lookalikes_are_refused():
    with pytest.raises(PolicyError, match="place is"):
        checked_costs(Answering(replace(GOOD, place=np.ma.masked_array(GOOD.place))), VIEW)
