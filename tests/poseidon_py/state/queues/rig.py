"""A store whose queues, namespaces, owners and pods tests change."""

import json
from collections.abc import Callable

import msgspec

from poseidon_py.feed.update_rows import describe_pod, target
from poseidon_py.kube.queue_objects.fields import QueueObject
from poseidon_py.kube.storage_objects import Namespace
from poseidon_py.state.gangs.by_owner import JOBS
from poseidon_py.state.gangs.by_pod_group import VOLCANO
from poseidon_py.state.gangs.decode import Item, owner_or_group_of
from poseidon_py.state.queues import elastic_quota, kai, koordinator, kueue, own, volcano, yunikorn
from poseidon_py.state.queues.choice import Namespaces
from poseidon_py.state.queues.kinds import WITH_CONTROLLERS, sources_of
from poseidon_py.state.store import Store
from tests.poseidon_py.builders import pod
from tests.poseidon_py.state.gangs.builders import Objects

RESOURCES = {
    "ClusterQueue": kueue.CLUSTER_QUEUES,
    "Cohort": kueue.COHORTS,
    "LocalQueue": kueue.LOCAL_QUEUES,
    "Topology": kueue.TOPOLOGIES,
    "ResourceFlavor": kueue.FLAVORS,
    "WorkloadPriorityClass": kueue.PRIORITIES,
    "Queue": own.QUEUES,
    "KaiQueue": kai.QUEUES,
    "VolcanoQueue": volcano.QUEUES,
    "ElasticQuota": elastic_quota.QUOTAS,
    "KoordinatorQuota": koordinator.QUOTAS,
    "ConfigMap": yunikorn.CONFIG,
    "SchedulingShard": kai.SHARDS,
}


def queue_object(name, spec=None, *, namespace="", uid="", **fields):
    metadata = {"name": name, "namespace": namespace, "uid": uid or f"uid-{namespace}-{name}"}
    metadata |= {key: fields.pop(key) for key in ("labels", "annotations") if key in fields}
    body = {"metadata": metadata, "spec": {} if spec is None else spec, **fields}
    return msgspec.json.decode(json.dumps(body), type=QueueObject)


def owner_object(resource, name, labels, *, namespace="default", above=None):
    """An owner of pods with labels. `above`: the UID of its own owner, a JobSet."""
    metadata = {"name": name, "namespace": namespace, "uid": f"uid-{name}", "labels": labels}
    if above:
        reference = {
            "uid": above,
            "controller": True,
            "kind": "JobSet",
            "name": "s",
            "apiVersion": "jobset.x-k8s.io/v1",
        }
        metadata["ownerReferences"] = [reference]
    return owner_or_group_of(resource, msgspec.json.decode(json.dumps({"metadata": metadata}), type=Item))


class Rig:
    """`kind`: the kind of queues, or auto."""

    def __init__(self, kind):
        self.store = Store(["poseidon"], queues=kind)
        self.queues = self.store.queues
        self.later: list[tuple[float, Callable[[], None]]] = []
        self.queues._call_later = lambda seconds, call: self.later.append((seconds, call))
        for each in WITH_CONTROLLERS:  # nobody else runs
            self.queues.set_running(each, "")
        self.objects = self.store.gangs.objects = Objects()
        self.kind_of = {
            resource: kind
            for mode in ("auto", kind)
            for kind, source in sources_of(mode, Namespaces()).items()
            for resource in source.resources
        }
        self.touched: list[str] = []
        self.queues._touch = self._touch

    def _touch(self, uid):
        self.touched.append(uid)
        self.store.touch_pod(uid)

    @property
    def kind(self):
        """The kind of queues in force."""
        return self.queues.active.kind if self.queues.active is not None else None

    def put(self, kind, name, spec=None, *, namespace="", **fields):
        resource = RESOURCES[kind]
        self.queues.put(self.kind_of[resource], resource, queue_object(name, spec, namespace=namespace, **fields))
        self.work()

    def drop(self, kind, name, *, namespace=""):
        resource = RESOURCES[kind]
        self.queues.drop(self.kind_of[resource], resource, namespace, name)
        self.work()

    def namespace(self, name, labels=None, annotations=None):
        metadata = {"name": name, "uid": f"uid-{name}", "labels": labels or {}, "annotations": annotations or {}}
        self.store.observe_namespace(msgspec.json.decode(json.dumps({"metadata": metadata}), type=Namespace))
        self.work()

    def job(self, name, labels, *, namespace="default", above=None):
        entry = owner_object(JOBS, name, labels, namespace=namespace, above=above)
        self.objects.put(JOBS, entry)
        self.queues.object_changed(JOBS, entry)
        self.work()

    def group(self, name, spec, *, namespace="default"):
        """A PodGroup of Volcano."""
        metadata = {"name": name, "namespace": namespace, "uid": f"uid-{name}"}
        item = msgspec.json.decode(json.dumps({"metadata": metadata, "spec": spec}), type=Item)
        entry = owner_or_group_of(VOLCANO, item)
        self.objects.put(VOLCANO, entry)
        self.store.gangs.changed(VOLCANO, entry)
        self.queues.object_changed(VOLCANO, entry)
        self.work()

    def pod(self, name, **fields):
        self.store.observe_pod(pod(name, **fields))
        self.work()

    def wait(self):
        """Until all that was to happen later has happened."""
        calls, self.later = self.later, []
        for _, call in calls:
            call()
        self.work()

    def work(self):
        for known in list(self.store.pods.values()):
            if known.dirty:
                known.dirty = False
                describe_pod(self.store, known)

    def known(self, name):
        return self.store.pods[f"uid-{name}"]

    def key(self, name):
        """The key of the queue of a pod."""
        return self.queues.resolution_of(self.known(name)).key

    def sent(self, name):
        """The row of a pod for the engine."""
        return target(self.store, self.known(name))

    def problem(self, name):
        return self.queues.problem_of(self.known(name))

    def tree(self):
        return {queue.key: queue for queue in self.queues.tree.queues}

    def message(self):
        found = self.queues.message()
        assert found is not None
        return found

    def problems(self):
        return {
            str(each.ref).rpartition(" ")[2]: list(each.problems) for each in self.queues.declared() if each.problems
        }
