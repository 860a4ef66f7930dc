"""What tasks of the original contract want of nodes and of each other -> demands and preferences.

The Go client loses a map on its way, the matchLabels of pod terms, and sends an empty one instead; what it meant cannot
be known. An empty selector selects every task of its namespaces, as in Kubernetes: for who keeps away that is more than
was meant, never less. Without a topology key a term speaks of the machine, as all terms did to the original service.
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
"""The label that tells machines apart; one that has none is told to have its name."""

_HEAVIEST = 100


def namespace(task: pb.TaskDescriptor) -> str:
    """Of a task: as it says, or the first part of its name."""
    first, slash, _ = task.name.partition("/")
    return task.namespace or (first if slash else "")


def peers(task: pb.TaskDescriptor) -> PeerDemand:
    """What a task demands of where others are.

    Raises InvalidField if a term cannot be understood.
    """
    if not task.HasField("affinity"):
        return NO_PEERS
    required = "requiredDuringSchedulingIgnoredDuringExecution"
    return PeerDemand(
        affinity=tuple(_term(t, namespace(task)) for t in getattr(task.affinity.pod_affinity, required)),
        anti_affinity=tuple(_term(t, namespace(task)) for t in getattr(task.affinity.pod_anti_affinity, required)),
    )


def preferences(task: pb.TaskDescriptor, avoided_as: str) -> PreferenceSet:
    """What a task would like; avoided_as: see PreferenceSet.

    Raises InvalidField if a term cannot be understood.
    """
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
    """own: the namespace of which a term speaks that names none."""
    labels: tuple[Requirement, ...] | None = None  # without a selector: nobody
    if term.HasField("labelSelector"):
        selector = term.labelSelector
        pair = selector.matchLabels
        named = (Requirement(pair.key, Operator.IN, (pair.value,)),) if pair.key else ()
        labels = (*named, *(messages.requirement(r) for r in selector.matchExpressions))
    return PeerTerm(PeerSelector(frozenset(sorted(term.namespaces) or [own]), None, labels), term.topologyKey or HOST)
