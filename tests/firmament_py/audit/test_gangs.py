"""The independent check of gangs: minimums, maximums, roles and domains."""

import numpy as np
import pytest

from firmament_py.audit.placements import Checker
from tests.builders import (
    Cluster,
    ended,
    make_class,
    make_cluster,
    make_gang,
    make_label_set,
    make_node,
    make_tasks,
    needs,
    selecting,
)
from tests.firmament_py.gang_builders import GPU1, RACKS, WITH_LEAD, gpu_nodes


def checked(cluster: Cluster, *uids: int) -> list[bool]:
    """The result of the check for these tasks on n0, one after the other."""
    rows = np.array([cluster.state.task_row(uid) for uid in uids], np.int64)
    nodes = np.full(len(uids), cluster.state.node_row("id-n0"), np.int64)
    return [bool(sound) for sound in Checker(cluster.state).check(rows, nodes, np.arange(len(uids))).sound]


@pytest.mark.parametrize(
    ("gang", "placed", "sound"),
    [
        pytest.param(make_gang(1, 3), [101, 102, 103], True, id="whole"),
        pytest.param(make_gang(1, 2), [101, 102, 103], True, id="more-than-the-minimum"),
        pytest.param(make_gang(1, 3), [101, 102], False, id="half"),
        pytest.param(make_gang(1, 1, roles={"a": 1, "b": 1}), [101, 102], False, id="a-role-short"),
        # 103 has role 1
        pytest.param(make_gang(1, 1, roles={"a": 1, "b": 1}), [101, 103], True, id="both-roles"),
        pytest.param(make_gang(1, 0), [101], True, id="no-minimum"),
    ],
)
def test_part_of_a_gang_is_refused_and_other_placements_are_not(gang, placed, sound):
    cluster = make_cluster(
        *(*gpu_nodes(9), GPU1, gang, make_tasks([101, 102, 103], 1, gang=1, role=[0, 0, 1]), make_tasks([901], 1))
    )
    assert checked(cluster, *placed, 901) == [sound] * len(placed) + [True]


@pytest.mark.parametrize(
    ("start", "there", "sound"),
    [
        pytest.param({"cpu": 5, "pods": 3}, [], True, id="as-much-is-free"),
        pytest.param({"cpu": 6}, [], False, id="less-is-free"),
        pytest.param({"cpu": 1, "gpu": 1}, [], False, id="none-is-offered"),
        pytest.param({"cpu": 6}, [102], True, id="it-has-started"),
    ],
)
def test_a_gang_does_not_start_before_enough_is_free(start, there, sound):
    """7 of 9 are free, 2 of them on a node that is over-committed by 3: 5 count."""
    cluster = make_cluster(
        *(make_node("n0", cpu=5, pods=9), make_node("m", cpu=4, pods=9), make_class(1, cpu=1), make_class(2, cpu=7)),
        *(make_gang(1, 1, start=start), make_tasks([101], 1, gang=1), make_tasks([901], 2, on="m")),
        make_tasks(there, 1, gang=1, on="m"),
    )
    assert checked(cluster, 101) == [sound]


def test_placed_members_count():
    cluster = make_cluster(
        *gpu_nodes(9), GPU1, make_gang(1, 3), make_tasks([101, 102], 1, gang=1, on="n0"), make_tasks([103], 1, gang=1)
    )
    assert checked(cluster, 103) == [True]
    cluster.tell(ended(101))
    assert checked(cluster, 103) == [False]


def test_a_refused_member_causes_refusal_of_its_gang_and_of_its_dependants():
    """102 does not tolerate the node, so the gang is incomplete; 901 has affinity to 101."""
    cluster = make_cluster(
        make_node("n0", gpu=9, labels={"host": "n0"}),
        *(GPU1, make_class(2, gpu=1, peers=WITH_LEAD), make_class(3, gpu=1, demand=selecting(needs("k")))),
        *(make_label_set(1, app="lead"), make_gang(1, 2), make_tasks([101], 1, gang=1, label_set=1)),
        *(make_tasks([102], 3, gang=1), make_tasks([901], 2), make_tasks([902], 1)),
    )
    assert checked(cluster, 101, 102, 901, 902) == [False, False, False, True]


@pytest.mark.parametrize(
    ("maximum", "there", "placed", "sound"),
    [
        pytest.param(3, 1, 2, True, id="reached"),
        pytest.param(3, 1, 3, False, id="one-too-many"),
        pytest.param(2, 3, 1, False, id="there-were-too-many-already"),
        pytest.param(0, 3, 3, True, id="none"),
    ],
)
def test_more_than_the_maximum_is_refused(maximum, there, placed, sound):
    cluster = make_cluster(
        *(*gpu_nodes(9), GPU1, make_gang(1, 2, maximum=maximum), make_tasks([901], 1)),
        *(make_tasks(range(201, 201 + there), 1, gang=1, on="n0"), make_tasks(range(101, 101 + placed), 1, gang=1)),
    )
    assert checked(cluster, *range(101, 101 + placed), 901) == [sound] * placed + [True]


