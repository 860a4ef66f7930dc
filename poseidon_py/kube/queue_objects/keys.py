"""Labels and annotations of pods and of their owners that choose a queue.

Most pods have none, and finding that out must be cheap: each key contains one of a few words, which are searched for in
the undecoded bytes first.
"""

from functools import lru_cache

from msgspec import Raw

from poseidon_py.kube.objects import NOTHING, InvalidField, Labels, decode

OWN = "poseidon.io/queue"
USER = "poseidon.io/user"
KUEUE = "kueue.x-k8s.io/queue-name"
KUEUE_PRIORITY = "kueue.x-k8s.io/priority-class"
KUEUE_PREFERRED = "kueue.x-k8s.io/podset-preferred-topology"
KUEUE_REQUIRED = "kueue.x-k8s.io/podset-required-topology"
KUEUE_TOPOLOGY = (KUEUE_REQUIRED, KUEUE_PREFERRED)
KUEUE_MANAGED = "kueue.x-k8s.io/managed"
KUEUE_PODSET = "kueue.x-k8s.io/podset"
KUEUE_WORKLOAD = "kueue.x-k8s.io/workload"
KAI = "kai.scheduler/queue"
KAI_PREEMPTIBILITY = "kai.scheduler/preemptibility"
KAI_GROUP = "pod-group-name"
KAI_POOL = "kai.scheduler/node-pool"
PRIORITY_CLASS = "priorityClassName"
"""A label of KAI's workloads."""
VOLCANO = "scheduling.volcano.sh/queue-name"
VOLCANO_GROUP = "scheduling.k8s.io/group-name"
KOORDINATOR = "quota.scheduling.koordinator.sh/name"
KOORDINATOR_PREEMPTIBLE = "quota.scheduling.koordinator.sh/preemptible"
YUNIKORN = "yunikorn.apache.org/queue"
YUNIKORN_SHORT = "queue"
YUNIKORN_PREEMPTION = "yunikorn.apache.org/allow-preemption"

_LABELS = frozenset(
    (
        KUEUE_MANAGED,
        KUEUE_PODSET,
        OWN,
        USER,
        KUEUE,
        KUEUE_PRIORITY,
        KAI,
        KAI_PREEMPTIBILITY,
        KAI_POOL,
        PRIORITY_CLASS,
        VOLCANO,
        KOORDINATOR,
        KOORDINATOR_PREEMPTIBLE,
        YUNIKORN,
        YUNIKORN_SHORT,
    )
)
_ANNOTATIONS = frozenset(
    (KUEUE_WORKLOAD, VOLCANO, VOLCANO_GROUP, KAI_GROUP, YUNIKORN, YUNIKORN_SHORT, YUNIKORN_PREEMPTION, *KUEUE_TOPOLOGY)
)
_WORDS = (
    b"queue",
    b"kueue",
    b"poseidon.io/user",
    b"group-name",
    b"kai.scheduler",
    b"priorityClassName",
    b"yunikorn",
    b"quota.scheduling",
)

Pairs = tuple[tuple[str, str], ...]
"""Keys and values, sorted."""


def queue_labels(labels: Raw) -> Pairs:
    """The labels that choose a queue; none if the labels are invalid."""
    return _pick(labels, "metadata.labels", _LABELS)


def queue_annotations(annotations: Raw) -> Pairs:
    """The annotations that choose a queue, or a place in its topology; none if the annotations are invalid."""
    return _pick(annotations, "metadata.annotations", _ANNOTATIONS)


def _pick(raw: Raw, path: str, keys: frozenset[str]) -> Pairs:
    if raw is NOTHING:
        return ()
    data = bytes(raw)
    return _found(data, path, keys) if any(word in data for word in _WORDS) else ()


@lru_cache(maxsize=4096)  # the pods of a template have the same bytes
def _found(data: bytes, path: str, keys: frozenset[str]) -> Pairs:
    try:
        found = decode(Raw(data), Labels, path) or {}
    except InvalidField:
        return ()
    return tuple(sorted((key, value) for key, value in found.items() if key in keys))
