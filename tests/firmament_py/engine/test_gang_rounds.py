"""Random gangs on random clusters through rounds, failures and restarts, against plain Python and brute force."""

import numpy as np
import pytest
from hypothesis import event, given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from benchmarks.loads.gangs import START_US, GangLoad, GangSpec
from firmament_py.engine.scheduler import Scheduler
from firmament_py.flow.solver import OrToolsSolver
from firmament_py.model.events import Event, GangRemoved, NodeRemoved, Outcome, PlacementRejected
from firmament_py.model.options import RESERVE_AFTER_US
from firmament_py.state.cluster import ClusterState
from policies.load_spreading import LoadSpreading
from tests.builders import NOW_US, SECOND_US, ended, make_cluster, make_gang, make_node, make_tasks, removed
from tests.effort import seeds
from tests.firmament_py.gang_oracle import CLASSES, HOST, LABEL_SET_OF, LABEL_SETS, RACK, GangWorld, Member

pytestmark = pytest.mark.slow

ALL = sorted(CLASSES)
PLAIN = [1, 2, 3, 4, 11, 12]  # demand nothing of other tasks
AGES = st.sampled_from([0, 1, 2, 50, 60]).map(lambda seconds: NOW_US - seconds * SECOND_US)


@st.composite
def nodes(draw, name: str):
    rack = draw(st.sampled_from(["a", "b", "b", None]))
    labels = {HOST: name, **({RACK: rack} if rack else {})}
    amounts = {"pods": draw(st.sampled_from([2, 9])), "cpu": draw(st.integers(0, 6)), "gpu": draw(st.integers(0, 3))}
    return make_node(name, labels=labels, **amounts)


@st.composite
def gangs(draw, number: int, maximum: int = 4, topology: bool = True, created_us=AGES):
    where = draw(st.sampled_from(["", "", "preferred", "required"])) if topology else ""
    roles = draw(st.sampled_from([None, None, {"lead": 1, "rest": 0}, {"lead": 1, "rest": 2}, {"lead": 0, "rest": 1}]))
    minimum = draw(st.integers(0, maximum))
    surplus = draw(st.sampled_from([None, None, 0, 1, 2]))
    return make_gang(
        number,
        minimum,
        created_us=draw(created_us),
        roles=roles,
        topology=RACK if where else "",
        required=where == "required",
        maximum=0 if surplus is None else max(minimum, sum((roles or {}).values())) + surplus,
    )


def task(uid: int, member: Member):
    return make_tasks(
        [uid],
        member.cls,
        on=member.node,
        created_us=member.created_us,
        gang=member.gang,
        role=member.role,
        label_set=LABEL_SET_OF.get(member.cls, 0),
    )


@st.composite
def worlds(draw, classes=tuple(ALL), mixed: bool = True, topology: bool = True, created_us=AGES):
    """Up to four nodes, four gangs and four single tasks that all wait."""
    world = GangWorld()
    for i in range(draw(st.integers(1, 4))):
        world.nodes[f"n{i}"] = draw(nodes(f"n{i}"))
    of_class, role = st.sampled_from(classes), st.integers(0, 1)
    for number in range(1, draw(st.integers(2, 5))):
        world.gangs[number] = draw(gangs(number, topology=topology, created_us=created_us))
        base = draw(of_class)
        for uid in range(100 * number, 100 * number + draw(st.integers(0, 6))):
            cls = draw(st.one_of(st.just(base), of_class)) if mixed else base
            world.tasks[uid] = Member(cls, number, draw(role), draw(AGES))
    for uid in range(900, 900 + draw(st.integers(0, 4))):
        world.tasks[uid] = Member(draw(of_class), created_us=draw(AGES))
    return world


def cluster_of(world: GangWorld):
    """A cluster with the state of a world."""
    events: list[Event] = [*CLASSES.values(), *LABEL_SETS.values(), *world.nodes.values(), *world.gangs.values()]
    return make_cluster(*events, *(task(uid, member) for uid, member in world.tasks.items()))


# -- one round --------------------------------------------------------------------------------------------------------


