"""Capacity reserved for a gang: by the expected ends of running tasks, or by age if these are unknown."""

import pytest

from firmament_py.cli.durations import parse_after
from firmament_py.engine.engine import Engine
from firmament_py.explain.reason import Reason, ReasonKind
from firmament_py.flow.solver import OrToolsSolver
from firmament_py.model.constraints import PeerDemand, PeerTerm
from firmament_py.model.events import NodeRemoved, Outcome
from firmament_py.model.options import RESERVE_AFTER_US, EngineOptions
from firmament_py.policy import WAIT_MIN
from firmament_py.snapshot.expected_releases import FOREVER, Releases
from firmament_py.state.cluster import ClusterState
from policies.load_spreading import LoadSpreading
from tests.builders import (
    NOW_US,
    SECOND_US,
    ended,
    make_class,
    make_cluster,
    make_gang,
    make_label_set,
    make_node,
    make_tasks,
    needs,
    selecting,
    tasks_like,
)
from tests.firmament_py.admission.reservations import CLASSES, LONG, MINUTE, THREE, TWO, gang_of, kept_until, running
from tests.firmament_py.gang_builders import OVERDUE_US, gpu_nodes

# -- how long a gang waits before -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("after_us", "keeps"),
    [(0, True), (60 * SECOND_US, True), (60 * SECOND_US + 1, False), (None, False)],
    ids=["at once", "as long as it waits", "longer", "never"],
)
@pytest.mark.parametrize("resynchronised", [False, True])
def test_reserve_after_is_configurable(after_us, keeps, resynchronised):
    engine = Engine(LoadSpreading(), OrToolsSolver(), options=EngineOptions(reserve_after_us=after_us))
    if resynchronised:
        engine.replace(ClusterState())
    gang = gang_of(3, created_us=NOW_US - 60 * SECOND_US)
    younger = make_tasks([1], LONG, created_us=NOW_US)
    outcome = engine.apply([*gpu_nodes(3), *CLASSES, running(2, LONG, "n0"), *gang, younger])
    assert outcome == Outcome()
    result = engine.run_round(NOW_US)
    assert result is not None
    assert engine.state.tasks.uid[result.tasks].tolist() == ([] if keeps else [1])
    assert len(engine.scheduler.gang_starts_us) == keeps


@pytest.mark.parametrize("text", ["", "-1", "nan", "inf", "1e10", "soon", "Never"])
def test_invalid_waiting_times_are_refused(text):
    with pytest.raises(ValueError, match=r"give seconds from 0 to 1000000000, or never"):
        parse_after(text)


def test_waiting_times():
    assert [parse_after(text) for text in ("0", "2.5", "300", "never")] == [0, 2_500_000, RESERVE_AFTER_US, None]


# -- when tasks end ---------------------------------------------------------------------------------------------------


