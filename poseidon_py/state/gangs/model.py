"""What a convention declares for a pod, and the objects that it may read."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from poseidon_py.conventions.fields import NO_REMARKS, Remarks
from poseidon_py.kube.informers.resource import Resource as Resource
from poseidon_py.kube.workload_objects import Suspension


class Owner(NamedTuple):
    """The controller of a pod or of another owner."""

    kind: str
    name: str
    uid: str
    group: str = ""


@dataclass(frozen=True, slots=True)
class GangHints:
    """The gang-related fields of a pod. `labels`, `annotations`: only the keys that some convention defines."""

    namespace: str
    name: str
    uid: str
    created_us: int
    labels: dict[str, str] = field(default_factory=dict)
    annotations: dict[str, str] = field(default_factory=dict)
    group: str = ""
    """spec.schedulingGroup.podGroupName."""
    owner: Owner | None = None


class Stage(NamedTuple):
    """A part of a workload some of whose parts are created only when others run."""

    name: str
    least: int
    """Number of its pods that are needed at the same time, once any exists."""
    pods: int
    """Number of its pods that have yet to succeed."""
    requests: tuple[tuple[str, int], ...]
    """What each requests: resources and amounts, in the engine's units."""


@dataclass(frozen=True, slots=True)
class Counts:
    """The number of pods that an owner has."""

    size: int | None = None
    """Number of pods that it runs at the same time; None: not an owner, or unspecified."""
    left: int | None = None
    """Number of its pods that have yet to succeed; None: its pods do not run to completion."""
    roles: tuple[tuple[str, int], ...] = ()
    """Its parts, each with its number of pods."""
    roles_left: tuple[tuple[str, int], ...] = ()
    """Its parts, each with its number of pods that have yet to succeed."""
    apart: tuple[tuple[str, int], ...] = ()
    """The parts whose pods request a topology, so that each is a gang of its own, with its number of pods."""
    apart_left: tuple[tuple[str, int], ...] = ()
    """These, each with its number of pods that have yet to succeed; empty: its pods do not run to completion."""
    least: int | None = None
    """Number of pods that it declares to need at the same time; None: it does not."""
    staged: bool = False
    """Whether it creates some of its pods only when others are ready."""
    stages: tuple[Stage, ...] = ()
    """All its parts, if some are created later than others and what each will request is known."""
    problem: str = ""
    """Why the number is unknown: the field, its value and the remedy."""
    verdict: str = ""
    """Succeeded or Failed; empty: it has not ended."""


NO_RESOURCE = Resource("", "", ())


@dataclass(frozen=True, slots=True)
class OwnerOrGroup:
    """An object that conventions read, reduced to what they need."""

    uid: str
    namespace: str
    name: str
    created_us: int
    annotations: dict[str, str]
    owner: Owner | None
    spec: dict[str, object]
    """The spec of a PodGroup, not validated; empty for owners."""
    counts: Counts = Counts()
    """The pods of an owner."""
    phase: str = ""
    """status.phase of a PodGroup."""
    version: str = ""
    selector: bytes = b""
    """spec.selector in JSON of an owner whose pods are spread by default; empty: another owner, or it has none."""
    queue_labels: tuple[tuple[str, str], ...] = ()
    """The labels that choose a queue for its pods."""
    queue_annotations: tuple[tuple[str, str], ...] = ()
    """The annotations that do."""
    remarks: Remarks = NO_REMARKS
    """What is said of its fields, labels and annotations that have no effect, or that keep its pods from running."""
    suspension: Suspension | None = None
    """Of a kind that can be suspended."""
    time_limit: str = ""
    """The label that limits the time for which its pods may run."""
    resource: Resource = NO_RESOURCE

    @property
    def suspended(self) -> bool:
        """Whether it is suspended: its pods are deleted, and none are created."""
        return self.suspension is not None and self.suspension.suspended


