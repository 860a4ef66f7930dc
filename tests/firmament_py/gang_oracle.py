"""A cluster with gangs in plain Python that gets the same events as the engine and checks each of its rounds.

Three of its classes have inter-task constraints: ALONE repels itself on a host, NEAR has affinity to it in its rack,
EVEN is spread over racks. Brute force over all placements of a gang, for a handful of nodes and members.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from firmament_py.model.constraints import PeerDemand, PeerTerm, Spread
from firmament_py.model.events import GangObserved, NodeObserved
from firmament_py.model.options import RESERVE_AFTER_US
from tests.builders import make_class, make_label_set, needs, tasks_like
from tests.firmament_py.oracle import offers, requests

RACK, HOST = "rack", "host"
ALONE = PeerDemand(anti_affinity=(PeerTerm(tasks_like(needs("app", "In", "alone")), HOST),))
NEAR = PeerDemand(affinity=(PeerTerm(tasks_like(needs("app", "In", "alone")), RACK),))
EVEN = PeerDemand(spread=(Spread(tasks_like(needs("app", "In", "even")), RACK),))
LABEL_SETS = {1: make_label_set(1, app="alone"), 2: make_label_set(2, app="even")}

CLASSES = {
    1: make_class(1, cpu=1),
    2: make_class(2, cpu=2),
    3: make_class(3, cpu=3, gpu=1),
    4: make_class(4, gpu=1),
    5: make_class(5, cpu=1, peers=ALONE),
    6: make_class(6, cpu=1, peers=NEAR),
    7: make_class(7, cpu=1, peers=EVEN),
    11: make_class(11, cpu=1, priority=5),
    12: make_class(12, cpu=2, priority=5),
}
ALONE_CLASS, NEAR_CLASS, EVEN_CLASS = 5, 6, 7
LABEL_SET_OF = {ALONE_CLASS: 1, EVEN_CLASS: 2}


@dataclass
class Member:
    cls: int
    gang: int = 0
    role: int = 0
    created_us: int = 0
    node: str | None = None
    assumed: bool = False
    not_before_us: int = 0
    weightless: bool = False

    @property
    def priority(self) -> int:
        return CLASSES[self.cls].priority


@dataclass
class GangWorld:
    """Nodes by name, tasks by uid, gangs by id."""

    nodes: dict[str, NodeObserved] = field(default_factory=dict)
    tasks: dict[int, Member] = field(default_factory=dict)
    gangs: dict[int, GangObserved] = field(default_factory=dict)
    started: set[int] = field(default_factory=set)
    """Those that require a domain, and have got what they lacked in the last round: others join them in the next."""

    def copy(self) -> "GangWorld":
        return GangWorld(dict(self.nodes), {uid: replace(task) for uid, task in self.tasks.items()}, dict(self.gangs))

    # -- what there is --------------------------------------------------------------------------------------------

    def used(self, name: str) -> Counter[str]:
        total: Counter[str] = Counter()
        for task in self.tasks.values():
            if task.node == name and not task.weightless:
                total.update(requests(CLASSES[task.cls]))
        return total

    def takes(self, cls: int, name: str) -> bool:
        """Whether a node would take one more task of a class."""
        used, offered = self.used(name), offers(self.nodes[name])
        if any(used[r] + amount > offered[r] for r, amount in requests(CLASSES[cls]).items() if amount):
            return False
        if cls == ALONE_CLASS:
            return not self.has_alone([name])
        rack = self.rack(name)
        if cls == NEAR_CLASS:
            return rack is not None and self.has_alone(self.of_rack(rack))
        if cls == EVEN_CLASS:
            counts = self.evenness()
            return rack is not None and counts[rack] + 1 - min(counts.values()) <= 1
        return True

    def has_alone(self, names: Sequence[str]) -> bool:
        return any(task.node in names and task.cls == ALONE_CLASS for task in self.tasks.values())

    def of_rack(self, rack: str) -> list[str]:
        return [name for name in self.nodes if self.rack(name) == rack]

    def evenness(self) -> dict[str, int]:
        """Tasks of EVEN in each rack."""
        where = [self.rack(task.node) for task in self.tasks.values() if task.cls == EVEN_CLASS]
        return {rack: where.count(rack) for rack in self.racks()}

    def problems(self) -> list[str]:
        """Violations that no round may cause."""
        found = []
        for name, node in self.nodes.items():
            if self.used(name) - offers(node):
                found.append(f"{name} is over-committed")
            if sum(t.node == name and t.cls == ALONE_CLASS for t in self.tasks.values()) > 1:
                found.append(f"two on {name} that keep away from each other")
        return found

    def members(self, gang: int) -> list[Member]:
        return [task for task in self.tasks.values() if task.gang == gang]

    def lacking(self, gang: int) -> tuple[int, list[int]]:
        """How many placed members the gang needs to have more: in all, and of each role."""
        placed = [task for task in self.members(gang) if task.node]
        definition = self.gangs[gang]
        of_role = [
            max(minimum - sum(task.role == number for task in placed), 0)
            for number, (_, minimum) in enumerate(definition.roles)
        ]
        undecided = definition.topology_required and self.settled(gang) is None
        return max(definition.minimum - len(placed), sum(of_role), int(undecided)), of_role

    def quota(self, gang: int) -> int:
        """How many more of its members may be placed."""
        maximum = self.gangs[gang].maximum
        return maximum - sum(task.node is not None for task in self.members(gang)) if maximum else 1000

    def waiting(self, gang: int, now_us: int) -> list[int]:
        return [
            uid
            for uid, task in self.tasks.items()
            if task.gang == gang and task.node is None and task.not_before_us <= now_us
        ]

    def complete(self, gang: int, now_us: int) -> bool:
        """Whether enough members wait to make up what it lacks, and may be placed."""
        total, of_role = self.lacking(gang)
        if total > self.quota(gang):
            return False
        waiting = [self.tasks[uid] for uid in self.waiting(gang, now_us)]
        return len(waiting) >= total and all(
            sum(task.role == number for task in waiting) >= need for number, need in enumerate(of_role)
        )

    def may_reserve(self, now_us: int) -> list[int]:
        """Gangs that have waited long enough for a reservation."""
        return [
            gang
            for gang, definition in self.gangs.items()
            if now_us - definition.created_us >= RESERVE_AFTER_US
            and self.lacking(gang)[0]
            and self.complete(gang, now_us)
        ]

    def overdue_singles(self, now_us: int) -> list[int]:
        """Tasks of no gang that have waited long enough for a reservation."""
        return [
            uid
            for uid, task in self.tasks.items()
            if not task.gang and task.node is None and now_us - task.created_us >= RESERVE_AFTER_US
        ]

    def priority(self, gang: int, now_us: int) -> int:
        return max((self.tasks[uid].priority for uid in self.waiting(gang, now_us)), default=0)

    # -- what a round did -----------------------------------------------------------------------------------------

    def carry_out(self, placed: dict[int, str], now_us: int) -> None:
        """Applies the placements of a round; asserts that they are valid."""
        before = self.copy()
        lacked = {gang for gang, its in self.gangs.items() if its.topology_required and self.lacking(gang)[0]}
        for uid, name in placed.items():
            task = self.tasks[uid]
            assert task.node is None, f"{uid} is placed and was placed already"
            assert task.not_before_us <= now_us, f"{uid} is placed before its time"
            assert name in self.nodes
            task.node, task.assumed = name, True
        self.started = {gang for gang in lacked if not self.lacking(gang)[0]}
        assert set(self.problems()) <= set(before.problems())
        for uid, name in placed.items():
            if self.tasks[uid].cls == NEAR_CLASS:
                assert self.has_alone(self.of_rack(self.rack(name) or "")), f"{uid} is alone in its rack"
        for gang in {self.tasks[uid].gang for uid in placed} - {0}:
            assert self.lacking(gang)[0] == 0, f"half of gang {gang} was placed: {placed}"
            assert self.quota(gang) >= 0, f"more of gang {gang} than its maximum was placed: {placed}"
            self._assert_topology(before, gang, [uid for uid in placed if self.tasks[uid].gang == gang])

    def _assert_topology(self, before: "GangWorld", gang: int, new: Sequence[int]) -> None:
        if not self.gangs[gang].topology_required:
            return
        at, settled = {self.rack(self.tasks[uid].node) for uid in new}, before.settled(gang)
        if not (at <= settled if settled is not None else None not in at and len(at) == 1):
            raise AssertionError(f"gang {gang} is not in one domain")

    def rack(self, name: str | None) -> str | None:
        return self.nodes[name].labels.get(RACK) if name in self.nodes else None

    def racks(self) -> list[str]:
        return sorted({node.labels[RACK] for node in self.nodes.values() if RACK in node.labels})

    def settled(self, gang: int) -> set[str | None] | None:
        """Racks where members are, None if none is in a rack."""
        return {self.rack(task.node) for task in self.members(gang)} - {None} or None

    # -- what it could have done ----------------------------------------------------------------------------------

    def left_over(self, now_us: int) -> list[tuple[int, str]]:
        """Waiting tasks whose gang does not prevent their placement, each with a node that could take it."""
        return [
            (uid, name)
            for uid, task in self.tasks.items()
            if task.node is None and task.not_before_us <= now_us
            if task.gang == 0 or (not self.lacking(task.gang)[0] and self.quota(task.gang) > 0)
            if task.gang not in self.started
            for name in self.nodes
            if self.takes(task.cls, name) and self.in_domain(task.gang, name)
        ]

    def in_domain(self, gang: int, name: str) -> bool:
        """Whether a further member of a gang that lacks none may be on a node."""
        settled = self.settled(gang) if gang and self.gangs[gang].topology_required else None
        return settled is None or self.rack(name) in settled

    def could_be_placed(self, gang: int, now_us: int) -> dict[int, str] | None:
        """A placement of the lacking members in the remaining capacity, None if there is none. Brute force."""
        total, of_role = self.lacking(gang)
        if not self.complete(gang, now_us):
            return None
        uids = sorted(self.waiting(gang, now_us), key=lambda uid: (self.tasks[uid].cls, self.tasks[uid].role, uid))
        domains: list[Iterable[str]] = [list(self.nodes)]
        if self.gangs[gang].topology_required:
            settled = self.settled(gang)
            of = [settled] if settled is not None else [{rack} for rack in self.racks()]
            domains = [[name for name in self.nodes if self.rack(name) in racks] for racks in of]
        for names in domains:
            found = self._search(uids, total, of_role, sorted(names), {})
            if found is not None:
                return found
        return None

    def could_be_placed_some_day(self, gang: int, now_us: int) -> bool:
        """Whether it could without all others, or if those that its members attract or repel used nothing."""
        empty, weightless = self.copy(), self.copy()
        for uid, task in self.tasks.items():
            if task.node and task.gang != gang:
                del empty.tasks[uid]
                weightless.tasks[uid].weightless = True
        return any(world.could_be_placed(gang, now_us) is not None for world in (empty, weightless))

    def _search(
        self, uids: list[int], total: int, of_role: list[int], names: list[str], so_far: dict[int, str]
    ) -> dict[int, str] | None:
        left = max(total - len(so_far), 0)
        roles = Counter(self.tasks[uid].role for uid in so_far)
        short = [max(need - roles[number], 0) for number, need in enumerate(of_role)]
        if left == 0 and not any(short):
            return dict(so_far)
        available = Counter(self.tasks[uid].role for uid in uids)
        if len(uids) < left or any(available[number] < need for number, need in enumerate(short)):
            return None
        uid, others = uids[0], uids[1:]
        task = self.tasks[uid]
        for name in names:
            if self.takes(task.cls, name):
                task.node = name
                found = self._search(others, total, of_role, names, {**so_far, uid: name})
                task.node = None
                if found is not None:
                    return found
        # without this one: then without its like, too
        return self._search(
            [other for other in others if (self.tasks[other].cls, self.tasks[other].role) != (task.cls, task.role)],
            total,
            of_role,
            names,
            so_far,
        )