def judged_at(cluster: Cluster, placed: dict[int, str]) -> list[bool]:
    """The result of the check for these placements at once."""
    rows = np.array([cluster.state.task_row(uid) for uid in placed], np.int64)
    nodes = np.array([cluster.state.node_row(f"id-{name}") for name in placed.values()], np.int64)
    return [bool(sound) for sound in Checker(cluster.state).check(rows, nodes, np.zeros(len(placed), np.int64)).sound]


@pytest.mark.parametrize(
    ("minimum", "there", "placed", "sound"),
    [
        # n0, n1 are in rack a, n2, n3 in rack b, n4 in none; three are needed
        pytest.param(3, {}, "n0 n1 n1", True, id="one-rack"),
        pytest.param(3, {}, "n0 n1 n2", False, id="two-racks"),
        pytest.param(3, {}, "n4 n4 n4", False, id="no-rack"),
        pytest.param(3, {}, "n0 n1 n1 n0 n1", True, id="beyond-the-minimum-in-the-rack"),
        pytest.param(3, {}, "n0 n1 n1 n2", False, id="beyond-the-minimum-in-another-rack"),
        pytest.param(3, {}, "n0 n1 n1 n4", False, id="beyond-the-minimum-in-no-rack"),
        pytest.param(3, {201: "n0"}, "n1 n1", True, id="where-one-is"),
        pytest.param(3, {201: "n2"}, "n1 n1", False, id="where-none-is"),
        pytest.param(3, {201: "n0", 202: "n2"}, "n1", True, id="in-one-of-two"),
        pytest.param(3, {201: "n4"}, "n2 n3", True, id="one-that-is-nowhere-binds-nobody"),
        pytest.param(3, {201: "n4"}, "n1 n3", False, id="but-one-rack-it-must-be"),
        pytest.param(3, {201: "n0", 202: "n0", 203: "n0"}, "n1", True, id="nothing-is-lacked"),
        pytest.param(3, {201: "n4", 202: "n4", 203: "n4"}, "n2 n3", True, id="nothing-is-lacked-but-a-rack"),
        pytest.param(3, {201: "n0", 202: "n0", 203: "n0"}, "n2", False, id="nothing-is-lacked-in-another-rack"),
        pytest.param(3, {201: "n4", 202: "n4", 203: "n4"}, "n4", False, id="nothing-is-lacked-in-no-rack"),
        pytest.param(0, {}, "n0 n1", True, id="no-minimum-in-a-rack"),
        pytest.param(0, {}, "n0 n2", False, id="no-minimum-in-two-racks"),
    ],
)
def test_a_minimum_outside_one_domain_is_refused(minimum, there, placed, sound):
    cluster = make_cluster(
        *(*gpu_nodes(9, 9, 9, 9, 9, **RACKS), GPU1, make_gang(1, minimum, topology="rack", required=True)),
        *(make_tasks([uid], 1, gang=1, on=name) for uid, name in there.items()),
        *(make_tasks(range(101, 106), 1, gang=1), make_tasks([901], 1)),
    )
    new = dict(zip(range(101, 106), placed.split(), strict=False))
    assert judged_at(cluster, {**new, 901: "n4"}) == [sound] * len(new) + [True]


def test_a_preferred_topology_is_not_required():
    cluster = make_cluster(
        *(*gpu_nodes(1, 1, 1, 1, **RACKS), GPU1, make_gang(1, 2, topology="rack")), make_tasks([101, 102], 1, gang=1)
    )
    assert judged_at(cluster, {101: "n0", 102: "n2"}) == [True, True]


def test_lacking_roles_must_be_in_the_domain_too():
    cluster = make_cluster(
        *(*gpu_nodes(9, 9, 9, 9, **RACKS), GPU1),
        make_gang(1, 2, roles={"lead": 1, "rest": 1}, topology="rack", required=True),
        make_tasks([101, 102, 103], 1, gang=1, role=[0, 1, 1]),
    )
    assert judged_at(cluster, {101: "n2", 102: "n0", 103: "n1"}) == [False] * 3
    assert judged_at(cluster, {101: "n1", 102: "n0", 103: "n1"}) == [True] * 3


@pytest.mark.parametrize(("to", "sound"), [("n0 n0", True), ("n0 n1", False), ("n0 n2", False), ("n3 n3", False)])
def test_racks_of_one_name_in_two_blocks_are_two_domains(to, sound):
    racks = {"n0": ("a", "x"), "n1": ("a", "y"), "n2": ("b", "x")}
    cluster = make_cluster(
        *(make_node(name, gpu=9, labels={"rack": rack, "block": block}) for name, (rack, block) in racks.items()),
        *(make_node("n3", gpu=9, labels={"rack": "a"}), GPU1),
        make_gang(1, 2, topology="rack", outer=["block"], required=True),
        make_tasks([101, 102], 1, gang=1),
    )
    assert judged_at(cluster, dict(zip((101, 102), to.split(), strict=True))) == [sound] * 2