@dataclass(frozen=True, slots=True)
class Declaration:
    """What one pod declares about its gang."""

    convention: str
    key: str
    """Identity of the gang: equal keys, one gang. Empty: the pod is declared to be in no gang."""
    name: str
    """namespace/name, as messages show it."""
    minimum: int
    """Members that must be placed together; 0: members are placed like single pods."""
    at_once: bool = False
    """Whether the minimum is the number of pods that an owner runs at the same time, or what is left of it: members
    that have succeeded do not count, since others follow them."""
    maximum: int = 0
    """Members that may be placed at most; 0: no limit."""
    created_us: int = 0
    """Creation time of the group or owner, microseconds since the epoch; 0: use the earliest member's."""
    sequence: tuple[str, int] = ("", 0)
    """Name of a row of gangs, and the place in it, which is their order within a second; empty: it is in none."""
    roles: tuple[tuple[str, int], ...] = ()
    role: str = ""
    topology_key: str = ""
    topology_required: bool = False
    narrower_keys: tuple[str, ...] = ()
    """Node labels of levels within that of `topology_key` that are tried before it, the narrowest first."""
    start_amounts: tuple[tuple[str, int], ...] = ()
    """Resources and amounts, in the engine's units, that must be free before the first member is placed."""
    timeout: float | None = None
    """Seconds for which the gang may stay partly bound; None: the configured timeout."""
    size: int | None = None
    """Total number of its pods; None: unknown."""
    left: int | None = None
    """Number of its pods that have yet to succeed; None: given by the owner that its members have in common, if any."""
    disrupted_whole: bool = False
    """Whether the gang can only be disrupted as a whole."""
    priority: int | None = None
    """The priority of all of its pods; None: each has its own."""
    never_preempts: bool = False
    """Whether no pod is evicted for the gang."""
    node_pool: str | None = None
    """The pool of nodes that the group names; None: none."""
    announced: tuple[tuple[str, int], ...] = ()
    """Minimums of other gangs, by key, that this pod declares."""
    stages: tuple[Stage, ...] = ()
    """The parts of a workload that are created one after the other: it needs those of which pods exist, and asks for
    the quota of all before its first pod is placed. Empty: it has no such parts."""
    leader_first: bool = False
    """Whether the other members are created only once the leader runs."""
    by_pods: bool = False
    """Whether other pods may declare the minimum."""
    waits: str = ""
    """Why no member can be placed yet; empty: members can be placed. Otherwise all other fields may be missing."""
    refused: bool = False
    """Whether it waits because of a wish that cannot be kept, whatever else is declared."""
    object_ref: tuple[Resource, str, str] | None = None
    """Resource, namespace and name of the object that declares the group."""
    reads: tuple[tuple[Resource, str, str], ...] = ()
    """Further objects that the declaration depends on."""
    is_workload: bool = False
    """Whether these are all pods of what Kueue admits as a unit."""
    anchor: str = ""
    """UID of the owner whose pods these are; empty: there is none."""


class Invalid(ValueError):
    """A declaration is invalid; the text names the field, what it holds, and the remedy."""


class Objects(Protocol):
    """The objects that conventions may look up. The first lookup of a resource starts its watch."""

    def find(self, resource: Resource, namespace: str, name: str) -> OwnerOrGroup | None:
        """The object; None: it does not exist. Raises Unknown until that is known."""

    def owner(self, owner: Owner, namespace: str) -> OwnerOrGroup | None:
        """An owner; None: owners of that kind are not watched, or it is gone. Raises Unknown until that is known."""

    def has_owner(self, uid: str) -> bool:
        """Whether an owner with this UID exists."""

    def known_owner(self, uid: str) -> OwnerOrGroup | None:
        """An owner that was looked up before; None: it was not, or is gone."""

    def children(self, uid: str) -> Iterable[OwnerOrGroup]:
        """The owners that an object controls, as far as they were looked up before."""

    def unreadable(self, owner: Owner) -> str:
        """Why an owner may not be read, and the remedy; empty: it may, or it is gone."""

    def serves(self, resource: Resource) -> bool:
        """Whether the API server serves objects of this kind, and lets us read them in full. Raises Unknown until that
        is known."""


class Unknown(Exception):
    """It is not known yet whether an object exists; the pods that depend on it are resolved again once it is."""

    def __init__(self, what: str, why: str = "") -> None:
        """`why`: why the lookup takes long; empty: it has just begun."""
        super().__init__(what)
        self.what = what
        self.why = why


