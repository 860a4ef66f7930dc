"""Priorities as other queues see them: the order of admission, and victims (YuniKorn's fences and offsets).

Queues are "name parent policy offset", the policy being - or fence; jobs and tasks "queue priority".
"""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from firmament_py.model.queues import ReclaimRules, Sharing
from firmament_py.queues.admission import Jobs, admit
from firmament_py.queues.permissions import permissions
from firmament_py.queues.priorities import seen_outside
from firmament_py.queues.quota import capacity
from firmament_py.queues.shares import fair_shares
from firmament_py.queues.tree import build
from tests.firmament_py.queues.scene import Scene
from tests.firmament_py.queues.trees import queue, queue_id, quota, tree


def queues_of(described, of_root=100, nominal=0):
    """Children of the queue root, which has this limit, and below them."""
    made = [queue("root", "", quota(0, limit=of_root))]
    for name, parent, policy, offset in (entry.split() for entry in described):
        fields = {"priority_offset": int(offset), "priority_fence": policy == "fence"}
        made.append(queue(name, parent, quota(nominal), unlimited=True, **fields))
    rules = {"sharing": Sharing.PROPORTIONAL, "reclaim_rules": ReclaimRules.GUARANTEE, "priority_first": True}
    return tree(*made, flavors=["red"], **rules)


def order_of(described, jobs, fits):
    """The numbers of jobs in the order of their admission, if so many of one cpu fit."""
    queues = build(queues_of(described, fits))
    count = len(jobs)
    split = [job.split() for job in jobs]
    row = np.array([queues.row[queue_id(name)] for name, _ in split], np.int64)
    request, total = np.ones((count, 1), np.int64), np.array([1000])
    waiting = Jobs(
        queue=row,
        request=request,
        count=np.ones(count, np.int64),
        priority=np.array([int(priority) for _, priority in split], np.int64),
        created_us=np.arange(count),
        suitable=np.ones((count, 1), np.bool_),
        preemptible=np.ones(count, np.bool_),
    )
    usage, demand = np.zeros_like(queues.nominal), np.zeros_like(queues.nominal)
    np.add.at(demand, row, request)
    found = admit(queues, capacity(queues), usage, waiting, total, fair_shares(queues, total, demand))
    return found.portions.job.tolist()


FLAT = ["a root - 0", "b root - 0"]
FENCED = ["f root fence 5", "a f - 0", "b f - 0", "c root - 0"]


@pytest.mark.parametrize(
    ("queues", "jobs", "expected"),
    [
        pytest.param(FLAT, ["a 1", "b 9", "a 5", "b 3"], [1, 2, 3, 0], id="by-priority-whatever-the-shares"),
        pytest.param(["a root - 10", "b root - 0"], ["b 9", "a 0", "b 11"], [2, 1, 0], id="an-offset-is-added"),
        pytest.param(["a root - -10", "b root - 0"], ["a 9", "b 0"], [1, 0], id="an-offset-below-0"),
        pytest.param(
            ["p root - 10", "a p - 10", "b root - 0"], ["b 15", "b 21", "a 0"], [1, 2, 0], id="offsets-of-levels-add-up"
        ),
        pytest.param(FENCED, ["c 4", "c 6", "a 900", "b -900"], [1, 2, 3, 0], id="outside-a-fence-its-offset-counts"),
        pytest.param(FENCED, ["a 1", "b 2", "a 3", "b 4"], [3, 2, 1, 0], id="below-a-fence-priorities-count"),
        pytest.param(
            ["f root - 0", "a f fence 3", "b f - 0"], ["a 9", "b 4", "a 1", "b 2"], [1, 0, 2, 3], id="a-fenced-leaf"
        ),
        pytest.param(["a root fence 3"], ["a 1", "a 2", "a 3"], [2, 1, 0], id="own-priorities-order-a-fenced-leaf"),
        pytest.param(
            ["f root fence 5", "g f fence 9", "a g - 0", "b f - 8", "c root - 6"],
            ["c 0", "b 0", "a 0", "b 2"],
            [0, 3, 2, 1],
            id="a-fence-below-a-fence",
        ),
    ],
)
def test_order_of_admission(queues, jobs, expected):
    assert order_of(queues, jobs, len(jobs) - 1) == expected[:-1]


