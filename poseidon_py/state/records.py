"""The records of pods in the store.

A pod's record is split by origin: the API server (`ObservedPod`), our description of it for the engine
(`DescribedPod`, `VolumeNeeds`, `GangMembership`), and the state last sent to the engine (`SentState`).
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from poseidon_py.describe.annotations.class_terms import SILENT_CLASS, ClassTerms
from poseidon_py.describe.annotations.preemption_terms import SILENT, Announcement, PreemptionTerms
from poseidon_py.devices.pod_needs import NO_DEVICES
from poseidon_py.kube.objects import InvalidField, Pod, micros
from poseidon_py.state.claim_use import ClaimUse
from poseidon_py.state.pod_lifecycle import TRANSITIONS, PodEvent, PodState
from poseidon_py.util.ids import job_id


class SentState(NamedTuple):
    """The state of a pod that was last sent to the engine."""

    class_id: int
    """0: the engine refused the task."""
    node: str
    """Id of a node; "": none."""
    profile: int = 0
    leaving: bool = False
    gang: int = 0
    role: int = 0
    inputs: int = 0
    started_us: int = 0
    lasting: bool = False
    nominated: str = ""
    """Id of a node; "": none."""
    unevictable: bool = False
    checkpoint_us: int = 0
    movable: bool = False
    daemon: bool = False
    queue: int = 0
    """Id of a queue; 0: none."""
    local_queue: int = 0
    """Id of a local queue; 0: none."""
    required_node: str = ""
    """Name of the only node for it; "": any, or its class says so."""
    least_preemptor: int = 0
    exempt_until_us: int = 0
    """Until then, microseconds since the epoch, pods of a priority below `least_preemptor` do not preempt it."""


@dataclass(slots=True)
class ObservedPod:
    """The pod's state on the API server, except the node that it is bound to."""

    newest: Pod | None = None
    """The newest object; None once it has been described."""
    version: str = ""
    """Resource version."""
    generation: int = 0
    """That of the specification; 0: the API server counts none."""
    fingerprint: int = 0
    """Hash of the fields that affect the description of a bound pod; 0 while it is not bound."""
    scheduler: str = ""
    """`spec.schedulerName` if it is one of ours."""
    gated: bool = False
    deleting: bool = False
    disrupted: bool = False
    """Whether it has the condition of a victim of preemption; only set for bound pods."""
    running: bool = False
    """Whether its containers run; only set for members of gangs."""

    @property
    def assigned_to_us(self) -> bool:
        """Whether its scheduler is one of ours."""
        return bool(self.scheduler)


@dataclass(slots=True)
class DescribedPod:
    """A pod's description for the engine, as ids of shared descriptions. 0: none yet, or the pod is invalid."""

    template: int = 0
    """Class that follows from the pod alone."""
    class_id: int = 0
    """`template`, extended by volumes and nodes to avoid."""
    pin: str = ""
    """Name of the node that the pod is pinned to, which is no part of `template`; empty: none."""
    priority: int = 0
    never_preempts: bool = False
    """Whether no pod is evicted for it."""
    profile: int = 0
    """Set of labels."""
    inputs: int = 0
    """Set of data that it reads; 0: none, or its location is unknown."""
    started_us: int = 0
    """Time when it started; 0: not started. With an expected duration as the kubelet reports it. Of others it tells
    how much work an eviction loses: the kubelet's time if that is known when the pod is first described as bound, else
    the time of that description; it then stays."""
    lasting: bool = False
    """Whether, once bound, it is expected to keep its resources indefinitely."""
    daemon: bool = False
    """Whether it belongs to its node."""
    checkpoint_us: int = 0
    """When it saved its work last; 0: never."""
    unevictable: bool = False
    """Whether deleting it does not free its resources."""
    movable: bool | None = False
    """Whether it may be evicted in order to run on another node; None: if its namespace says so."""
    preemption: PreemptionTerms = SILENT
    """What its annotations say about its preemption."""
    priority_class: str = ""
    """The name of its PriorityClass; empty: it has none."""
    class_terms: ClassTerms = SILENT_CLASS
    """What that one says about its preemption."""
    scheduled_us: int = 0
    """When it was bound, as the API server has noted it; 0: that is not known."""
    problem: str = ""
    """Why it cannot be described."""
    ignored: str = ""
    """Problems of optional annotations, which are ignored."""
    reported: tuple[str, ...] = ()
    """What is said of labels and annotations of conventions that have no effect."""


