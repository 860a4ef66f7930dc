"""Affinities of tasks of the original contract -> demands and preferences.

The Go client loses the matchLabels of pod terms and sends an empty map instead; the original content is unknown. An
empty selector selects every task of its namespaces, as in Kubernetes: for anti-affinity that is stricter than the
original, never weaker. The domain of a term without a topology key is the machine, as of all terms in the original
service.
"""

from collections.abc import Iterable

from firmament_py.model.constraints import (
    NO_PEERS,
    NO_PREFERENCES,
    Operator,
    PeerDemand,
    PeerSelector,
    PeerTerm,
    PreferenceSet,
    Requirement,
)
from firmament_py.service import messages
from protos.gen import firmament_pb2 as pb

HOST = "kubernetes.io/hostname"
"""The label that identifies a machine; a machine without it gets its name as the value."""

_HEAVIEST = 100


def namespace(task: pb.TaskDescriptor) -> str:
    """The namespace of a task: as stated, or the first part of its name."""
    first, slash, _ = task.name.partition("/")
    return task.namespace or (first if slash else "")


def peers(task: pb.TaskDescriptor) -> PeerDemand:
    """The inter-task constraints of a task. Raises InvalidField for an invalid term."""
    if not task.HasField("affinity"):
        return NO_PEERS
    required = "requiredDuringSchedulingIgnoredDuringExecution"
    return PeerDemand(
        affinity=tuple(_term(t, namespace(task)) for t in getattr(task.affinity.pod_affinity, required)),
        anti_affinity=tuple(_term(t, namespace(task)) for t in getattr(task.affinity.pod_anti_affinity, required)),
    )


def preferences(task: pb.TaskDescriptor, avoided_as: str) -> PreferenceSet:
    """The preferences of a task; avoided_as: see PreferenceSet. Raises InvalidField for an invalid term."""
    if not task.HasField("affinity"):
        return PreferenceSet(avoided_as=avoided_as) if avoided_as else NO_PREFERENCES
    preferred = "preferredDuringSchedulingIgnoredDuringExecution"
    near, apart = (getattr(of, preferred) for of in (task.affinity.pod_affinity, task.affinity.pod_anti_affinity))
    return PreferenceSet(
        nodes=tuple(
            (_weight(p), messages.term(p.preference))
            for p in getattr(task.affinity.node_affinity, preferred)
            if _weight(p)
        ),
        peers=(*_wishes(near, +1, namespace(task)), *_wishes(apart, -1, namespace(task))),
        avoided_as=avoided_as,
    )


def _wishes(
    terms: Iterable[pb.WeightedPodAffinityTerm | pb.WeightedPodAffinityTermAntiAff], sign: int, own: str
) -> tuple[tuple[int, PeerTerm], ...]:
    return tuple((sign * _weight(t), _term(t.podAffinityTerm, own)) for t in terms if _weight(t))


def _weight(
    term: pb.PreferredSchedulingTerm | pb.WeightedPodAffinityTerm | pb.WeightedPodAffinityTermAntiAff,
) -> int:
    return min(max(term.weight, 0), _HEAVIEST)


def _term(term: pb.PodAffinityTerm | pb.PodAffinityTermAntiAff, own: str) -> PeerTerm:
    """own: the namespace of a term that names none."""
    labels: tuple[Requirement, ...] | None = None  # without a selector: no task
    if term.HasField("labelSelector"):
        selector = term.labelSelector
        pair = selector.matchLabels
        named = (Requirement(pair.key, Operator.IN, (pair.value,)),) if pair.key else ()
        labels = (*named, *(messages.requirement(r) for r in selector.matchExpressions))
    return PeerTerm(PeerSelector(frozenset(sorted(term.namespaces) or [own]), None, labels), term.topologyKey or HOST)