def test_when_a_reservation_ends():
    cluster = make_cluster(
        *(
            *gpu_nodes(9, 9),
            *CLASSES,
            running(1, LONG, "n0"),
            running(2, MINUTE, "n0", 20),
            running(3, MINUTE, "n1", 500),
        ),
        *(make_tasks([4], TWO, on="n1"), running(5, LONG, "n0", leaving=True), running(6, LONG, "n1", lasting=True)),
        *(running(7, TWO, "n1", 60, lasting=True), make_tasks([8], TWO)),
    )
    state: ClusterState = cluster.state
    nodes = state.present_nodes()
    releases = Releases(state, nodes, NOW_US)
    gpu = state.resources.names.index("gpu")

    def freed(seconds: int) -> list[int]:
        return [int(amount) for amount in releases.until(NOW_US + seconds * SECOND_US)[:, gpu]]

    assert [(end - NOW_US) // SECOND_US for end in releases.ends.tolist()] == [0, 40, 60, 120]
    # 3 is over its time, 5 on its way out; 4 has not begun; 7 says when it ends, so it does not last
    assert [freed(seconds) for seconds in (0, 39, 40, 60, 120)] == [[1, 1], [1, 1], [2, 1], [2, 2], [2, 3]]
    rows, in_use = releases.staying(0)
    assert state.tasks.uid[rows].tolist() == [6], "and it has no members here"
    assert in_use[:, gpu].tolist() == [0, 1]
    assert releases.ends.max() < FOREVER
    cluster.tell(NodeRemoved("id-n1"))
    left = Releases(state, state.present_nodes(), NOW_US)
    assert left.until(FOREVER)[:, gpu].tolist() == [2], "1 does not say when it ends"


# -- by expected end --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("single", "placed"),
    [
        pytest.param(MINUTE, True, id="ends-before"),
        pytest.param(TWO, True, id="ends-just-in-time"),
        pytest.param(THREE, False, id="ends-too-late"),
        pytest.param(LONG, False, id="does-not-say"),
    ],
)
def test_tasks_that_end_in_time_can_use_reserved_capacity(single, placed):
    # 2 GPUs, one held for 120 s more; the gang needs both
    cluster = make_cluster(
        *(*gpu_nodes(2), *CLASSES, running(1, THREE, "n0", 60), *gang_of(2)), make_tasks([901], single)
    )
    result = cluster.run()
    assert (901 in cluster.names(result)) is placed
    assert kept_until(cluster) == [120]
    if not placed:
        (reported,) = [w.reasons for w in result.waiting if w.count == 1]
        assert reported == (Reason(ReasonKind.RESERVED, 1, "gang-1"),)


def test_capacity_that_the_gang_does_not_need_is_not_reserved():
    # 5 GPUs, 2 held for a minute, 3 free; the gang needs 4 of them: the fifth is anybody's, the other two are not
    cluster = make_cluster(
        *(*gpu_nodes(5), *CLASSES, running(1, MINUTE, "n0"), running(2, MINUTE, "n0"), *gang_of(4)),
        make_tasks([901, 902, 903], LONG),
    )
    assert len(cluster.round()) == 1
    assert kept_until(cluster) == [60]


def test_tasks_that_end_in_time_and_others_are_placed_up_to_their_capacity():
    cluster = make_cluster(
        *(*gpu_nodes(5), *CLASSES, running(1, MINUTE, "n0"), running(2, MINUTE, "n0"), *gang_of(4)),
        *(make_tasks([901, 902, 903], LONG), make_tasks([911, 912, 913], MINUTE)),
    )
    placed = cluster.round()
    assert len(placed) == 3
    assert len(set(placed) & {901, 902, 903}) <= 1


def test_the_earliest_start_counts_and_not_every_end():
    # 4 GPUs, held for 60, 60, 120 and 180 s: two are free after 60
    in_use = [running(1, MINUTE, "n0"), running(2, MINUTE, "n0"), running(3, TWO, "n1"), running(4, THREE, "n1")]
    cluster = make_cluster(*gpu_nodes(2, 2), *CLASSES, *in_use, *gang_of(2))
    cluster.round()
    assert kept_until(cluster) == [60]
    three = make_cluster(*gpu_nodes(2, 2), *CLASSES, *in_use, *gang_of(3))
    three.round()
    assert kept_until(three) == [120]


def test_members_of_two_gpus_need_two_on_one_node():
    in_use = [running(1, MINUTE, "n0"), running(2, MINUTE, "n1"), running(3, THREE, "n1")]
    cluster = make_cluster(*gpu_nodes(2, 2), *CLASSES, make_class(9, gpu=2), *in_use, *gang_of(2, cls=9))
    cluster.round()
    assert kept_until(cluster) == [180]


def test_tasks_without_an_expected_end_never_end():
    """One of them holds what the gang needs: what the gang could take now is reserved against all others."""
    cluster = make_cluster(
        *(*gpu_nodes(2, 2), *CLASSES, running(1, LONG, "n0"), running(2, MINUTE, "n1"), *gang_of(4)),
        make_tasks([901, 902], MINUTE),
    )
    assert cluster.round() == {}
    assert kept_until(cluster) == [-1]