@given(world=worlds())
def test_a_round_places_whole_gangs_and_leaves_no_task_that_fits(world):
    cluster = cluster_of(world)
    world.carry_out(cluster.round(), NOW_US)
    assert world.left_over(NOW_US) == []
    if world.started:  # the others of these gangs know now which domain they have to join
        placed = cluster.round() if cluster.scheduler.due(NOW_US) else {}
        world.carry_out(placed, NOW_US)
        assert world.left_over(NOW_US) == []
    states = {0: "none", 1: "one"}.get(len(world.gangs), "several")
    event(f"gangs: {states}")


@given(world=worlds(classes=tuple(PLAIN), mixed=False))
def test_every_placeable_gang_of_one_class_is_placed(world):
    """Maximality: brute force finds no placement of a gang of interchangeable members in the remaining capacity."""
    world.carry_out(cluster_of(world).round(), NOW_US)
    for gang in world.gangs:
        if world.lacking(gang)[0]:
            assert world.could_be_placed(gang, NOW_US) is None


@given(world=worlds(classes=tuple(PLAIN)))
def test_every_placeable_gang_of_several_classes_is_placed(world):
    world.carry_out(cluster_of(world).round(), NOW_US)
    for gang in world.gangs:
        if world.lacking(gang)[0]:
            assert world.could_be_placed(gang, NOW_US) is None


@given(world=worlds(mixed=False))
def test_every_placeable_gang_with_intertask_constraints_is_placed(world):
    world.carry_out(cluster_of(world).round(), NOW_US)
    for gang in world.gangs:
        if world.lacking(gang)[0]:
            assert world.could_be_placed(gang, NOW_US) is None


@given(world=worlds(created_us=st.sampled_from([NOW_US, NOW_US - RESERVE_AFTER_US, NOW_US - 2 * RESERVE_AFTER_US])))
def test_tasks_that_fit_wait_only_for_a_reservation(world):
    cluster = cluster_of(world)
    world.carry_out(cluster.round(), NOW_US)
    assert set(cluster.scheduler.gang_starts_us) <= set(world.may_reserve(NOW_US))
    reserving = [world.priority(gang, NOW_US) for gang in cluster.scheduler.gang_starts_us]
    for uid, _ in world.left_over(NOW_US):
        assert world.tasks[uid].priority <= max(reserving, default=-1), "that capacity is not reserved"


OVERDUE = st.just(NOW_US - RESERVE_AFTER_US)


@given(world=worlds(created_us=OVERDUE), running=st.lists(st.sampled_from([1, 2, 3, 4, 5, 7]), max_size=5))
def test_capacity_is_reserved_only_for_gangs_that_are_placeable_in_future(world, running):
    """Brute force finds a way to place each when others have gone; of those that keep none and have one class that
    depends on nobody it finds no way."""
    for uid, cls in enumerate(running, 800):
        name = next((name for name in world.nodes if world.takes(cls, name)), None)
        if name is not None:
            world.tasks[uid] = Member(cls, node=name)
    cluster = cluster_of(world)
    world.carry_out(cluster.round(), NOW_US)
    keeping = set(cluster.scheduler.gang_starts_us)
    event(f"holders of reservations: {len(keeping)}")
    for gang in keeping:
        assert world.could_be_placed_some_day(gang, NOW_US), f"gang {gang} could never be placed"
    taken = {world.priority(gang, NOW_US) for gang in keeping}
    for gang in world.may_reserve(NOW_US):
        plain = {world.tasks[uid].cls for uid in world.waiting(gang, NOW_US)} <= set(PLAIN)
        if plain and world.priority(gang, NOW_US) not in taken:
            assert not world.could_be_placed_some_day(gang, NOW_US), f"gang {gang} keeps no room"


@given(world=worlds())
def test_equal_events_give_equal_placements(world):
    assert cluster_of(world).round() == cluster_of(world).round()


@given(world=worlds(), data=st.data())
def test_order_of_reports_does_not_matter(world, data):
    """Tasks in another order: the same placements."""
    shuffled = world.copy()
    shuffled.tasks = {uid: shuffled.tasks[uid] for uid in data.draw(st.permutations(list(world.tasks)))}
    assert cluster_of(world).round() == cluster_of(shuffled).round()


