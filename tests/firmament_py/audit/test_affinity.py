"""The independent check refuses placements that break inter-task constraints, and none of a round."""

import random

import numpy as np
import pytest

from firmament_py.audit.placements import Checker
from firmament_py.model.constraints import NO_PEERS, PeerDemand, PeerTerm, Spread
from tests.builders import Cluster, make_class, make_cluster, make_label_set, make_node, make_tasks, needs, tasks_like
from tests.effort import seeds
from tests.firmament_py.mixtures import Mixture
from tests.firmament_py.peer_oracle import an_order

A, B = tasks_like(needs("app", "In", "a")), tasks_like(needs("app", "In", "b"))
ZONES = [("a1", "a"), ("a2", "a"), ("b", "b"), ("c", "c")]


def cluster_of(peers: PeerDemand, *events) -> Cluster:
    """Nodes a1, a2, b, c of zones a, b, c, and one of none. Tasks 1-9 app a with these demands; 11-19 app b with none;
    21-29 app b with anti-affinity to app a in their zone."""
    return make_cluster(
        *(make_node(name, labels={"zone": zone}) for name, zone in ZONES),
        *(make_node("none"), make_class(1, peers=peers), make_class(2)),
        *(make_class(3, peers=PeerDemand(anti_affinity=(PeerTerm(A, "zone"),))),),
        *(make_label_set(1, app="a"), make_label_set(2, app="b"), make_tasks(range(1, 10), 1, label_set=1)),
        *(make_tasks(range(11, 20), 2, label_set=2), make_tasks(range(21, 30), 3, label_set=2), *events),
    )


def check(cluster: Cluster, *batches: list[tuple[int, str]]) -> list[list[bool]]:
    flat = [(uid, name, number) for number, batch in enumerate(batches) for uid, name in batch]
    result = Checker(cluster.state).check(
        np.array([cluster.state.task_row(uid) for uid, _, _ in flat], np.int64),
        np.array([cluster.state.nodes.row[f"id-{name}"] for _, name, _ in flat], np.int64),
        np.array([number for _, _, number in flat], np.int64),
    )
    found = iter(result.sound.tolist())
    assert bool(result.complaints) == (not result.sound.all())
    return [[next(found) for _ in batch] for batch in batches]


NEAR = PeerDemand(affinity=(PeerTerm(B, "zone"),))
OWN = PeerDemand(affinity=(PeerTerm(A, "zone"),))
APART = PeerDemand(anti_affinity=(PeerTerm(A, "zone"),))
EVEN = PeerDemand(spread=(Spread(A, "zone"),))


@pytest.mark.parametrize(
    ("peers", "batches", "sound"),
    [
        pytest.param(NEAR, [[(11, "b")], [(1, "b")]], [True, True], id="near-one-placed-before"),
        pytest.param(NEAR, [[(1, "b")], [(11, "b")]], [False, True], id="near-one-that-comes-later"),
        pytest.param(NEAR, [[(11, "b")], [(1, "c")]], [True, False], id="not-near"),
        pytest.param(NEAR, [[(11, "none")], [(1, "none")]], [True, False], id="near-without-a-zone"),
        pytest.param(OWN, [[(1, "a1"), (2, "a2")]], [True], id="a-home"),
        pytest.param(OWN, [[(1, "a1"), (2, "b")]], [False], id="two-homes"),
        pytest.param(OWN, [[(1, "a1")], [(2, "b")]], [True, False], id="a-second-home"),
        pytest.param(OWN, [[(1, "a1")], [(2, "a2"), (3, "a1")]], [True, True], id="home-again"),
        pytest.param(OWN, [[(1, "none")]], [False], id="a-home-without-a-zone"),
        pytest.param(APART, [[(1, "a1"), (2, "b"), (3, "none"), (4, "none")]], [True], id="apart"),
        pytest.param(APART, [[(1, "a1"), (2, "a2")]], [False], id="together"),
        pytest.param(APART, [[(1, "a1")], [(2, "a2")]], [True, False], id="together-later"),
        pytest.param(NO_PEERS, [[(21, "a1")], [(1, "a2"), (2, "b")]], [True, False], id="symmetry"),
        pytest.param(NO_PEERS, [[(1, "a2")], [(21, "a1")]], [True, False], id="who-repels-comes-later"),
        pytest.param(NO_PEERS, [[(21, "a1"), (22, "a1")], [(1, "b")]], [True, True], id="repelling-somebody-else"),
        pytest.param(EVEN, [[(1, "a1"), (2, "b"), (3, "c"), (4, "a2")]], [True], id="even"),
        pytest.param(EVEN, [[(1, "a1"), (2, "a2")]], [False], id="uneven"),
        pytest.param(EVEN, [[(1, "a1")], [(2, "a2")]], [True, False], id="uneven-later"),
        pytest.param(EVEN, [[(1, "none")]], [False], id="no-domain"),
        # refused placements do not count: the second batch is valid although the first would have made it uneven
        pytest.param(EVEN, [[(1, "a1"), (2, "a2")], [(3, "a1")]], [False, True], id="refused-ones-do-not-count"),
        pytest.param(NEAR, [[(1, "b")], [(11, "b")], [(2, "b")]], [False, True, True], id="goes-on-after-a-refusal"),
    ],
)
def test_batches(peers, batches, sound):
    found = check(cluster_of(peers), *batches)
    assert found == [[right] * len(batch) for right, batch in zip(sound, batches, strict=True)]


@pytest.mark.slow
@seeds(60)
def test_a_moved_task_is_checked_as_by_the_oracle(seed):
    """One placement of the last batch goes to another node: the check agrees with the oracle on the batch.

    A batch that the check refuses has no right order; one that has one is sound.
    """
    rng = random.Random(seed)
    mixture = Mixture(rng.choice)
    place = mixture.cluster.state.place
    mixture.cluster.state.place = lambda rows, nodes, by: None  # type: ignore[method-assign]
    batches, _ = mixture.round()
    mixture.cluster.state.place = place  # type: ignore[method-assign]
    if not batches:
        return
    *before, last = batches
    i = rng.randrange(len(last))
    last[i] = (last[i][0], rng.choice(sorted(mixture.world.nodes)))
    named = [[(uid, mixture.world.nodes[node].name) for uid, node in batch] for batch in (*before, last)]
    *_, result = check(mixture.cluster, *named)
    for batch in before:
        assert an_order(mixture.world, batch) is not None
    order = an_order(mixture.world, last)
    assert all(result) == (order is not None)
