"""One gang: the declarations of its members and their objects, merged into the message for the engine."""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from poseidon_py.state.gangs.members import Admission, Ended, Member, Needs, Tally, shortage, tally
from poseidon_py.state.gangs.model import Declaration, Resource, Stage
from poseidon_py.state.records import PodRecord
from poseidon_py.util.ids import hash64
from protos.gen import flow_pb2

_MAX_ROLES = 60
_SECOND_US = 1_000_000
_LONGEST_ROW = 10_000


@dataclass(slots=True)
class Group:
    """A gang. It exists as long as a member, its PodGroup or its owner does."""

    key: str
    name: str = ""
    members: dict[str, Member] = field(default_factory=dict)
    """By UID: those that have not ended."""
    ended: Ended = field(default_factory=Ended)
    announced: dict[str, int] = field(default_factory=dict)
    """Minimums that pods outside the gang declare, by their UIDs."""
    first_us: int = 0
    """Creation time of the earliest member ever observed, also if deleted; microseconds since the epoch."""
    object_ref: tuple[Resource, str, str] | None = None
    owner_uid: str = ""
    is_workload: bool = False
    """Whether it keeps its quota from when it starts until it ends."""
    anchor: str = ""
    """UID of the owner whose pods its members are; empty: there is none, or several."""
    admission: Admission | None = None
    """What it keeps; None: nothing, it has not started or has ended."""
    pods_left: int | None = None
    """Number of pods of that owner that have yet to succeed; None: unknown."""
    timeout: float | None = None
    dirty: bool = True
    bound: dict[str, int] = field(default_factory=dict)
    """UIDs of members that are bound and not being deleted, with the numbers of their roles."""
    complete: bool = False
    """Whether its minimum is bound or has succeeded."""
    started: bool = False
    """Whether it was complete at some time since it last had no member on a node and none that has succeeded."""
    disrupted: bool = False
    """Whether a bound member was evicted or deleted since the gang was complete."""
    preempted: bool = False
    """Whether all of its bound members are victims of preemption, or were when it last had any."""
    message: flow_pb2.Gang | None = None
    """As the engine has it: what it needs beside the members that have succeeded."""
    needs: Needs = field(default_factory=Needs)
    whole_quota: dict[str, int] = field(default_factory=dict)
    """What all members request together that have yet to succeed, some of which are created later; empty: it is
    not known, or no member is."""
    problem: str = ""
    """Contradictions between the declarations of its members."""
    _required: dict[str, str] = field(default_factory=dict)
    """UID -> topology that the member requires."""
    _requiring: Counter[str] = field(default_factory=Counter)
    """Topology -> number of members that require it."""
    _roles: dict[str, int] = field(default_factory=dict)
    """Name -> number; only grows, because the engine's tasks refer to the numbers."""

    @property
    def id(self) -> int:
        """Its id in the engine."""
        return hash64(self.key)

    @property
    def minimum(self) -> int:
        """Members that it needs, with those that have succeeded."""
        counted = len(self.ended.succeeded) if self.needs.counted else 0
        return min(self.needed()[0] + counted, self.needs.minimum)

    def needed(self) -> tuple[int, list[int]]:
        """Members that it needs beside those that have succeeded: in all, and of each role."""
        return self.needs.still(self.ended.succeeded.values())

    def tally(self) -> Tally:
        """How many members it has."""
        return tally(self.members.values(), self.ended)

    @property
    def assigned_to_us(self) -> bool:
        """Whether any member is, or was, this scheduler's: others are left to theirs."""
        return bool(self.ended.assigned_to_us) or any(member.assigned_to_us for member in self.members.values())

    @property
    def is_half_bound(self) -> bool:
        """Whether this scheduler has bound members of it, and too few."""
        return not self.complete and any(self.members[uid].assigned_to_us for uid in self.bound)

    @property
    def keeps(self) -> bool:
        """Whether it keeps its quota."""
        return self.admission is not None

    @property
    def disrupted_whole(self) -> bool:
        """Whether it can only be disrupted as a whole."""
        return self.message is not None and self.message.disrupted_whole

    @property
    def broken(self) -> bool:
        """Whether it was complete and has lost members to a disruption, so that it has to be replaced as a whole."""
        lost = self.started and not self.complete and self.disrupted
        return self.disrupted_whole and lost and bool(self.bound)

    def settled(self) -> Iterator[PodRecord]:
        """Members that are bound or being bound, and not being deleted."""
        for member in self.members.values():
            known = member.known
            if (known.node or known.assumed) and not known.observed.deleting:
                yield known

    def missing(self) -> tuple[int, dict[str, int]]:
        """Members that must be created before it can be placed: in all, and by the names of roles that lack some."""
        there = {
            uid: member.known.gang.role
            for uid, member in self.members.items()
            if not member.known.observed.deleting
            and (member.known.schedulable or member.known.node or member.known.assumed)
        }
        count, roles = shortage(self.needed(), there)
        names = list(self._roles)
        return count, {names[role]: lacking for role, lacking in roles.items()}

    def lacking(self) -> tuple[int, dict[int, int]]:
        """Members that have yet to be placed: in all, and by role."""
        return shortage(self.needed(), {known.uid: known.gang.role for known in self.settled()})

    def is_declared_elsewhere(self, declaration: Declaration) -> bool:
        """Whether other pods declare what this declaration leaves out."""
        return declaration.by_pods and (bool(self.announced) or self.message is not None)

    @property
    def required_topology(self) -> str:
        """The topology that its members require: of several the first by name; empty: none."""
        return min(self._requiring, default="")

    def require(self, uid: str, topology: str) -> bool:
        """A member requires this topology; empty: none, or it has left. Returns whether `required_topology` changes."""
        before, required = self.required_topology, self._required.pop(uid, "")
        if required:
            self._requiring[required] -= 1
            self._requiring += Counter()  # without what nobody requires any more
        if topology:
            self._required[uid] = topology
            self._requiring[topology] += 1
        return self.required_topology != before

    def obstacle(self, declaration: Declaration) -> str:
        """Why a member with this declaration waits, whatever capacity there is; empty: it does not."""
        if declaration.waits:
            return "" if self.is_declared_elsewhere(declaration) else declaration.waits
        if not declaration.topology_required or declaration.topology_key == self.required_topology:
            return ""
        return (
            f"the pod requires topology {declaration.topology_key}, and others of {declaration.name} require "
            f"{self.required_topology}: a gang has one topology; give all its pods the same"
        )

    def role_of(self, declaration: Declaration | None) -> int:
        """The number of the role of a member with this declaration."""
        if declaration is None or not (declaration.roles or declaration.role or self._roles):
            return 0
        for name, _ in declaration.roles:
            self._roles.setdefault(name, len(self._roles))
        number = self._roles.setdefault(declaration.role, len(self._roles))
        return number if number < _MAX_ROLES else 0

    def short(self, placed: Mapping[str, int]) -> bool:
        """Whether these members (UID -> number of the role), with those that have succeeded, are fewer than the gang
        needs, in total or of a role."""
        needed = self.needed()
        return self.message is not None and (len(placed) < needed[0] or shortage(needed, placed)[0] > 0)

    def merge(self) -> bool:
        """Build `message` and `problem` from the declarations. Returns whether the message has changed."""
        self.dirty = False
        declarations = [
            m.declaration for m in self.members.values() if m.declaration is not None and not m.declaration.waits
        ]
        if not self.members and self.ended.declaration is not None and not self.ended.declaration.waits:
            declarations = [self.ended.declaration]
        if not declarations and not self.announced:  # nothing declares it at the moment: keep the last message
            message = flow_pb2.Gang()
            message.CopyFrom(self.message or message)
            return self._replace(message) if self.message is not None else False
        self.problem = ""
        message = flow_pb2.Gang(id=self.id, name=self.name)
        minimums = sorted({each.minimum for each in declarations} | set(self.announced.values()))
        message.minimum = minimums[-1]
        if len({each.minimum for each in declarations}) > 1:
            self._note(f"its members declare different minimums ({', '.join(map(str, minimums))}); the largest applies")
        self._merge_roles(message, declarations)
        self._merge_maximum(message, declarations)
        topologies = {(each.topology_key, each.topology_required, each.narrower_keys) for each in declarations}
        if keys := sorted((each for each in topologies if each[0]), key=lambda each: (not each[1], each)):
            message.topology_key, message.topology_required, message.narrower_keys[:] = keys[0]
            if len(keys) > 1:
                self._note(f"its members declare different topologies; {keys[0][0]} applies")
            self._add_levels_above(message)
        sizes = [each.size for each in declarations if each.size is not None]
        if sizes and message.minimum > max(sizes):
            self._note(f"its minimum of {message.minimum} is more than its number of pods, {max(sizes)}")
        self._compare_priorities({each.priority for each in declarations})
        message.disrupted_whole = any(each.disrupted_whole for each in declarations)
        self.timeout = next((each.timeout for each in declarations if each.timeout is not None), None)
        self.needs = Needs(
            message.minimum,
            tuple(role.minimum for role in message.roles),
            not any(each.at_once for each in declarations),
            self._left(declarations),
        )
        self._take_stages(next((each.stages for each in declarations if each.stages), ()))
        message.minimum, roles = self.needed()
        for role, minimum in zip(message.roles, roles, strict=True):
            role.minimum = minimum
        if not self.ended.succeeded:  # it has not started yet, as far as the API server shows
            amounts = next((each.start_amounts for each in declarations if each.start_amounts), ())
            message.start_amounts.update(amounts)
        message.created_us = self._created(declarations)
        return self._replace(message)

    def _replace(self, message: flow_pb2.Gang) -> bool:
        """Takes the message, with what is kept. Returns whether it has changed."""
        for name in ("keeps", "queue", "keeps_on", "staged"):
            message.ClearField(name)
        if self.admission is not None:
            needed = self.needed()[0]
            of_pods = self.admission.amounts(needed if self.pods_left is None else min(needed, self.pods_left))
            message.keeps.update(self.whole_quota or of_pods)
            message.queue, message.keeps_on = self.admission.queue, self.admission.node
        elif self.whole_quota and len(queues := {member.known.queue.id for member in self.members.values()} - {0}) == 1:
            message.keeps.update(self.whole_quota)
            message.queue, message.staged = queues.pop(), True
        if self.message == message:
            return False
        self.message = message
        return True

    def _take_stages(self, stages: tuple[Stage, ...]) -> None:
        """Of a workload with these stages: it needs those of which members exist, and asks for the quota of all."""
        self.whole_quota = {}
        if not stages:
            return
        for each in stages:
            for resource, amount in each.requests:
                self.whole_quota[resource] = self.whole_quota.get(resource, 0) + amount * each.pods
        there = {member.known.gang.role for member in self.members.values()}
        least = {each.name: each.least for each in stages}
        roles = tuple(least.get(name, 0) if number in there else 0 for name, number in self._roles.items())
        minimum = max(sum(roles), 1)
        self.needs = Needs(minimum, roles, False, max(minimum - self._finished_in_part(), 0))

    def _add_levels_above(self, message: flow_pb2.Gang) -> None:
        """Add the levels above that of the topology, if the queues of all members name the same: a domain is within
        one of each, and they follow a preferred one."""
        of_queues = {member.known.queue.topology_levels for member in self.members.values()}
        levels = of_queues.pop() if len(of_queues) == 1 else ()
        if levels[:1] == (message.topology_key,) and message.topology_required:
            message.outer_keys[:] = levels[1:]
        elif levels[:1] == (message.topology_key,):
            message.narrower_keys[:], message.topology_key = levels[:-1], levels[-1]

    def _compare_priorities(self, declared: set[int | None]) -> None:
        """`declared`: the priorities that its PodGroup gives its members; None: their own."""
        of_group = next((priority for priority in declared if priority is not None), None)
        own = {member.priority for member in self.members.values()}
        found = ", ".join(map(str, sorted(own)))
        if of_group is not None and own - {of_group}:
            self._note(f"its members have priority {found}, but the pod group has {of_group}, which applies")
        elif of_group is None and len(own) > 1:
            self._note(f"its members have different priorities ({found}); the highest of the pending ones applies")

    def _note(self, problem: str) -> None:
        self.problem = f"{self.problem}; {problem}" if self.problem else problem

    def _merge_roles(self, message: flow_pb2.Gang, declarations: list[Declaration]) -> None:
        least: dict[str, int] = {}
        for declaration in declarations:
            for name, minimum in declaration.roles:
                self._roles.setdefault(name, len(self._roles))
                least[name] = max(least.get(name, 0), minimum)
        if len(self._roles) > _MAX_ROLES:
            self._note(f"it has {len(self._roles)} roles; with more than {_MAX_ROLES} roles their minimums are ignored")
            return
        for name in self._roles:
            message.roles.add(name=name, minimum=least.get(name, 0))

    def _merge_maximum(self, message: flow_pb2.Gang, declarations: list[Declaration]) -> None:
        maximums = sorted({each.maximum for each in declarations if each.maximum})
        if not maximums:
            return
        message.maximum = maximums[0]
        if len(maximums) > 1:
            found = ", ".join(map(str, maximums))
            self._note(f"its members declare different maximums ({found}); the smallest applies")
        needed = max(message.minimum, sum(role.minimum for role in message.roles))
        if message.maximum < needed:
            self._note(f"its maximum of {message.maximum} is less than its minimum of {needed}; {needed} applies")
            message.maximum = needed

    def _left(self, declarations: list[Declaration]) -> int | None:
        """Number of pods that have yet to succeed; None: unknown, or there is no such number."""
        left = next((each.left for each in declarations if each.left is not None), None)
        if left is None:
            top = {m.owners[-1].uid: m.owners[-1].counts.left for m in self.members.values() if m.owners}
            if len(top) != 1 or not all(m.owners for m in self.members.values()):
                return None
            left = next(iter(top.values()))
        if left is None:
            return None
        return left - self._finished_in_part()

    def _finished_in_part(self) -> int:
        """Number of pods that have succeeded of Jobs that a JobSet does not count yet, since others have not."""
        jobs = {m.owners[0].uid: m.owners[0].counts for m in self.members.values() if len(m.owners) > 1}
        return sum(job.size - job.left for job in jobs.values() if job.size and job.left and job.left < job.size)

    def _created(self, declarations: list[Declaration]) -> int:
        """The creation time. The API's times are whole seconds: a hash orders gangs of one second reproducibly, but for
        those of one sequence."""
        created = next((each.created_us for each in declarations if each.created_us), 0)
        if not created:
            owners = {m.owners[0].uid: m.owners[0].created_us for m in self.members.values() if m.owners}
            created = next(iter(owners.values())) if len(owners) == 1 else 0
        created = created or self.first_us
        if created % _SECOND_US:
            return created
        row, place = next((each.sequence for each in declarations if each.sequence[0]), (self.key, 0))
        return created + hash64(row, 1) % (_SECOND_US - _LONGEST_ROW) + min(place, _LONGEST_ROW - 1)