@pytest.mark.parametrize("topology", [{}, {"topology": "rack", "required": True}], ids=["anywhere", "one-rack"])
def test_nodes_with_least_to_release_are_drained_for_large_members(topology):
    """Two members of 4 GPUs; no task has an expected end. n1 and n2 hold least; n0 stays open to others."""
    racks = {"n0": "b", "n1": "b", "n2": "b"} if topology else {}
    in_use = [make_tasks(range(1, 4), LONG, on="n0"), make_tasks([4, 5], LONG, on="n1"), make_tasks([6], LONG, on="n2")]
    cluster = make_cluster(
        *(*gpu_nodes(4, 4, 4, **racks), *CLASSES, make_class(9, gpu=4), *in_use, *gang_of(2, cls=9, **topology)),
        make_tasks(range(901, 909), LONG),
    )
    assert set(cluster.round().values()) == {"n0"}
    for uid in (4, 6):
        cluster.tell(ended(uid))
        assert cluster.round() == {}
    assert kept_until(cluster) == [-1]
    cluster.tell(ended(5))
    assert set(cluster.round()) == {101, 102}


def test_capacity_is_reserved_in_addition_to_what_fits_now():
    """One of two members fits now on n0, for the other n1 is drained; n2 is for others."""
    in_use = [make_tasks([1], LONG, on="n1"), make_tasks([2, 3], LONG, on="n2")]
    cluster = make_cluster(
        *(*gpu_nodes(3, 3, 3), *CLASSES, make_class(9, gpu=3), *in_use, *gang_of(2, cls=9)),
        make_tasks(range(901, 909), LONG),
    )
    assert set(cluster.round().values()) == {"n2"}


def test_one_gang_per_priority_has_a_reservation():
    in_use = [make_tasks([1], LONG, on="n0"), make_tasks([2], LONG, on="n1")]
    cluster = make_cluster(
        *(*gpu_nodes(2, 2), *CLASSES, make_class(9, gpu=2), *in_use, *gang_of(1, 1, 9), *gang_of(2, 2, 9)),
        make_tasks([901], LONG),
    )
    assert len(cluster.round()) == 1
    assert kept_until(cluster) == [-1]


def test_gangs_of_one_priority_on_different_nodes_have_a_reservation_each():
    """They cannot block each other."""
    in_a, in_b = (selecting(needs("rack", "In", rack)) for rack in "ab")
    cluster = make_cluster(
        *(
            *gpu_nodes(2, 2, n0="a", n1="b"),
            *CLASSES,
            make_class(8, gpu=2, demand=in_a),
            make_class(9, gpu=2, demand=in_b),
        ),
        *(make_tasks([1], LONG, on="n0"), make_tasks([2], LONG, on="n1"), *gang_of(1, 1, 8), *gang_of(1, 2, 9)),
        make_tasks([901, 902], LONG),
    )
    assert cluster.round() == {}
    assert kept_until(cluster) == [-1, -1]


def test_the_earliest_of_many_ends_is_found():
    times = [make_class(20 + k, gpu=1, expected_us=10 * k * SECOND_US) for k in range(1, 10)]
    for members in range(1, 10):
        in_use = [running(k, 20 + k, "n0") for k in range(1, 10)]
        cluster = make_cluster(*gpu_nodes(9), *CLASSES, *times, *in_use, *gang_of(members))
        cluster.round()
        assert kept_until(cluster) == [10 * members]


def test_tasks_that_end_in_time_take_nothing_from_those_that_do_not():
    """One more GPU will be there than the gang needs: the older task, which ends in time, need not use that one."""
    cluster = make_cluster(
        *(*gpu_nodes(5), *CLASSES, running(1, MINUTE, "n0"), running(2, MINUTE, "n0"), *gang_of(4)),
        *(make_tasks([901], MINUTE, created_us=NOW_US - 9 * SECOND_US), make_tasks([911], LONG)),
    )
    assert set(cluster.round()) == {901, 911}