@given(world=worlds())
def test_an_immediate_second_round_changes_nothing(world):
    """Except tasks with inter-task constraints, which later placements of others can make placeable, and members beyond
    the minimum of gangs that require a domain: the others decide on it."""
    cluster = cluster_of(world)
    world.carry_out(cluster.round(), NOW_US)
    again = cluster.round()
    world.carry_out(again, NOW_US)
    for uid in again:
        gang = world.tasks[uid].gang
        joins = gang != 0 and world.gangs[gang].topology_required and not world.lacking(gang)[0]
        assert joins or len({member.cls for member in world.members(gang)}) > 1


@given(world=worlds(classes=(1,), mixed=False, topology=False))
def test_of_gangs_with_equal_requests_the_older_goes_first(world):
    """One class, no domains: no complete waiting gang could be placed without the nodes of a younger gang."""
    before = world.copy()
    world.carry_out(cluster_of(world).round(), NOW_US)
    waits = [g for g in world.gangs if world.lacking(g)[0] and world.complete(g, NOW_US)]
    for gang in waits:
        without = before.copy()
        for uid, member in world.tasks.items():
            # of a gang that lacked nothing the tasks are as good as single ones
            grouped = member.gang and before.lacking(member.gang)[0]
            since = world.gangs[member.gang].created_us if grouped else member.created_us
            if member.node and since <= world.gangs[gang].created_us:
                without.tasks[uid].node = member.node
        assert without.could_be_placed(gang, NOW_US) is None or not _complete_in(without, gang)


def _complete_in(world: GangWorld, gang: int) -> bool:
    return world.lacking(gang)[0] > 0 and world.complete(gang, NOW_US)


# -- many rounds ------------------------------------------------------------------------------------------------------


