"""Without ranks only jobs that compete are put in order: all that is admitted, and why the rest is not, is the same."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from firmament_py.model.queues import BorrowWithin, Division, Fungibility, ReclaimRules, Sharing
from firmament_py.queues.admission import Reason, admit
from firmament_py.queues.quota import capacity
from firmament_py.queues.shares import fair_shares
from firmament_py.queues.tree import build
from tests.effort import examples
from tests.firmament_py.queues.admitting import LANES, arrays, job
from tests.firmament_py.queues.trees import FLAVORS, RESOURCES, queue, queue_id, quota, tree, trees


def both(described, jobs, own=None, total=1000, firm=None, score=None):
    """What is admitted with ranks and without."""
    queues = build(described, RESOURCES)
    own = np.zeros_like(queues.nominal) if own is None else own
    waiting, totals = arrays(queues, jobs), np.full(queues.nominal.shape[1], total)
    request = own.copy()
    for row, amounts in zip(waiting.queue, waiting.request * waiting.count[:, None], strict=True):
        request[row] += np.tile(amounts, len(queues.flavors))
    arguments = queues, capacity(queues), own, waiting, totals, fair_shares(queues, totals, request), firm, score
    return [admit(*arguments, ranked=ranked) for ranked in (True, False)]


def amounts_of(result):
    """(job, flavors) -> items that are admitted on them."""
    found: dict[tuple[int, ...], int] = {}
    portions = result.portions
    for j, flavor, items in zip(portions.job, portions.flavor, portions.items, strict=True):
        key = int(j), *flavor.tolist()
        found[key] = found.get(key, 0) + int(items)
    return found


def same(ranked, unranked):
    assert ranked.ranked
    assert amounts_of(ranked) == amounts_of(unranked)
    for name in ("admitted", "flavor", "claimed", "reason", "column", "amount", "bottleneck"):
        assert getattr(ranked, name).tolist() == getattr(unranked, name).tolist(), name
    refused = ranked.admitted == 0
    assert ranked.rank[refused].tolist() == unranked.rank[refused].tolist()


LIMITED = (
    queue("root", "", quota(100)),
    queue("x", "root", quota(limit=10)),
    queue("a", "x", quota(5)),
    queue("b", "x", quota(5)),
    queue("y", "root"),
    queue("c", "y", quota(5)),
    queue("d", "y", quota(5, limit=3)),
)


@pytest.mark.parametrize("sharing", Sharing)
def test_only_queues_below_a_limit_that_binds_are_put_in_order(sharing):
    """a and b share a limit of 10, d has one of 3; what waits in c fits whatever they get."""
    jobs = [
        job(name, 1, count=count, created=i) for i, (name, count) in enumerate(zip("abcd", (8, 8, 40, 2), strict=True))
    ]
    queues = [replace(each, weight=2.0) if each.name == "a" else each for each in LIMITED]
    ranked, unranked = both(tree(*queues, sharing=sharing, flavors=["red"]), jobs)
    same(ranked, unranked)
    assert not unranked.ranked
    assert unranked.admitted[:2].sum() == 10
    assert unranked.admitted[2:].tolist() == [40, 2]
    portions = np.bincount(unranked.portions.job, minlength=4)
    assert portions[2:].tolist() == [1, 1]  # at once
    assert Reason(unranked.reason[0]) is Reason.LACKING


@pytest.mark.parametrize(
    ("described", "jobs", "total"),
    [
        pytest.param(tree(*LIMITED, flavors=["red"]), [job("a", 1, count=11)], 1000, id="a limit"),
        pytest.param(tree(queue("a", "", quota(5))), [job("a", 1, count=6)], 1000, id="quota"),
        pytest.param(
            tree(queue("a"), sharing=Sharing.PROPORTIONAL, flavors=["red"]), [job("a", 1, count=6)], 5, id="capacity"
        ),
        pytest.param(
            tree(queue("a", "", quota(5)), sharing=Sharing.PROPORTIONAL, reclaim_rules=ReclaimRules.FAIR_SHARE),
            [job("a", 1, count=6, preemptible=False)],
            1000,
            id="the nominal amount of jobs that cannot be preempted",
        ),
        pytest.param(
            tree(queue("a", "", quota(50), quota(50, on="blue/cpu"), fungibility=Fungibility(True))),
            [job("a", 1)],
            1000,
            id="flavors that depend on what others borrow",
        ),
    ],
)
def test_where_all_jobs_compete_they_have_ranks(described, jobs, total):
    ranked, unranked = both(described, jobs, total=total)
    assert unranked.ranked
    assert unranked.rank.tolist() == ranked.rank.tolist()
    assert unranked.portions.rank.tolist() == ranked.portions.rank.tolist()
    same(ranked, unranked)


def under(*queues):
    """q and s below p, which has 6 of red below a root that has more."""
    root, p = queue("root", "", quota(9000), quota(9000, on="blue/cpu")), queue("p", "root", quota(6))
    return tree(root, p, *queues)


BOTH_FLAVORS = quota(0, on="blue/cpu", limit=4), quota(0, limit=4)
TAKES_RED = queue("s", "p", quota(0))
OF_LANES = [job("q", 1, count=600, lane=lane, charge=1.0) for lane in range(2)]


@pytest.mark.parametrize(
    ("described", "jobs", "own", "expected"),
    [
        pytest.param(
            under(queue("q", "p", *BOTH_FLAVORS, fungibility=Fungibility(True)), TAKES_RED),
            [job("q", 1), job("s", 1, count=6, created=1)],
            0,
            lambda found: found.flavor[0].tolist() == [0, -1],
            id="borrows from the nearest ancestor on red, as long as that has some",
        ),
        pytest.param(
            under(queue("q", "p", *BOTH_FLAVORS, borrow_within=BorrowWithin(True)), TAKES_RED),
            [job("q", 2, own={"red/cpu": 3, "blue/cpu": 3}), job("s", 1, count=4, created=1)],
            3,
            lambda found: found.claimed[0].tolist() == [0, -1],
            id="preempts where it borrows from the nearest ancestor",
        ),
        pytest.param(
            under(queue("q", "p", quota(0, limit=3)), TAKES_RED),
            [*OF_LANES, job("s", 1, count=5, created=1)],
            0,
            lambda found: found.admitted.tolist() == [2, 1, 5],
            id="portions of lanes end where more is borrowed",
        ),
        pytest.param(
            under(queue("q", "p", quota(0), strict_fifo=True), TAKES_RED),
            [job("q", 1, count=4, charge=1.0), job("q", 1, created=1, lane=1, flavors=[])],
            0,
            lambda found: found.admitted.tolist() == [1, 0],
            id="a job that nothing fits stops the other lane",
        ),
    ],
)
def test_where_the_order_decides_on_flavors_or_between_lanes_all_below_the_root_compete(described, jobs, own, expected):
    """What q gets depends on what s has taken, although s takes nothing that q could lack."""
    queues = build(described, RESOURCES)
    used = np.zeros_like(queues.nominal)
    for flavor in ("red", "blue") if own else ():
        used[queues.row[queue_id("q")], queues.column(flavor, "cpu")] = own
    ranked, unranked = both(described, jobs, used)
    same(ranked, unranked)
    assert expected(ranked)


def test_a_queue_with_lanes_that_competes_does_not_put_other_trees_in_order():
    described = tree(queue("a", "", quota(3)), queue("b", "", quota(10)))
    jobs = [*(each | {"queue": queue_id("a")} for each in OF_LANES), job("b", 1, count=9)]
    ranked, unranked = both(described, jobs)
    same(ranked, unranked)
    assert not unranked.ranked
    assert unranked.admitted.tolist() == [2, 1, 9]


def test_lanes_that_do_not_compete_alternate_in_the_order_of_ranks():
    jobs = [job("a", 1, count=4, lane=lane, created=lane, charge=1.0) for lane in range(2)]
    ranked, unranked = both(tree(queue("a", "", quota(9))), jobs)
    same(ranked, unranked)
    assert not unranked.ranked
    assert ranked.portions.job.tolist() == [0, 1] * 4


@st.composite
def worlds(draw, sharing):
    """A tree with or without limits, jobs of its leaves, and what runs."""
    described = draw(trees(limit=draw(st.booleans())))
    flags = [draw(st.tuples(*[st.booleans()] * 4)) for _ in described.queues]
    queues = tuple(
        replace(each, strict_fifo=strict, fungibility=Fungibility(*choice), unlimited=False)
        for each, (strict, *choice) in zip(described.queues, flags, strict=True)
    )
    fields = {}
    if sharing is Sharing.PROPORTIONAL:
        fields["division"] = draw(st.sampled_from([Division.SURPLUS_BY_WEIGHT, Division.TOTAL_BY_WEIGHT]))
        fields["reclaim_rules"] = draw(st.sampled_from([ReclaimRules.FAIR_SHARE, ReclaimRules.DESERVED]))
    described = replace(described, queues=queues, sharing=sharing, **fields)
    parents = {each.parent for each in queues}
    leaves = [each.name for each in queues if each.id not in parents]
    amounts, lanes = st.integers(0, 6), draw(st.sampled_from([1, 3]))
    columns = [f"{flavor}/{resource}" for flavor in FLAVORS for resource in RESOURCES]
    victims = st.dictionaries(st.sampled_from(columns), st.integers(0, 20))
    one = st.builds(
        job,
        st.sampled_from(leaves),
        amounts,
        amounts,
        count=st.sampled_from([1, 2, 3, 4, 5, 600]) if lanes > 1 else st.integers(1, 5),
        priority=st.integers(0, 2),
        created=st.integers(0, 3),
        flavors=st.sampled_from([None, ["red"], ["blue"]]),
        preemptible=st.booleans(),
        lane=st.integers(0, lanes - 1),
        charge=st.sampled_from([0.0, 0.5, 1.0]),
        own=victims,
        others=victims,
    )
    jobs = draw(st.lists(one, min_size=1, max_size=10))
    used = draw(st.lists(st.integers(0, 8), min_size=len(queues), max_size=len(queues)))
    scores = draw(
        st.lists(st.sampled_from([0.0, 0.5, 2.0]), min_size=LANES * len(queues), max_size=LANES * len(queues))
    )
    return described, jobs, used, draw(st.sampled_from([20, 60, 1000])), np.array(scores)


def world(data, sharing):
    """Arguments of `both`."""
    described, jobs, used, total, score = data.draw(worlds(sharing))
    queues = build(described, RESOURCES)
    own = np.zeros_like(queues.nominal)
    own[queues.leaf] = np.array(used)[queues.leaf, None]
    return described, jobs, own, total, own // 2, score


@examples(100)
@pytest.mark.parametrize("sharing", Sharing)
@given(st.data())
def test_what_is_admitted_does_not_depend_on_the_order_of_those_that_do_not_compete(sharing, data):
    same(*both(*world(data, sharing)))


@examples(80)
@pytest.mark.parametrize("sharing", Sharing)
@given(st.data())
def test_the_order_is_the_same_if_no_check_is_left_out(sharing, data):
    """As if all queues competed."""
    drawn = world(data, sharing)
    ranked = both(*drawn)[0]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("firmament_py.queues.admission.contested", lambda queues, *_: np.ones(queues.count, np.bool_))
        checked = both(*drawn)[0]
    same(checked, ranked)
    assert checked.rank.tolist() == ranked.rank.tolist()
    for name in ("job", "items", "rank", "flavor"):
        assert getattr(checked.portions, name).tolist() == getattr(ranked.portions, name).tolist(), name