MAX_OWNERS = 8
"""Owners of owners that are read: a pod, its Job, a JobSet, a TrainJob, an AppWrapper and so on."""


def owner_chain(hints: GangHints, objects: Objects) -> Iterator[OwnerOrGroup]:
    """The controller of a pod, the controller of that, and so on, as far as they exist and may be read. Raises
    Unknown."""
    owner = hints.owner
    for _ in range(MAX_OWNERS):
        found = objects.owner(owner, hints.namespace) if owner is not None else None
        if found is None:
            return
        yield found
        owner = found.owner


class Convention(Protocol):
    """One way to declare gangs. Pure: the declaration depends on the hints and objects alone."""

    name: str
    """As messages and the documentation show it."""

    def read(self, hints: GangHints, objects: Objects) -> Declaration | None:
        """The declaration; None: the pod does not use this convention. Raises Invalid, Unknown."""


MAX_COUNT = 2**31 - 1
"""The largest number of pods that Kubernetes and the contract can count."""

_MAX_SHOWN = 20


def whole(text: str, place: str, least: int = 1, alternatives: str = "") -> int:
    """The number in a label or annotation. Raises Invalid.

    `place` names the label or annotation, `alternatives` the words that it may hold in place of a number.
    """
    digits = text.strip()
    # the length first, because Python refuses to convert thousands of digits
    if digits.isascii() and digits.isdigit() and len(digits) <= 10 and least <= int(digits) <= MAX_COUNT:
        return int(digits)
    raise Invalid(f"{place}: {shown(text)} is not valid; give {alternatives}a whole number from {least} to {MAX_COUNT}")


def number_of(value: object, path: str, least: int = 0) -> int:
    """The number in a field of an object. Raises Invalid."""
    if isinstance(value, int) and not isinstance(value, bool) and least <= value <= MAX_COUNT:
        return value
    found = "is missing" if value is None else f"{shown(value)} is not valid"
    raise Invalid(f"{path}: {found}; give a whole number from {least} to {MAX_COUNT}")


def number_or(value: object, path: str, default: int) -> int:
    """The number in a field; `default` if it is missing. Raises Invalid."""
    return default if value is None else number_of(value, path)


def role_default(field: str, role: str) -> int:
    """The pods of a role of a kind of kubeflow.org without `replicas`. `field`: the last part of its path.

    Source: SetDefaults_MPIJob of the MPI operator and of the training operator, which start no workers then.
    """
    return 0 if field == "mpiReplicaSpecs" and role == "Worker" else 1


def ray_replicas(replicas: object, least: object, maximum: object, path: str) -> int:
    """The replicas that KubeRay starts of the worker group at `path`: within its limits, of which the lower one wins
    over the upper one.

    Source: GetWorkerGroupDesiredReplicas of KubeRay. Raises Invalid.
    """
    stated, lower = number_or(replicas, f"{path}.replicas", 0), number_or(least, f"{path}.minReplicas", 0)
    return lower if stated < lower else min(stated, number_or(maximum, f"{path}.maxReplicas", MAX_COUNT))


def spark_executors(instances: object, initial: object, least: object, *, dynamic: bool) -> int:
    """The executors with which a SparkApplication starts; with dynamic allocation the largest of the three numbers.

    Source: setExecutorSpecDefaults of the Spark operator, and Spark's getDynamicAllocationInitialExecutors.
    Raises Invalid.
    """
    if not dynamic:
        return number_or(instances, "spec.executor.instances", 1)
    return max(
        number_or(instances, "spec.executor.instances", 0),
        number_or(initial, "spec.dynamicAllocation.initialExecutors", 0),
        number_or(least, "spec.dynamicAllocation.minExecutors", 0),
    )


def shown(value: object) -> str:
    """A value as messages quote it: cut off if it is long."""
    if isinstance(value, str):
        return repr(value) if len(value) <= _MAX_SHOWN else f"{value[:_MAX_SHOWN]!r}..."
    try:
        text = repr(value)
    except ValueError:  # a number of thousands of digits
        return "a number of too many digits"
    return text if len(text) <= 2 * _MAX_SHOWN else f"{text[: 2 * _MAX_SHOWN]}..."
