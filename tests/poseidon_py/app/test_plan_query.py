"""What a plan of moves may be asked for."""

import pytest

from poseidon_py.app.plan_query import PlanQuery, plan_query
from poseidon_py.kube.objects import InvalidField


def test_the_defaults():
    assert plan_query({}) == PlanQuery("place", 50, "", {}, 0)


def test_a_shape_counts_like_a_pod():
    found = plan_query({"goal": "pack", "for": "cpu=1500m, memory=64Gi,nvidia.com/gpu=2", "moves-per-win": "3"})
    amounts = {"cpu": 1500, "memory": 64 * 2**30, "nvidia.com/gpu": 2, "pods": 1}
    assert (found.amounts, found.moves_per_win) == (amounts, 3)


def test_amounts_are_rounded_up():
    assert plan_query({"goal": "pack", "for": "cpu=1n,memory=1m"}).amounts == {"cpu": 1, "memory": 1, "pods": 1}


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"goal": "all"}, "goal: 'all' is not a goal; give place, pack, spread or policy"),
        ({"moves": "0"}, "moves: '0' is refused; give a whole number from 1 to 5000"),
        ({"moves": "5001"}, "moves: '5001' is refused; give a whole number from 1 to 5000"),
        ({"moves": "-1"}, "moves: '-1' is refused; give a whole number from 1 to 5000"),
        ({"moves": "1" * 5000}, "is refused; give a whole number from 1 to 5000"),
        ({"moves": "\N{SUPERSCRIPT TWO}"}, "is refused; give a whole number from 1 to 5000"),
        ({"goal": "pack", "moves-per-win": "x"}, "moves-per-win: 'x' is refused; give a whole number from 0 to 5000"),
        ({"for": "cpu=1"}, "for: is only for the goal pack; set the goal to pack, or omit it"),
        ({"goal": "spread", "moves-per-win": "2"}, "moves-per-win: is only for the goal pack"),
        ({"goal": "pack", "for": "cpu"}, "for: 'cpu' is not a request; give RESOURCE=AMOUNT pairs like cpu=16"),
        ({"goal": "pack", "for": "cpu=1,"}, "for: '' is not a request"),
        ({"goal": "pack", "for": "gpu=1"}, "for: 'gpu' is not a resource that pods request; give cpu, memory"),
        ({"goal": "pack", "for": "pods=1"}, "for: 'pods' is not a resource that pods request"),
        ({"goal": "pack", "for": "cpu=1,cpu=2"}, "for: cpu is given twice"),
        ({"goal": "pack", "for": "memory=64GB"}, "for: the amount of memory: '64GB' is not a quantity; give one like"),
        ({"goal": "pack", "for": "cpu=0"}, "for: the amount of cpu is 0; give more than 0"),
        ({"goal": "pack", "for": "cpu=-1"}, "for: the amount of cpu is -1; give more than 0"),
        ({"limit": "3"}, "limit: is not a parameter; there are goal, moves, for, moves-per-win"),
    ],
    ids=str,
)
def test_an_error_names_the_parameter_and_the_remedy(given, text):
    with pytest.raises(InvalidField) as caught:
        plan_query(given)
    assert text in str(caught.value)
