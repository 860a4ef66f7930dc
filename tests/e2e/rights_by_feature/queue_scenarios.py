"""What the rights for queues are for: a pod of a queue of each kind runs."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from tests.e2e.api import Json
from tests.e2e.backends import home_of
from tests.e2e.objects import node, pod
from tests.e2e.rights_by_feature.chart_account import NAMESPACE
from tests.e2e.rights_by_feature.world import World, eventually, path_of
from tests.e2e.test_rights import KUEUE, suspended, until

HALF_LIFE = ("--queue-half-life", "3600")
"""So that past use counts, whatever the kind says."""
_STORED = "poseidon-queue-usage"


@dataclass(frozen=True)
class PodOfQueue:
    """objects: with a queue q. about: the metadata of its pods. written: the objects whose status is written. drains:
    a change of the first object that makes the queue drain."""

    objects: tuple[Json, ...]
    about: Json
    written: tuple[Json, ...] = ()
    drains: Json = field(default_factory=dict)

    def __call__(self, world: World) -> None:
        """A pod of the queue runs, and leaves if queues drain; what was used is stored when the scheduler ends."""
        backend = world.backend
        backend.create(node("n0"), *self.objects)
        scheduler = world.run(*HALF_LIFE)
        backend.create(pod("p", metadata=self.about))
        backend.until_bound(1, "p")
        for item in self.written:
            until(backend, home_of(item), lambda found: any(each.get("status") for each in found))
        eventually(lambda: re.search(r"^poseidon_queue_\w+{", scheduler.get("/metrics")[1], re.M), "its use is known")
        if self.drains:
            backend.patch(path_of(self.objects[0]), {"spec": self.drains})
            world.until_gone("p")
        world.until_asked((NAMESPACE, "coordination.k8s.io", "leases", "update", ""))  # when the first period is over
        scheduler.end()
        core = (NAMESPACE, "", "configmaps")
        world.until_asked((*core, "create", ""), (*core, "patch", _STORED))
        stored = f"/api/v1/namespaces/{NAMESPACE}/configmaps/{_STORED}"
        backend.api.many("DELETE", [*((path_of(item), None) for item in self.objects), (stored, None)])


def _queue(version: str, kind: str, name: str = "q", **spec: object) -> Json:
    return {"apiVersion": version, "kind": kind, "metadata": {"name": name}, "spec": spec}


def _labelled(key: str, value: str = "q") -> Json:
    return {"labels": {key: value}}


_OF_KUEUE = "kueue.x-k8s.io/queue-name"
_FREE = {"quota": 0, "limit": -1, "overQuotaWeight": 1}
_YUNIKORN = "partitions: [{name: default, queues: [{name: root, queues: [{name: q}]}]}]"
_FLAVOR = _queue(KUEUE, "ResourceFlavor", "f")
_CLUSTER_QUEUE = _queue(
    KUEUE,
    "ClusterQueue",
    namespaceSelector={},
    resourceGroups=[
        {
            "coveredResources": ["cpu", "memory"],
            "flavors": [{"name": "f", "resources": [{"name": r, "nominalQuota": "8Gi"} for r in ("cpu", "memory")]}],
        }
    ],
)
_LOCAL_QUEUES = tuple(_queue(KUEUE, "LocalQueue", name, clusterQueue="q") for name in ("q", "lq"))
_KUEUE = (_CLUSTER_QUEUE, _FLAVOR, *_LOCAL_QUEUES)
_OWN_QUEUE = _queue("poseidon.io/v1", "Queue")
_KAI_QUEUE = _queue("scheduling.run.ai/v2", "Queue", resources={"cpu": _FREE, "memory": _FREE, "gpu": _FREE})
_VOLCANO_QUEUE = _queue("scheduling.volcano.sh/v1beta1", "Queue", weight=1)
_CONFIG_MAP = {
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "metadata": {"name": "yunikorn-configs"},
    "data": {"queues.yaml": _YUNIKORN},
}
_AMOUNTS = {"cpu": "8", "memory": "8Gi"}

PODS_OF_QUEUES = {
    "poseidon": PodOfQueue((_OWN_QUEUE,), _labelled("poseidon.io/queue"), (_OWN_QUEUE,), {"stop": "drain"}),
    "kueue": PodOfQueue(
        _KUEUE, _labelled(_OF_KUEUE), (_CLUSTER_QUEUE, _LOCAL_QUEUES[0]), {"stopPolicy": "HoldAndDrain"}
    ),
    "kai": PodOfQueue((_KAI_QUEUE,), _labelled("kai.scheduler/queue"), (_KAI_QUEUE,)),
    "volcano": PodOfQueue(
        (_VOLCANO_QUEUE,), {"annotations": {"scheduling.volcano.sh/queue-name": "q"}}, (_VOLCANO_QUEUE,)
    ),
    "yunikorn": PodOfQueue((_CONFIG_MAP,), _labelled("queue", "root.q")),
    "elasticquota": PodOfQueue(
        (_queue("scheduling.x-k8s.io/v1alpha1", "ElasticQuota", min=_AMOUNTS, max=_AMOUNTS),), {}
    ),
    "koordinator": PodOfQueue(
        (_queue("scheduling.sigs.k8s.io/v1alpha1", "ElasticQuota", min=_AMOUNTS, max=_AMOUNTS),),
        _labelled("quota.scheduling.koordinator.sh/name"),
    ),
}
"""By kind of queues."""


def suspends(world: World) -> None:
    """Workloads of a queue are resumed. Then it drains, and the only pod is deleted that its controller, which does not
    run, has left."""
    backend = world.backend
    backend.create(node("n0"), *_KUEUE)
    world.run()
    suspended(backend)
    (job,) = backend.create(_job("drained"))
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "drained", "uid": job["metadata"]["uid"]}
    metadata = _labelled(_OF_KUEUE) | {"ownerReferences": [owner | {"controller": True}]}
    backend.create(pod("p", metadata=metadata))
    backend.until_bound(1, "p")
    backend.patch(path_of(_CLUSTER_QUEUE), {"spec": {"stopPolicy": "HoldAndDrain"}})
    until(backend, home_of(job), lambda items: [i for i in items if i["spec"].get("suspend")])
    world.until_gone("p")
    backend.api.many("DELETE", [(path_of(item), None) for item in _KUEUE])


def _job(name: str) -> Json:
    template = {"metadata": {}, "spec": pod("")["spec"] | {"restartPolicy": "Never"}}
    metadata = {"name": name} | _labelled(_OF_KUEUE)
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": {"template": template}}
