"""Gangs whose topology has several levels, compared with brute force."""

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.builders import make_class, make_cluster, make_gang, make_node, make_tasks

LEVELS = ("rack", "block", "dc")
SIZES = {1: 1, 2: 2}
"""GPUs by class."""


def nodes(**labelled: str):
    """Nodes by name: GPUs, then the values of rack, block and dc; - for a label that is missing."""
    for name, text in labelled.items():
        gpus, *values = text.split()
        labels = {key: value for key, value in zip(LEVELS, values, strict=True) if value != "-"}
        yield make_node(name, gpu=int(gpus), labels=labels)


def gang(size: int, *levels: str, required: bool = False):
    *narrower, widest = levels
    return (
        make_gang(1, size, topology=widest, narrower=narrower, required=required),
        make_tasks(range(101, 101 + size), 1, gang=1),
    )


def placed_on(*events):
    return set(make_cluster(make_class(1, gpu=1), *events).round().values())


TWO_BLOCKS = {"a": "2 r1 x d", "b": "2 r2 x d", "c": "2 r3 y d", "e": "1 r4 y d", "f": "9 r5 z other"}


@pytest.mark.parametrize(
    ("size", "levels", "required", "expected"),
    [
        pytest.param(3, ("rack", "block"), True, {"f"}, id="a-rack-before-a-tighter-block"),
        pytest.param(10, LEVELS, False, {"a", "b", "c", "e", "f"}, id="all-nodes"),
        pytest.param(10, LEVELS, True, set(), id="no-domain-of-the-required-level"),
    ],
)
def test_examples(size, levels, required, expected):
    placed = placed_on(*nodes(**TWO_BLOCKS), *gang(size, *levels, required=required))
    assert placed <= expected
    assert bool(placed) == bool(expected)


@pytest.mark.parametrize(
    ("size", "expected"),
    [(3, {"c", "e"}), (4, {"a", "b"}), (5, {"a", "b", "c", "e"}), (8, {"a", "b", "c", "e", "g"})],
)
def test_each_level_is_tried_before_the_next(size, expected):
    smaller = TWO_BLOCKS | {"f": "0 r5 z other", "g": "1 - - -"}
    assert placed_on(*nodes(**smaller), *gang(size, *LEVELS)) == expected


def test_racks_of_one_name_in_two_blocks_are_two():
    """Three fit in no rack, but in block y."""
    same_name = {"a": "2 r1 x d", "b": "2 r1 y d", "c": "1 r2 y d"}
    assert placed_on(*nodes(**same_name), *gang(3, *LEVELS)) == {"b", "c"}


def test_later_members_stay_in_the_narrowest_level_that_takes_them():
    """Rack r1 of the first member is full: the second goes to another rack of its block, although r3 is smaller."""
    events = nodes(a="1 r1 x d", b="3 r2 x d", c="1 r3 y d")
    running = make_tasks([101], 1, gang=1, on="a")
    definition = make_gang(1, 2, topology="dc", narrower=["rack", "block"])
    assert placed_on(*events, definition, running, make_tasks([102], 1, gang=1)) == {"b"}


def test_a_member_outside_of_all_racks_keeps_the_others_in_its_block():
    events = nodes(a="1 - x d", b="1 r1 y d", c="3 r2 x d")
    running = make_tasks([101], 1, gang=1, on="a")
    definition = make_gang(1, 2, topology="dc", narrower=["rack", "block"])
    assert placed_on(*events, definition, running, make_tasks([102], 1, gang=1)) == {"c"}


# -- brute force ------------------------------------------------------------------------------------------------------

VALUES = st.sampled_from(["-", "1", "1", "2"])
NODES = st.lists(st.tuples(st.integers(0, 4), VALUES, VALUES, VALUES), min_size=1, max_size=6)


class World:
    """Nodes as (GPUs, rack, block, dc), members by their class, and those that run by class and node."""

    def __init__(self, described, members, running):
        self.described, self.members = described, members
        self.running, self.free = [], [gpus for gpus, *_ in described]
        for cls, node in running:
            node %= len(described)
            if self.free[node] >= SIZES[cls]:
                self.free[node] -= SIZES[cls]
                self.running.append((cls, node))

    def takes(self, domain):
        """Whether some placement has all members that wait in the domain."""
        for places in product(sorted(domain), repeat=len(self.members)):
            used = [0] * len(self.free)
            for cls, node in zip(self.members, places, strict=True):
                used[node] += SIZES[cls]
            if all(map(int.__le__, used, self.free)):
                return True
        return False

    def domains(self, first):
        """Sets of nodes for each of the levels from `first` on, the narrowest first."""
        found, allowed = [], set(range(len(self.described)))
        for level in reversed(range(first, len(LEVELS))):
            by_path: dict[tuple[str, ...], set[int]] = {}
            for node in sorted(allowed):
                path = tuple(self.described[node][1 + level :])
                if "-" not in path:
                    by_path.setdefault(path, set()).add(node)
            settled = [domain for domain in by_path.values() if domain & {node for _, node in self.running}]
            found.append([set().union(*settled)] if settled else list(by_path.values()))
            allowed = set().union(*found[-1])
        return found[::-1]

    def events(self):
        for i, (gpus, *values) in enumerate(self.described):
            yield from nodes(**{f"n{i}": " ".join((str(gpus), *values))})
        yield from (make_class(cls, gpu=size) for cls, size in SIZES.items())
        for uid, (cls, node) in enumerate(self.running, start=201):
            yield make_tasks([uid], cls, gang=1, on=f"n{node}")
        yield from (make_tasks([uid], cls, gang=1) for uid, cls in enumerate(self.members, start=101))


CLASSES = st.sampled_from(sorted(SIZES))


@given(
    NODES,
    st.lists(CLASSES, min_size=1, max_size=4),
    st.lists(st.tuples(CLASSES, st.integers(0, 5)), max_size=2),
    st.integers(0, 2),
    st.booleans(),
)
def test_a_gang_is_in_the_narrowest_domain_that_takes_it_whole(described, members, running, first, required):
    world = World(described, members, running)
    size = len(members) + len(world.running)
    *narrower, widest = LEVELS[first:]
    definition = make_gang(1, size, topology=widest, narrower=narrower, required=required)
    placed = make_cluster(definition, *world.events()).round()
    levels = world.domains(first) + ([] if required else [[set(range(len(described)))]])
    able = next((some for level in levels if (some := [each for each in level if world.takes(each)])), [])
    assert len(placed) == (len(members) if able else 0)
    where = {int(name[1:]) for name in placed.values()}
    assert not able or any(where <= domain for domain in able)