class GangsThroughTheirLives(RuleBasedStateMachine):
    """After any events: no round places part of a gang, over-commits a node or leaves a task that fits."""

    def __init__(self):
        super().__init__()
        self.world = GangWorld()
        self.cluster = cluster_of(self.world)
        self.now_us = NOW_US
        self.uid = 0

    def tell(self, *events):
        for outcome in self.cluster.tell(*events):
            assert outcome == Outcome()

    @initialize(data=st.data())
    def some_nodes(self, data):
        for name in ("n0", "n1", "n2"):
            self.node(name, data)

    @rule(name=st.sampled_from(["n0", "n1", "n2", "n3"]), data=st.data())
    def node(self, name, data):
        """Comes, comes back, grows or shrinks."""
        self.world.nodes[name] = data.draw(nodes(name))
        self.tell(self.world.nodes[name])

    @rule(name=st.sampled_from(["n0", "n1", "n2", "n3"]), with_tasks=st.booleans())
    def node_fails(self, name, with_tasks):
        if self.world.nodes.pop(name, None) is None:
            return
        self.tell(NodeRemoved(f"id-{name}"))
        if with_tasks:
            self.gone([uid for uid, member in self.world.tasks.items() if member.node == name])

    @rule(number=st.integers(1, 4), data=st.data())
    def gang(self, number, data):
        """New, or another minimum, age or topology."""
        created = st.sampled_from([self.now_us, self.now_us - RESERVE_AFTER_US, NOW_US])
        self.world.gangs[number] = data.draw(gangs(number, created_us=created))
        self.tell(self.world.gangs[number])

    @rule(number=st.integers(1, 4))
    def gang_is_over(self, number):
        """Its owner is removed and with it its members, as Kubernetes does."""
        if number in self.world.gangs:
            self.tell(GangRemoved(number))
            self.gone([uid for uid, member in self.world.tasks.items() if member.gang == number])
            del self.world.gangs[number]
            assert self.cluster.state.gangs.known(number) is None

    @rule(
        gang=st.integers(0, 4),
        count=st.integers(1, 5),
        classes=st.lists(st.sampled_from(ALL), min_size=1, max_size=2),
        roles=st.lists(st.integers(0, 1), min_size=1, max_size=2),
    )
    def tasks_come(self, gang, count, classes, roles):
        if gang and gang not in self.world.gangs:
            return
        if len(self.world.tasks) > 30:
            return
        for i in range(count):
            self.uid += 1
            member = Member(classes[i % len(classes)], gang, roles[i % len(roles)], self.now_us)
            self.world.tasks[self.uid] = member
            self.tell(task(self.uid, member))

    @rule(which=st.lists(st.integers(0, 40), min_size=1, max_size=3), end_first=st.booleans())
    def tasks_go(self, which, end_first):
        uids = sorted(self.world.tasks)
        chosen = sorted({uids[i % len(uids)] for i in which}) if uids else []
        if end_first and chosen:
            self.tell(ended(*chosen))
        self.gone(chosen)

    def gone(self, uids):
        if uids:
            self.tell(removed(*uids))
        for uid in uids:
            del self.world.tasks[uid]

    @rule(which=st.integers(0, 40), later=st.booleans())
    def rejected(self, which, later):
        assumed = sorted(uid for uid, member in self.world.tasks.items() if member.assumed)
        if assumed:
            uid = assumed[which % len(assumed)]
            member = self.world.tasks[uid]
            member.not_before_us = self.now_us + 10 * SECOND_US if later else 0
            self.tell(PlacementRejected(uid, f"id-{member.node}", member.not_before_us))
            member.node, member.assumed = None, False

    @rule(which=st.integers(0, 40))
    def bound(self, which):
        assumed = sorted(uid for uid, member in self.world.tasks.items() if member.assumed)
        if assumed:
            uid = assumed[which % len(assumed)]
            self.world.tasks[uid].assumed = False
            self.tell(task(uid, self.world.tasks[uid]))

    @rule()
    def restart(self):
        """The whole state is sent again; assumed tasks count as bound."""
        for member in self.world.tasks.values():
            member.assumed, member.not_before_us = False, 0
        self.cluster = cluster_of(self.world)

    @rule(seconds=st.sampled_from([0, 5, 20, RESERVE_AFTER_US // SECOND_US]))
    def time_passes(self, seconds):
        self.now_us += seconds * SECOND_US

    @rule()
    def round(self):
        due = self.cluster.scheduler.due(self.now_us)
        placed = self.cluster.round(self.now_us)
        # members of several classes that demand something of each other may find more at a second try
        assert due or all(len({t.cls for t in self.world.members(self.world.tasks[uid].gang)}) > 1 for uid in placed)
        self.world.carry_out(placed, self.now_us)
        reserving = [self.world.priority(gang, self.now_us) for gang in self.world.may_reserve(self.now_us)]
        overdue = self.world.overdue_singles(self.now_us)
        for uid, name in self.world.left_over(self.now_us):
            of_others = [*reserving, *(self.world.tasks[other].priority for other in overdue if other != uid)]
            assert self.world.tasks[uid].priority <= max(of_others, default=-1), f"{uid} would fit on {name}"

    @invariant()
    def the_engine_knows_who_is_where(self):
        state = self.cluster.state
        for uid, member in self.world.tasks.items():
            row = state.task_row(uid)
            assert state.nodes.id.get(int(state.tasks.node[row]), "") == (f"id-{member.node}" if member.node else "")
            gang = int(state.tasks.gang[row])
            assert (int(state.gangs.id[gang]) if gang >= 0 else 0) == member.gang
        members = np.bincount([m.gang for m in self.world.tasks.values()], minlength=5)[1:]
        assert len(state.gangs) >= int((members > 0).sum())


TestGangsThroughTheirLives = GangsThroughTheirLives.TestCase


# -- many gangs -------------------------------------------------------------------------------------------------------


@seeds(3)
@pytest.mark.parametrize(("mixed", "gangs"), [(False, 500), (True, 130)], ids=["one-gpu", "mixed"])
def test_gangs_that_request_twice_the_capacity_fill_the_nodes(mixed, gangs, seed):
    """4 to 64 tasks each on 1,000 nodes of 8 GPUs: whole gangs only, on at least 98 % of the GPUs."""
    load = GangLoad(GangSpec(nodes=1000, gangs=gangs, mixed=mixed, seed=seed))
    state = ClusterState()
    events: list[Event] = [*load.nodes, *load.classes, *load.gangs, load.tasks()]
    for reported in events:
        assert state.apply(reported) == Outcome()
    result = Scheduler(state, LoadSpreading(), OrToolsSolver()).run(START_US + SECOND_US)
    state.validate()
    assert result.stats.dropped == 0
    uids = state.tasks.uid[result.tasks]
    admitted, half = load.admitted(uids)
    assert half == []
    assert load.violations(uids, [state.nodes.id[row] for row in result.nodes.tolist()]) == []
    assert load.gpus_of(admitted) >= 0.98 * 8000