def test_a_lower_priority_reserves_nothing_that_a_higher_one_will_hold():
    """5 GPUs: after a minute the higher gang takes two of three, after two minutes the lower one the other three."""
    in_use = [*(running(k, MINUTE, "n0") for k in (1, 2)), *(running(k, TWO, "n0") for k in (3, 4))]
    cluster = make_cluster(
        *(*gpu_nodes(5), *CLASSES, make_class(8, gpu=1, priority=5), *in_use),
        *(*gang_of(2, 1, 8), *gang_of(3, 2), make_tasks([901], LONG)),
    )
    assert cluster.round() == {}
    assert kept_until(cluster) == [60, 120]


def test_a_higher_priority_ignores_the_reservation_of_a_lower_one():
    """The higher gang waits two minutes for n0, and will have half of n1 then; the lower one takes the other half of n1
    after one."""
    in_rack = {name: selecting(needs("rack", "In", name)) for name in ("a", "b")}
    cluster = make_cluster(
        *(*gpu_nodes(2, 4, n0="a", n1="b"), *CLASSES, running(1, TWO, "n0")),
        *(running(k, MINUTE, "n1") for k in (2, 3, 4)),
        *(make_class(8, gpu=2, priority=5, demand=in_rack["a"]), make_class(9, gpu=2, priority=5, demand=in_rack["b"])),
        *(make_class(10, gpu=2, demand=in_rack["b"]), make_gang(1, 2, created_us=OVERDUE_US)),
        *(make_tasks([101], 8, gang=1), make_tasks([102], 9, gang=1), *gang_of(1, 2, 10)),
    )
    cluster.tell(make_class(11, gpu=1, demand=in_rack["b"]), make_tasks([901], 11))
    assert cluster.round() == {}
    assert kept_until(cluster) == [120, 60]


def test_overdue_tasks_are_expected_to_end_now():
    cluster = make_cluster(
        *(*gpu_nodes(2), *CLASSES, running(1, MINUTE, "n0", 300), *gang_of(2)), make_tasks([901], MINUTE)
    )
    assert cluster.round() == {}
    assert kept_until(cluster) == [0]


def test_a_younger_gang_that_ends_in_time_can_use_reserved_capacity():
    in_use = [running(1, THREE, "n0", 60)]
    cluster = make_cluster(*gpu_nodes(3), *CLASSES, *in_use, *gang_of(3), *gang_of(2, 2, MINUTE, created_us=NOW_US))
    assert set(cluster.round()) == {201, 202}
    late = make_cluster(*gpu_nodes(3), *CLASSES, *in_use, *gang_of(3), *gang_of(2, 2, THREE, created_us=NOW_US))
    assert late.round() == {}


def test_the_reservation_is_in_the_domain_that_is_free_first():
    """Rack a is free after 180 s, rack b after 60: tasks of two minutes can use rack a."""
    cluster = make_cluster(
        *(*gpu_nodes(2, 2, n0="a", n1="b"), *CLASSES, running(1, THREE, "n0"), running(2, MINUTE, "n1")),
        *(*gang_of(2, topology="rack", required=True), make_tasks([901, 902], TWO)),
    )
    assert set(cluster.round().values()) == {"n0"}
    assert kept_until(cluster) == [60]


def test_gangs_of_two_priorities_have_a_reservation_each():
    """The higher one needs both GPUs of n0 after a minute, the lower one both of n1 after two."""
    cluster = make_cluster(
        *(*gpu_nodes(2, 2), *CLASSES, make_class(8, gpu=2, priority=5), make_class(9, gpu=2)),
        *(running(1, MINUTE, "n0"), running(2, TWO, "n1"), *gang_of(1, 1, 8), *gang_of(1, 2, 9)),
        *(make_tasks([902], TWO), make_tasks([903], THREE)),
    )
    assert cluster.round() == {902: "n1"}, "it ends before the second begins"
    assert kept_until(cluster) == [60, 120]
    cluster.tell(make_tasks([901], MINUTE))
    assert cluster.round() == {901: "n0"}, "it ends before either begins"