@st.composite
def described_trees(draw):
    """Random queues, by name their parent, policy and offset; leaves are those that are no parent."""
    count = draw(st.integers(2, 7))
    found: dict[str, tuple[str, bool, int]] = {}
    for number in range(count):
        parent = draw(st.sampled_from(["root", *found]))
        found[f"q{number}"] = (parent, draw(st.booleans()), draw(st.integers(-3, 3)))
    leaves = [name for name in found if name not in {parent for parent, *_ in found.values()}]
    text = [f"{n} {p} {'fence' if fence else '-'} {offset}" for n, (p, fence, offset) in found.items()]
    return found, leaves, text


def highest_below(found, name, left):
    """The highest priority of the jobs left, [queue, priority], below a queue as seen outside; None: there is none."""
    _, fence, offset = found[name]
    of_children = [highest_below(found, child, left) for child, (parent, *_) in found.items() if parent == name]
    inside = [p for where, p in left if where == name] + [p for p in of_children if p is not None]
    return (0 if fence else max(inside)) + offset if inside else None


@given(described_trees(), st.data())
def test_each_admission_takes_a_child_of_the_highest_priority_at_every_level(described, data):
    found, leaves, text = described
    left = data.draw(st.lists(st.tuples(st.sampled_from(leaves), st.integers(-4, 4)), min_size=2, max_size=7))
    order = order_of(text, [f"{name} {priority}" for name, priority in left], len(left) - 1)
    assert len(order) == len(left) - 1
    jobs = left.copy()
    for number in order:
        name, priority = jobs[number]
        assert priority == max(p for where, p in left if where == name)
        while name != "root":
            parent = found[name][0]
            of_siblings = [highest_below(found, each, left) for each, (above, *_) in found.items() if above == parent]
            assert highest_below(found, name, left) == max(p for p in of_siblings if p is not None)
            name = parent
        left.remove(jobs[number])


# -- victims ----------------------------------------------------------------------------------------------------------


def way_up(found, name):
    while name != "root":
        yield name
        name = found[name][0]


def seen(found, name, priority, other):
    """The priority of a task where the way up from its queue meets that from another one."""
    for each in way_up(found, name):
        if each in set(way_up(found, other)):
            break
        _, fence, offset = found[each]
        priority = (0 if fence else priority) + offset
    return priority


@given(described_trees(), st.data())
def test_victims_are_of_no_higher_priority_where_the_queues_meet(described, data):
    found, leaves, text = described
    assume(len(leaves) > 1)
    mine, other = data.draw(st.lists(st.sampled_from(leaves), min_size=2, max_size=2, unique=True))
    own = data.draw(st.integers(-6, 6))
    made = queues_of(text)
    entitled = [queue(q.name, "", quota(100 if q.name == mine else 0)).quotas for q in made.queues]
    queues = tuple(
        queue(
            q.name,
            "" if q.name == "root" else found[q.name][0],
            *quotas,
            priority_offset=q.priority_offset,
            priority_fence=q.priority_fence,
        )
        for q, quotas in zip(made.queues, entitled, strict=True)
    )
    rules = {"sharing": made.sharing, "reclaim_rules": made.reclaim_rules}
    scene = Scene(tree(*queues, flavors=["red"], **rules), f"v {other} red/cpu=1", f"p {mine} red/cpu=1 {own}")
    granted = permissions(scene.situation)
    row = scene.queues.row[queue_id(other)]
    for priority in range(-20, 21):
        may = bool(granted.reasons(np.array([row]), np.array([priority]))[0])
        assert may == (seen(found, other, priority, mine) <= seen(found, mine, own, other))


@pytest.mark.parametrize(
    ("own", "expected"),
    [(0, 15), (-5, 10), (2**31 - 5, 2**31 - 1)],
)
def test_priorities_stay_within_32_bits(own, expected):
    queues = build(queues_of(["p root - 10", "a p - 5"]))
    row = np.array([queues.row[queue_id("a")]])
    assert seen_outside(queues, queues.roots()).priority(row, np.array([own])).tolist() == [expected]