@dataclass(slots=True)
class VolumeNeeds:
    """Persistent volume claims of a pod, and whether they can be met."""

    claims: tuple[ClaimUse, ...] = ()
    blocked: str = ""
    """Why the pod's volumes currently exclude every node; empty: they do not."""
    blocked_anywhere: bool = True
    """Whether `blocked` applies independently of the nodes."""
    tokens: tuple[str, ...] = ()
    """Tokens in its class, of claims that pods contend for."""
    sent_tokens: tuple[str, ...] = ()
    """Of a bound pod: those in the class that was last sent to the engine."""


@dataclass(slots=True)
class GangMembership:
    """A pod's membership in a gang."""

    id: int = 0
    """0: not in a gang, or in one that is unknown to the engine."""
    role: int = 0
    blocked: str = ""
    """Why the gang, and so the pod, cannot be sent to the engine."""
    priority: int | None = None
    """The priority that its PodGroup gives it; None: its own."""
    never_preempts: bool = False
    """Whether its PodGroup never preempts."""
    node_pool: str | None = None
    """The pool of nodes that its PodGroup names; None: none."""

    def clear(self) -> None:
        """The pod is in no gang."""
        self.id, self.blocked = 0, ""
        self.priority, self.never_preempts, self.node_pool = None, False, None


@dataclass(frozen=True, slots=True)
class QueueMembership:
    """A pod's membership in a queue."""

    id: int = 0
    """While it waits; 0: in none, so that no quota concerns it."""
    running_id: int = 0
    """Once it is bound."""
    priority: int | None = None
    """The priority that its queue gives it; None: its own."""
    never_preempts: bool = False
    """Whether its queue forbids it to preempt."""
    preemptible: bool = True
    """Whether it may be preempted, unless its annotation says otherwise."""
    notice: float | None = None
    """Seconds between the announcement of its preemption and the preemption; None: the queue does not say."""
    local_id: int = 0
    """Id of the local queue that it came through; 0: none."""
    topology_levels: tuple[str, ...] = ()
    """Node labels of the level of topology that it prefers and of those above it, the narrowest first."""
    created_us: int = 0
    """When its workload was created, which the queue admits as a whole; 0: its own time counts."""
    node_pool: str | None = None
    """The pool of nodes that it is confined to; empty: nodes without one; None: it is not."""

    @property
    def only_counts(self) -> bool:
        """Whether its use counts in the queue, while another scheduler or controller decides about it."""
        return bool(self.running_id) and not self.id


NO_QUEUE = QueueMembership()


