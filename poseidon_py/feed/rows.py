"""Rows of pods as the columns of an Update."""

from collections.abc import Mapping, Set
from dataclasses import dataclass, field
from operator import attrgetter
from types import MappingProxyType

from poseidon_py.kube.outcomes import Outcome
from poseidon_py.state.records import PodRecord, SentState
from poseidon_py.state.store import Store
from protos.gen import flow_pb2

_COLUMNS = {
    column: attrgetter(column.removesuffix("_id"))
    for column in (
        "leaving",
        "started_us",
        "lasting",
        "unevictable",
        "checkpoint_us",
        "movable",
        "daemon",
        "queue_id",
        "local_queue_id",
        "required_node",
        "least_preemptor",
        "exempt_until_us",
    )
}
"""Those that are left out where they are empty -> what they have of each state."""


@dataclass(slots=True)
class Rows:
    """An Update under construction, and the pods in it with their new states."""

    update: flow_pb2.Update = field(default_factory=flow_pb2.Update)
    pods: list[tuple[PodRecord, SentState]] = field(default_factory=list)
    resent: list[PodRecord] = field(default_factory=list)
    """Those of `pods` that are sent even if nothing has changed."""
    classes: list[int] = field(default_factory=list)
    profiles: list[int] = field(default_factory=list)
    gangs: dict[int, flow_pb2.Gang] = field(default_factory=dict)
    inputs: list[int] = field(default_factory=list)
    _node: dict[str, int] = field(default_factory=dict)
    _uid: list[int] = field(default_factory=list)
    _class: list[int] = field(default_factory=list)
    _job: list[int] = field(default_factory=list)
    _created: list[int] = field(default_factory=list)
    _at: list[int] = field(default_factory=list)
    _name: list[str] = field(default_factory=list)
    _profile: list[int] = field(default_factory=list)
    _gang: list[int] = field(default_factory=list)
    _role: list[int] = field(default_factory=list)
    _inputs: list[int] = field(default_factory=list)
    _nominated: list[int] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self._uid)

    def add(self, known: PodRecord, state: SentState) -> None:
        """Adds a row for the pod."""
        self.pods.append((known, state))
        self._uid.append(known.task)
        self._class.append(state.class_id)
        self._job.append(known.job_id)
        self._created.append(known.age_us)
        self._at.append(self._index_of(state.node))
        self._name.append(known.full_name)
        self._profile.append(state.profile)
        self._gang.append(state.gang)
        self._role.append(state.role)
        self._inputs.append(state.inputs)
        self._nominated.append(self._index_of(state.nominated))

    def retire(self, task: int, outcome: Outcome | None) -> None:
        """Adds a task that has ended with that outcome; None: it was deleted."""
        self.update.removed_tasks.append(task)
        if outcome is Outcome.SUCCEEDED:
            self.update.succeeded_tasks.append(task)
        elif outcome is Outcome.FAILED:
            self.update.failed_tasks.append(task)

    def _index_of(self, node: str) -> int:
        return self._node.setdefault(node, len(self._node) + 1) if node else 0

    def finish(
        self,
        store: Store,
        known_classes: set[int],
        known_profiles: set[int],
        known_gangs: Mapping[int, flow_pb2.Gang] = MappingProxyType({}),
        known_inputs: Set[int] = frozenset(),
    ) -> flow_pb2.Update:
        """The Update, including the classes, profiles, gangs and input sets that it refers to and the engine lacks."""
        tasks = self.update.tasks
        tasks.uid.extend(self._uid)
        tasks.class_id.extend(self._class)
        tasks.job_id.extend(self._job)
        tasks.created_us.extend(self._created)
        tasks.node.extend(self._at)
        tasks.name.extend(self._name)
        tasks.nodes.extend(self._node)
        tasks.profile_id.extend(self._profile)
        if any(self._nominated):
            tasks.nominated.extend(self._nominated)
        states = [state for _, state in self.pods]
        for column, of_state in _COLUMNS.items():
            values = list(map(of_state, states))
            if any(values):
                getattr(tasks, column).extend(values)
        if any(self._gang):
            tasks.gang_id.extend(self._gang)
            tasks.role.extend(self._role)
            for gang_id in set(self._gang) - {0}:
                gang = store.gangs.message(gang_id)
                if gang is not None and known_gangs.get(gang_id) is not gang:
                    self.update.gangs.append(gang)
                    self.gangs[gang_id] = gang
        if any(self._inputs):
            for inputs_id in set(self._inputs) - {0} - known_inputs:
                inputs = store.inputs.get(inputs_id)
                if inputs is not None:
                    self.update.inputs.append(inputs)
                    self.inputs.append(inputs_id)
            tasks.inputs_id.extend(self._inputs)
        for class_id in set(self._class) - known_classes:
            message = store.classes.get(class_id)
            if message is not None:
                self.update.classes.append(message)
                self.classes.append(class_id)
        for profile_id in set(self._profile) - known_profiles:
            profile = store.profiles.get(profile_id)
            if profile is not None:
                self.update.profiles.append(profile)
                self.profiles.append(profile_id)
        return self.update
