"""Tokens: two tasks on one node cannot hold the same one. A host port on every address, or on one of them."""

import pytest

from tests.builders import make_class, make_cluster, make_node, make_tasks, removed
from tests.firmament_py import peer_oracle

EVERYWHERE, HERE, THERE, OTHER = "TCP:80", "TCP:80/10.0.0.1", "TCP:80/10.0.0.2", "UDP:80"


@pytest.mark.parametrize(
    ("in_use", "expected", "fits"),
    [
        pytest.param((EVERYWHERE,), (EVERYWHERE,), False, id="the-same"),
        pytest.param((EVERYWHERE,), (OTHER,), True, id="another-protocol"),
        pytest.param((EVERYWHERE,), ("TCP:8",), True, id="a-prefix"),
        pytest.param((EVERYWHERE,), (HERE,), False, id="everywhere-then-here"),
        pytest.param((HERE,), (EVERYWHERE,), False, id="here-then-everywhere"),
        pytest.param((HERE,), (HERE,), False, id="here-twice"),
        pytest.param((HERE,), (THERE,), True, id="two-addresses"),
        pytest.param((HERE, THERE), (EVERYWHERE,), False, id="two-addresses-then-everywhere"),
        pytest.param((HERE, OTHER), (THERE, OTHER), False, id="one-of-several"),
        pytest.param((), (HERE, EVERYWHERE), True, id="conflicts-with-itself-only"),
        pytest.param((), (EVERYWHERE, HERE), True, id="conflicts-with-itself-only-the-other-way-round"),
        pytest.param((EVERYWHERE, HERE), (THERE,), False, id="both-then-another-address"),
        pytest.param(("disk/",), ("disk/",), True, id="shared"),
        pytest.param(("disk/",), ("disk",), False, id="shared-then-alone"),
        pytest.param(("disk",), ("disk/",), False, id="alone-then-shared"),
        pytest.param((THERE,), (EVERYWHERE, HERE), False, id="another-address-then-both"),
    ],
)
def test_tokens_that_conflict(in_use, expected, fits):
    cluster = make_cluster(
        *(make_class(1, tokens=in_use), make_class(2, tokens=expected), make_node("a"), make_tasks([1], 1, on="a")),
        make_tasks([2], 2),
    )
    assert fits != any(peer_oracle.conflict(a, b) for a in in_use for b in expected)
    assert cluster.round() == ({2: "a"} if fits else {})


def test_a_batch_with_one_token_takes_a_node_per_task():
    cluster = make_cluster(
        *(make_class(1, tokens=(EVERYWHERE,)), make_class(2, tokens=(HERE,)), make_node("a"), make_node("b")),
        *(make_tasks(range(1, 4), 1), make_tasks([4, 5], 2)),
    )
    placed = cluster.round()
    assert sorted(placed.values()) == ["a", "b"]


def test_a_released_token_can_be_taken():
    cluster = make_cluster(
        make_class(1, tokens=(EVERYWHERE,)), make_node("a"), make_tasks([1], 1, on="a"), make_tasks([2], 1)
    )
    assert cluster.round() == {}
    cluster.tell(removed(1))
    assert cluster.round() == {2: "a"}


def test_a_node_observed_after_its_tasks_has_the_remaining_tokens():
    cluster = make_cluster(
        *(make_class(1, tokens=(EVERYWHERE,)), make_tasks([1], 1, on="a"), make_class(2, tokens=(THERE,))),
        *(make_tasks([2], 2), make_tasks([3], 1), make_node("a"), make_node("b")),
    )
    assert set(cluster.round().values()) == {"b"}
    cluster.tell(make_node("a", cpu=5))
    assert cluster.round() == {}


def test_two_holders_of_one_token_exclude_only_tasks_with_that_token():
    cluster = make_cluster(
        *(make_class(1, tokens=(EVERYWHERE,)), make_class(2, tokens=(HERE,)), make_class(3), make_node("a")),
        *(make_tasks([1, 2], 1, on="a"), make_tasks([3], 2), make_tasks([4], 3)),
    )
    assert cluster.round() == {4: "a"}