class PodRecord:
    """One pod. Only Store moves it between states; the feed keeps its descriptions, `sent` and `dirty`; Nominations
    keeps `nominated`; app/rebalance.py keeps `planned`; and the package `preempt` keeps `preempting`, `announced`,
    `privileged`, `spared`, `migrating`, `migration_refused` and `refusal`."""

    __slots__ = (
        "announced",
        "assumed",
        "attempt_began",
        "attempts",
        "created_us",
        "described",
        "devices",
        "dirty",
        "first_seen",
        "gang",
        "job_id",
        "migrating",
        "migration_refused",
        "name",
        "namespace",
        "node",
        "nominated",
        "not_before_us",
        "observed",
        "owner",
        "placed_by",
        "planned",
        "preempting",
        "privileged",
        "queue",
        "refusal",
        "resend",
        "revocable",
        "sent",
        "spared",
        "state",
        "task",
        "uid",
        "unschedulable_by",
        "volumes",
    )

    def __init__(self, pod: Pod, task: int, first_seen: float) -> None:
        metadata = pod.metadata
        self.uid = metadata.uid
        self.namespace = metadata.namespace
        self.name = metadata.name
        self.task = task
        """Id in the engine."""
        self.first_seen = first_seen
        """When it was first seen without scheduling gates; monotonic seconds."""
        self.attempts = 0
        """Decisions about it: placed, unschedulable for new reasons, failed."""
        self.attempt_began = first_seen
        """When the round that placed it last was asked for; monotonic seconds."""
        self.unschedulable_by: tuple[str, ...] = ()
        """What refused it when reasons were last reported (report/plugins.py); empty: not tried, or it fits."""
        self.not_before_us = 0
        """Until then, microseconds since the epoch, it is left out of rounds because its last attempt failed."""
        try:
            self.created_us = micros(metadata.created)
        except InvalidField:
            self.created_us = 0  # it only affects the order of pending pods
        self.job_id = 0
        self.owner = ""
        """UID of its controller."""
        for owner in metadata.owners or ():
            if owner.controller:
                self.owner = owner.uid
                self.job_id = job_id(owner.uid)
        self.observed = ObservedPod()
        self.described = DescribedPod()
        self.volumes = VolumeNeeds()
        self.devices = NO_DEVICES
        self.gang = GangMembership()
        self.queue = NO_QUEUE
        self.state = PodState.GONE
        self.node = ""
        """Name of the node to which it is or was bound, as observed."""
        self.assumed = ""
        """Name of the node to which it is being bound; empty unless it is ASSUMED."""
        self.placed_by = 0
        """PlacedBy of the contract, of its last placement by this process; 0: none, or others have bound it."""
        self.revocable = False
        """Whether its bind waits, for volumes, for its gang or for another attempt: until it is sent, its placement can
        be taken back for a pod of higher priority. False unless it is ASSUMED."""
        self.nominated = ""
        """Name of the node that keeps capacity for it while its victims leave; empty unless it is pending."""
        self.preempting = False
        """Whether it is a victim: from the decision until it is deleted, or its deletion is refused."""
        self.announced: Announcement | None = None
        """When it will be evicted, if that has been announced. The leader decides; other replicas follow the pod's
        annotations."""
        self.privileged = False
        """Whether it waits for pods whose eviction has been announced, so that no other pod takes its place;
        likewise."""
        self.spared = False
        """Whether its deletion was refused a while ago, so that it is not chosen as a victim again for now."""
        self.migrating = False
        """Whether it is evicted because it costs less elsewhere: from the decision until it is deleted, or its eviction
        is refused."""
        self.migration_refused = False
        """Whether that eviction was refused a while ago, so that it is not moved for now. It can still be a victim."""
        self.refusal = ""
        """Why its last eviction was refused."""
        self.planned = ""
        """Why a plan of moves that is carried out evicts it; empty: none does."""
        self.resend = False
        """Whether the engine has changed its state of the pod by itself: the row is sent even if it has not changed."""
        self.sent: SentState | None = None
        """None: the pod is unknown to the engine."""
        self.dirty = True
        """Whether it must be compared again with the state sent to the engine."""

    @property
    def full_name(self) -> str:
        return f"{self.namespace}/{self.name}"

    @property
    def blocked(self) -> str:
        """Why its volumes or devices currently exclude every node; empty: they do not."""
        return self.volumes.blocked or self.devices.blocked

    @property
    def has_claims(self) -> bool:
        """Whether it uses claims of volumes or devices, or resources that devices may serve."""
        return bool(self.volumes.claims) or self.devices.any

    @property
    def age_us(self) -> int:
        """Since when it has its place in the queue: when its workload was created, which keeps it when its pods are
        created anew, or else the pod itself."""
        return self.queue.created_us or self.created_us

    @property
    def given_priority(self) -> tuple[int | None, bool]:
        """What its queue and its PodGroup give it: its priority, None: its own; whether it never preempts."""
        priority = self.gang.priority if self.queue.priority is None else self.queue.priority
        return priority, self.queue.never_preempts or self.gang.never_preempts

    @property
    def node_pools(self) -> set[str]:
        """The pools of nodes that its queue and its PodGroup confine it to; empty: none."""
        return {pool for pool in (self.gang.node_pool, self.queue.node_pool) if pool is not None}

    @property
    def leaving(self) -> bool:
        """Whether it is being deleted, or about to be."""
        return self.observed.deleting or self.preempting or self.migrating or self.announced is not None

    @property
    def schedulable(self) -> bool:
        """Whether it is pending and ours to place."""
        observed = self.observed
        return bool(observed.scheduler) and not (self.node or observed.gated or observed.deleting)

    def observe_gates(self, gated: bool, now: float) -> None:
        """Time behind gates is not the scheduler's. `now`: monotonic seconds."""
        if self.observed.gated and not gated:
            self.first_seen = now
        self.observed.gated = gated

    def advance(self, event: PodEvent, node: str = "") -> bool:
        """Applies the event; False, without a change, if it is illegal in this state. `node`: name of the node on
        which the pod is observed or assumed."""
        state = TRANSITIONS.get((self.state, event))
        if state is None:
            return False
        self.state = state
        if event is PodEvent.OBSERVE_BOUND and node not in (self.node, self.assumed):
            self.placed_by = 0
        if event is PodEvent.OBSERVE_BOUND or event is PodEvent.OBSERVE_WAITING:
            self.node = node
        if event is PodEvent.ASSUME:
            self.assumed = node
        elif state is not PodState.ASSUMED:
            self.assumed, self.revocable = "", False
        return True


Reject = Callable[[PodRecord, str, int], None]
"""Gives a placement back: pod, id of the node, earliest next round for it (microseconds since the epoch)."""
