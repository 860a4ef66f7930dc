"""Whare-map: the arithmetic, and the machines that tasks get."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policies.colocation import TRAIT
from policies.load_spreading import LoadSpreading
from policies.whare_map import WhareMap
from tests.builders import make_class, make_cluster, make_node, make_tasks
from tests.firmament_py.engine.random_rounds import assert_solved_to_optimum
from tests.policies.views import make_view

LABEL = "node.kubernetes.io/instance-type"


def place(speed, platforms, *, kind="sheep", beside=None, label=LABEL, **options):
    view = make_view(
        resources=("cpu",),
        requests=[[1]],
        allocatable=[[8]] * len(platforms),
        running=[sum(of[n] for of in (beside or {}).values()) for n in range(len(platforms))],
        traits=[{TRAIT: kind, "speed": speed}],
        counts={TRAIT: beside or {}},
        labels={label: platforms},
    )
    return WhareMap(**options).costs(view).place[0].tolist()


@pytest.mark.parametrize(
    ("speed", "platforms", "costs"),
    [
        pytest.param("c5=1.6,m5=1", ["c5", "m5"], [0, 600], id="the-example"),
        pytest.param("c5=1.6,m5=1", ["m5", "m5"], [0, 0], id="the-best-there-is"),
        pytest.param("c5=1.6,m5=0.8", ["c5", "r5", "", "m5"], [0, 1000, 1000, 1000], id="others-are-like-the-slowest"),
        pytest.param("", ["c5", "m5"], [0, 0], id="nothing-said"),
        pytest.param("x", ["c5", "m5"], [0, 0], id="nothing-readable"),
        pytest.param("c5=nan,m5=1,r5=-1,a1=inf,b2=0", ["c5", "m5"], [0, 0], id="what-is-no-speed"),
        pytest.param("c5=2,m5", ["c5", "m5"], [0, 0], id="only-one-speed"),
    ],
)
def test_platforms_of_different_speed(speed, platforms, costs):
    assert place(speed, platforms) == costs


def test_neighbours_add_to_the_slowdown():
    # the example: 1.6 x 1.1
    assert place("c5=1.6,m5=1", ["c5", "m5"], kind="rabbit", beside={"devil": [0, 1]}) == [0, 760]
    assert place("", ["c5", "m5"], kind="rabbit", beside={"devil": [0, 1]}, penalties="rabbit-devil=500") == [0, 50]


def test_the_label_is_an_option():
    assert place("old=1,new=3", ["old", "new"], label="generation", platform_label="generation") == [2000, 0]
    with pytest.raises(ValueError, match="platform-label is empty"):
        WhareMap(platform_label="")


def test_slot_costs_rise_with_the_mean_of_waiting_tasks():
    view = make_view(
        resources=("cpu",), requests=[[1], [1]], allocatable=[[8]], traits=[{TRAIT: "rabbit"}, {TRAIT: "devil"}]
    )
    # a quarter each of 200, 1000, 1000 and 200, in hundredths of a per cent: 6 %; and 1 for being there
    assert WhareMap().costs(view).slot.tolist() == [[0, 61, 122]]


@pytest.mark.parametrize(
    ("speed", "used", "costs"),
    [
        # 200 millicores on a c5, 300 on an m5: half as much again
        pytest.param("", {"c5": (200.0, 3), "m5": (300.0, 9)}, [0, 500, 500], id="measured"),
        pytest.param("", {"c5": (200.0, 3), "m5": (300.0, 2)}, [0, 0, 0], id="too-few-tasks"),
        pytest.param("", {"c5": (0.2, 3), "m5": (300.0, 3)}, [0, 0, 0], id="too-little-cpu"),
        pytest.param("r5=3,m5=1", {"m5": (300.0, 3), "c5": (200.0, 3)}, [1000, 2000, 0], id="in-the-unit-of-stated"),
        pytest.param("c5=9,m5=1", {"c5": (200.0, 3), "m5": (200.0, 3)}, [0, 0, 0], id="measured-before-stated"),
        pytest.param("r5=3", {"c5": (200.0, 3), "m5": (300.0, 3)}, [0, 500, 500], id="nothing-in-common"),
    ],
)
def test_speeds_are_learnt_from_usage(speed, used, costs):
    """On a c5, an m5 and an r5."""
    view = make_view(
        resources=("cpu",),
        requests=[[1]],
        allocatable=[[8]] * 3,
        traits=[{"program": "web", "speed": speed}],
        counts={"program": {"web": [0] * 3, "other": [0] * 3}},
        labels={LABEL: ["c5", "m5", "r5"]},
        used={("web", platform): cell for platform, cell in used.items()} | {("other", "r5"): (1.0, 99)},
    )
    assert WhareMap().costs(view).place.tolist() == [costs]


NODES = [
    *(make_node(f"fast{i}", cpu=2, labels={LABEL: "fast"}) for i in range(2)),
    *(make_node(f"slow{i}", cpu=2, labels={LABEL: "slow"}) for i in range(2)),
]


def time_lost(policy, speeds):
    """Additional total time of tasks of two programs, four of each, relative to the fast machines."""
    cluster = make_cluster(
        *NODES,
        *(make_class(i, cpu=1, traits={"speed": f"fast={speed},slow=1"}) for i, speed in enumerate(speeds, start=1)),
        *(make_tasks(range(4), 1), make_tasks(range(10, 14), 2)),
        policy=policy,
    )
    placed = cluster.round()
    assert len(placed) == 8
    return sum(speeds[uid // 10] - 1 for uid, node in placed.items() if node.startswith("slow"))


def test_the_fast_machines_go_to_the_tasks_that_gain_most():
    assert time_lost(WhareMap(), (1.1, 2.0)) == pytest.approx(4 * 0.1)
    assert time_lost(WhareMap(), (3.0, 2.0)) == pytest.approx(4 * 1.0)
    assert time_lost(LoadSpreading(), (1.1, 2.0)) > 1.0


@pytest.mark.slow
@given(
    speeds=st.lists(st.tuples(st.integers(1, 9), st.integers(1, 9)), min_size=1, max_size=3),
    tasks=st.lists(st.tuples(st.integers(0, 2), st.sampled_from(["fast0", "slow1", None])), max_size=8),
)
def test_every_network_is_solved_to_its_optimum(speeds, tasks):
    seen = []
    cluster = make_cluster(
        *NODES,
        *(
            make_class(i, cpu=1, traits={"speed": f"fast={a},slow={b}", TRAIT: "devil"})
            for i, (a, b) in enumerate(speeds, start=1)
        ),
        policy=WhareMap(),
        observer=lambda *pair: seen.append(pair),
    )
    for uid, (cls, node) in enumerate(tasks, start=1):
        cluster.tell(make_tasks([uid], cls % len(speeds) + 1, on=node))
    cluster.run()
    assert_solved_to_optimum(seen)