def test_lower_priorities_that_end_in_time_can_use_reserved_capacity():
    cluster = make_cluster(
        *(*gpu_nodes(2), *CLASSES, running(1, MINUTE, "n0"), *gang_of(2)),
        *(make_class(8, gpu=1, priority=-1, expected_us=SECOND_US), make_class(9, gpu=1, priority=-1)),
        *(make_tasks([901], 9), make_tasks([902], 8)),
    )
    assert set(cluster.round()) == {902}


# -- what never goes --------------------------------------------------------------------------------------------------


def test_capacity_that_is_never_released_is_not_waited_for():
    """A daemon on each node leaves one GPU of two: a gang that needs two on a node gets no reservation."""
    daemons = [running(1, LONG, "n0", lasting=True), running(2, LONG, "n1", lasting=True)]
    cluster = make_cluster(
        *gpu_nodes(2, 2), *CLASSES, make_class(9, gpu=2), *daemons, *gang_of(1, cls=9), make_tasks([901, 902], LONG)
    )
    assert set(cluster.round()) == {901, 902}
    assert kept_until(cluster) == []


def test_capacity_is_reserved_beside_tasks_that_never_end():
    daemons = [running(1, LONG, "n0", lasting=True), running(2, LONG, "n1", lasting=True)]
    cluster = make_cluster(
        *(*gpu_nodes(2, 2), *CLASSES, *daemons, running(3, LONG, "n0"), *gang_of(2)), make_tasks([901], LONG)
    )
    assert cluster.round() == {}
    cluster.tell(ended(3))
    assert set(cluster.round()) == {101, 102}


def test_capacity_is_reserved_for_a_gang_that_only_a_search_places_although_tasks_that_will_end_repel_it():
    """Once these have gone, its members have no constraints, so that the search is tried for them."""
    repels = PeerDemand(anti_affinity=(PeerTerm(tasks_like(needs("app", "In", "gang")), "host"),))
    requests = [(7, 6), (7, 4), (3, 5), (2, 4)]
    cluster = make_cluster(
        *(make_node(name, cpu=10, memory=10, labels={"host": name}) for name in "abc"),
        *(make_class(9, cpu=1, memory=1, peers=repels), make_label_set(1, app="gang"), make_label_set(2, app="other")),
        *(make_tasks([90 + i], 9, label_set=2, on=name) for i, name in enumerate("abc")),
        *(make_class(1 + c, cpu=cpu, memory=memory) for c, (cpu, memory) in enumerate(requests)),
        make_gang(1, 6, created_us=NOW_US - OVERDUE_US),
        make_tasks(range(1, 7), [1, 2, 2, 3, 4, 4], gang=1, label_set=1, created_us=NOW_US - OVERDUE_US),
    )
    assert cluster.round() == {}
    assert len(cluster.scheduler.reservation_holders) == 1


def test_the_figures_of_a_round_are_not_those_of_a_trial():
    """The gang is tried on what tasks that end leave, where some members wait; the single tasks are placed."""
    cluster = make_cluster(
        *(make_node(name, cpu=10, memory=10) for name in "abc"),
        make_class(9, cpu=6, memory=1),
        *(make_tasks([90 + i], 9, on=name) for i, name in enumerate("abc")),
        *(make_class(c, cpu=cpu, memory=memory) for c, cpu, memory in ((1, 8, 2), (2, 2, 8), (3, 1, 1), (4, 1, 2))),
        make_gang(1, 6, created_us=NOW_US - OVERDUE_US),
        make_tasks(range(1, 7), [1, 1, 1, 2, 2, 2], gang=1, created_us=NOW_US - OVERDUE_US),
        make_tasks([50, 51], [3, 4]),
    )
    stats = cluster.run().stats
    assert stats.trials > 0
    assert 0 < stats.objective < WAIT_MIN
