"""Network-aware: the arithmetic, that no link is over-committed, and how evenly links are used."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from firmament_py.model.arrays import F64
from firmament_py.policy import Policy
from policies.load_spreading import LoadSpreading
from policies.network_aware import NetworkAware
from tests.builders import Cluster, make_class, make_cluster, make_node, make_tasks, per_node
from tests.firmament_py.engine.random_rounds import assert_solved_to_optimum, carry_out, left_over
from tests.firmament_py.oracle import PlainTask, World
from tests.policies.views import make_view, node_usage

EGRESS, INGRESS = "bandwidth.egress", "bandwidth.ingress"
G = 10**9


def linked(name, *, egress=None, ingress=None, **amounts):
    node = make_node(name, cpu=amounts.pop("cpu", 100), **amounts)
    links = {link: amount for link, amount in ((EGRESS, egress), (INGRESS, ingress)) if amount is not None}
    return replace(node, allocatable={**node.allocatable, **links})


def sending(number, egress, ingress=0, *, cpu=1, priority=0):
    cls = make_class(number, cpu=cpu, priority=priority)
    return replace(cls, requests={**cls.requests, EGRESS: egress, INGRESS: ingress})


# -- arithmetic -------------------------------------------------------------------------------------------------------


def test_the_example_of_the_module():
    view = make_view(
        resources=("cpu", EGRESS),
        requests=[[0, 1 * G]],
        waiting=[4],
        allocatable=[[8, 10 * G]] * 2,
        free=[[8, 5 * G], [8, 10 * G]],
    )
    costs = NetworkAware().costs(view)
    assert costs.place.tolist() == [[11_000, 1_000]]
    # each further task of 10 % of the link: 100,000 x 2 x 0.1^2 = 2,000, and 1 for being there
    assert costs.slot.tolist() == [[0, 2_001, 4_002]] * 2
    assert costs.soft_limit is not None
    assert costs.soft_limit.tolist() == [[0, 4]]
    assert costs.soft_limit_cost is not None
    assert costs.soft_limit_cost.tolist() == [4_000]


def test_both_directions_add_up():
    view = make_view(
        resources=(EGRESS, INGRESS),
        requests=[[1 * G, 2 * G]],
        allocatable=[[10 * G, 10 * G]],
        free=[[5 * G, 10 * G]],
    )
    # 100,000 x (0.1 x (1 + 0.1) + 0.2 x 0.2)
    assert NetworkAware().costs(view).place.tolist() == [[15_000]]


def test_measured_usage_counts_if_larger():
    """Bytes a second received and sent; the third was not measured."""
    view = make_view(
        resources=(EGRESS,),
        requests=[[1 * G]],
        allocatable=[[10 * G]] * 3,
        free=[[8 * G]] * 3,
        usage=node_usage(tx=[0.5 * G, 0.1 * G, np.nan], rx=[0.0, 5.0 * G, 5.0 * G]),
    )
    # used: 40 % measured, 20 % requested (10 % is measured), 20 % requested
    assert NetworkAware().costs(view).place.tolist() == [[9_000, 5_000, 5_000]]


def test_without_bandwidth_it_spreads_by_number():
    view = make_view(resources=("cpu",), requests=[[1]], allocatable=[[8], [8]], running=[3, 0])
    costs = NetworkAware().costs(view)
    assert costs.place.tolist() == [[0, 0]]
    assert costs.slot.tolist() == [[3, 4, 5], [0, 1, 2]]


def test_a_link_without_a_limit_is_weighed_like_the_largest():
    cluster = make_cluster(
        *(linked("free"), linked("large", egress=20 * G), linked("small", egress=2 * G), sending(1, 1 * G)),
        *(make_tasks([1], 1, on="free"), make_tasks([2], 1, on="free")),
        make_tasks([3], 1),
        policy=NetworkAware(),
    )
    assert cluster.round() == {3: "large"}  # 10 % of `free` is used already, and of `small` it would be half


# -- placement --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("policy", "goes_to"),
    [pytest.param(NetworkAware(), "quiet", id="network-aware"), pytest.param(LoadSpreading(), "busy", id="others")],
)
def test_a_task_goes_to_the_least_used_link(policy, goes_to):
    """One task that sends much, and three that send little."""
    cluster = make_cluster(
        *(linked("busy", egress=10 * G), linked("quiet", egress=10 * G), sending(1, 6 * G), sending(2, G // 10)),
        *(make_tasks([1], 1, on="busy"), make_tasks([2, 3, 4], 2, on="quiet"), sending(3, 2 * G), make_tasks([5], 3)),
        policy=policy,
    )
    assert cluster.round() == {5: goes_to}


def test_a_task_that_does_not_fit_a_link_waits_with_a_reason():
    cluster = make_cluster(
        *(linked("a", egress=1 * G), linked("b", egress=0), sending(1, 800_000_000), make_tasks([1, 2], 1)),
        policy=NetworkAware(),
    )
    result = cluster.run()
    assert cluster.names(result) == {1: "a"}
    [waiting] = result.waiting
    assert [(r.detail, r.nodes) for r in waiting.reasons] == [(EGRESS, 2)]


def test_one_solve_does_not_send_all_large_tasks_to_one_little_used_link():
    """Each of two little used links gets its share of the large tasks, although the less used one costs all less."""
    cluster = make_cluster(
        *(linked(name, egress=100) for name in ("a", "b", "c")),
        *(sending(1, 10), sending(2, 1), sending(3, 3), make_tasks([1], 3, on="a"), make_tasks([2, 3], 3, on="b")),
        make_tasks([4, 5, 6], 3, on="c"),
        *(make_tasks(range(10, 16), 1), make_tasks(range(20, 50), 2)),
        policy=NetworkAware(),
    )
    placed = cluster.round()
    assert per_node({uid: node for uid, node in placed.items() if uid < 20}) == {"a": 2, "b": 2, "c": 2}


def test_links_can_be_reported_after_the_nodes():
    """Nodes that were observed before any task requests bandwidth have no limit until they state one."""
    cluster = make_cluster(linked("a"), linked("b"), make_class(9), make_tasks([1], 9), policy=NetworkAware())
    cluster.round()
    cluster.tell(sending(1, 5), make_tasks(range(10, 14), 1), linked("a", egress=5), linked("b", egress=9))
    assert per_node(cluster.round()) == {"a": 1, "b": 1}
    cluster.tell(linked("b"))  # without its annotation it is without limit again
    assert per_node(cluster.round()) == {"b": 2}


@st.composite
def linked_clusters(draw):
    nodes = [
        linked(
            f"n{i}",
            cpu=draw(st.integers(0, 12)),
            pods=draw(st.integers(0, 8)),
            egress=draw(st.none() | st.integers(0, 12)),
            ingress=draw(st.none() | st.integers(0, 12)),
        )
        for i in range(draw(st.integers(1, 5)))
    ]
    classes = [
        sending(
            c + 1,
            draw(st.integers(0, 6)),
            draw(st.integers(0, 6)),
            cpu=draw(st.integers(0, 3)),
            priority=draw(st.integers(0, 1)),
        )
        for c in range(draw(st.integers(1, 4)))
    ]
    reported = draw(st.lists(st.tuples(st.sampled_from(classes), st.none() | st.sampled_from(nodes)), max_size=16))
    return nodes, classes, reported


@pytest.mark.slow
@given(events=linked_clusters())
def test_links_are_never_over_committed_and_no_task_that_fits_is_left(events):
    """With any running tasks; the oracle treats links without a limit as unlimited."""
    nodes, classes, reported = events
    seen = []
    cluster = make_cluster(*nodes, *classes, policy=NetworkAware(), observer=lambda *pair: seen.append(pair))
    world = World()
    for node in nodes:
        endless = dict.fromkeys((EGRESS, INGRESS), 2**50 - 1)
        world.nodes[node.id] = replace(node, allocatable={**endless, **node.allocatable})
    world.classes = {cls.id: cls for cls in classes}
    for uid, (cls, node) in enumerate(reported, start=1):
        cluster.tell(make_tasks([uid], cls.id, on=node.name if node else None))
        world.tasks[uid] = PlainTask(cls.id, node.id if node else None, "bound" if node else "waiting")
    carry_out(world, cluster.round())
    assert left_over(world) == []
    assert_solved_to_optimum(seen)


SIZES = {1: 10, 2: 50, 3: 100, 4: 400, 5: 1000}  # Mbit/s, on links of 10 Gbit/s
SHARES = (0.4, 0.3, 0.15, 0.1, 0.05)
LINK = 10_000


def link_use(policy: Policy, fill: float, *, counted: bool, nodes: int = 300, bursts: int = 30) -> F64:
    """(nodes,) requested shares of links after bursts of tasks that request `fill` of all links in total.

    counted: whether requests for bandwidth are reported, as for policies that count links."""
    random = np.random.default_rng(7)
    of_class = random.choice(5, size=nodes * 200, p=SHARES) + 1
    wants = np.array([SIZES[c] for c in of_class.tolist()])
    of_class = of_class[np.cumsum(wants) <= fill * nodes * LINK]
    cluster: Cluster = make_cluster(
        *(linked(f"n{i}", egress=LINK if counted else None, cpu=10_000, pods=500) for i in range(nodes)),
        *(sending(c, size if counted else 0) for c, size in SIZES.items()),
        policy=policy,
    )
    use = dict.fromkeys((f"n{i}" for i in range(nodes)), 0)
    uid = 0
    for burst in np.array_split(of_class, bursts):
        uids = range(uid + 1, uid + 1 + len(burst))
        cluster.state.apply(make_tasks(uids, burst.tolist()))
        for placed, node in cluster.round().items():
            use[node] += SIZES[int(of_class[placed - 1])]
        uid += len(burst)
    return np.array(list(use.values())) / LINK


@pytest.mark.slow
@pytest.mark.parametrize(("fill", "ratio"), [pytest.param(0.95, 1.4, id="95"), pytest.param(0.5, 1.7, id="50")])
def test_the_upper_tail_of_link_usage_is_lower_than_with_load_spreading(fill, ratio):
    """The 99th percentile and the busiest link, if tasks request 95 % and 50 % of all links in total."""
    mine = link_use(NetworkAware(), fill, counted=True)
    others = link_use(LoadSpreading(), fill, counted=False)
    assert mine.max() <= 1.0
    assert mine.mean() >= 0.98 * fill
    assert np.percentile(others, 99) >= ratio * np.percentile(mine, 99)
    assert others.max() >= ratio * mine.max()
