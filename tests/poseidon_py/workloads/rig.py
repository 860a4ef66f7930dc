"""Workloads on a fake API server, with a controller that the test plays, and what suspends and resumes them."""

import json
from typing import Any

from poseidon_py.kube.client import ConflictError, NotFoundError
from poseidon_py.state.gangs.by_owner import JOB_SETS, JOBS
from poseidon_py.state.gangs.by_pod_group import PRIORITY_CLASSES
from poseidon_py.state.gangs.decode import Item, owner_or_group_of
from poseidon_py.state.gangs.owner_kinds import KIND_OF
from poseidon_py.state.workloads.lookup import Workloads
from poseidon_py.state.workloads.standing import Standing
from poseidon_py.util.decoding import decode_json
from poseidon_py.workloads.controller import WorkloadController
from poseidon_py.workloads.suspender import WorkloadSuspender
from poseidon_py.workloads.writer import WorkloadWriter
from tests.poseidon_py.state.queues.rig import Rig

NOW = 1_767_225_600.0  # 2026-01-01T00:00:00Z, when all pods of builders were created
QUEUE = "kueue.x-k8s.io/queue-name"


class FakeWorkloads:
    """Objects of an API server, by path. `faults`: as of FakePods, for patches alone."""

    def __init__(self):
        self.objects = {}
        self.patches = []
        self.faults = []
        self.version = 100

    def put(self, path, body):
        self.version += 1
        body["metadata"]["resourceVersion"] = str(self.version)
        self.objects[path] = body

    async def merge(self, path, patch):
        self.patches.append((path, patch))
        fault = self.faults.pop(0) if self.faults else None
        if isinstance(fault, Exception):
            raise fault
        if path not in self.objects:
            raise NotFoundError(404, "NotFound", "no such object")
        body = json.loads(json.dumps(self.objects[path]))
        for name in ("uid", "resourceVersion"):
            if patch["metadata"][name] != body["metadata"][name]:
                raise ConflictError(409, "Conflict", f"{name} does not match")
        _merge(body, patch)
        self.put(path, body)
        if fault is not None:
            raise fault[1]
        return json.dumps(body).encode()

    async def call(self, verb, path):
        if path not in self.objects:
            raise NotFoundError(404, "NotFound", "no such object")
        return json.dumps(self.objects[path]).encode()


def _merge(body, patch):
    for key, value in patch.items():
        if value is None:
            body.pop(key, None)
        elif isinstance(value, dict):
            _merge(body.setdefault(key, {}), value)
        else:
            body[key] = value


class WorkloadRig(Rig):
    """Time stands still, apart from sleeps, which pass at once. `workload` puts an object, `pods` its pods."""

    def __init__(self, kind="kueue", limit=1000):
        super().__init__(kind)
        self.kube = FakeWorkloads()
        self.clock = 0.0
        self.leads = True
        self.events = []
        self.deleted = []
        self.classes = []
        self.units = lambda: self.queues.kinds.admits_workloads
        self.limit = limit
        self.start()

    def start(self):
        """A process starts: what the former one knew of workloads is gone."""
        store = self.store
        lookup = Workloads(store.pods, store.owned, lambda: store.gangs.objects)
        standing = Standing(
            store.queues, lambda: self.classes, frozenset(("poseidon",)), lambda: self.units(), lookup.owners_of
        )
        clocks: dict[str, Any] = {"sleep": self.sleep, "monotonic": lambda: self.clock, "rng": lambda: 1.0}
        writer = WorkloadWriter(self.kube, self.path_of, lambda: self.leads, **clocks)
        self.suspender = WorkloadSuspender(
            lookup, writer, self, store.metrics, is_kueues=standing.is_kueues, now=lambda: NOW + self.clock
        )
        self.controller = WorkloadController(
            store,
            lookup,
            standing,
            self.suspender,
            writer,
            self,
            self.delete,
            leads=lambda: self.leads,
            limit=self.limit,
            **clocks,
        )
        for path in self.kube.objects:
            self.watch(path)

    async def sleep(self, seconds):
        self.clock += seconds

    async def delete(self, known):
        self.deleted.append(known.name)
        return True

    def on_workload(self, workload, reason, message, *, warning):
        self.events.append((workload.name, reason, message))

    def messages(self, reason):
        """Messages of events with this reason."""
        return [message for _, what, message in self.events if what == reason]

    def priority_class(self, name, value, **fields):
        body = {"metadata": {"name": name, "uid": name, "creationTimestamp": "2026-01-01T00:00:00Z"}, "value": value}
        item = decode_json(json.dumps(body | fields), Item, name)
        self.classes.append(owner_or_group_of(PRIORITY_CLASSES, item))

    # -- the API server ---------------------------------------------------------------------------------------

    def path_of(self, workload):
        return self.objects.path_of(workload.resource, workload)

    def workload(
        self, name, spec=None, *, resource=JOBS, labels=None, annotations=None, created=0, owner=None, **status
    ):
        """An object is created. `created`: seconds after NOW; `owner`: kind and name of its controller."""
        stamp = f"2026-01-01T00:{created // 60:02}:{created % 60:02}Z"
        metadata = {"name": name, "namespace": "default", "uid": f"uid-{name}", "creationTimestamp": stamp}
        metadata |= {"labels": labels or {}, "annotations": annotations or {}}
        if owner is not None:
            kind, above = owner
            reference = {"kind": kind, "name": above, "uid": f"uid-{above}", "apiVersion": "jobset.x-k8s.io/v1alpha2"}
            metadata["ownerReferences"] = [reference | {"controller": True}]
        path = f"/{resource.plural}/{name}"
        self.kube.put(path, {"metadata": metadata, "spec": spec or {}, "status": status})
        self.watch(path)

    def new_job(self, name, size=1, *, suspend=False, scheduler="poseidon", priority_class="", **fields):
        pod = {"schedulerName": scheduler, "priorityClassName": priority_class}
        spec = {"parallelism": size, "completions": size, "suspend": suspend, "template": {"spec": pod}}
        self.workload(name, spec, **fields)

    def change(self, path, patch):
        """A user or a controller changes an object."""
        _merge(self.kube.objects[path], patch)
        self.kube.put(path, self.kube.objects[path])
        self.watch(path)

    def watch(self, path):
        """The watch reports an object."""
        resource = next(each for each in KIND_OF if path.startswith(f"/{each.plural}/"))
        entry = owner_or_group_of(resource, decode_json(json.dumps(self.kube.objects[path]), Item, path))
        self.objects.put(resource, entry)
        self.queues.object_changed(resource, entry)
        self.controller.observed(entry, gone=False)
        self.work()

    def drop_workload(self, path):
        """An object is deleted."""
        uid = self.kube.objects.pop(path)["metadata"]["uid"]
        entry = self.objects.by_uid[uid]
        self.objects.delete(entry.resource, entry)
        self.controller.observed(entry, gone=True)

    def is_suspended(self, name, plural="jobs"):
        return bool(self.kube.objects[f"/{plural}/{name}"]["spec"].get("suspend"))

    def note(self, name, plural="jobs"):
        """The annotation of the scheduler."""
        text = self.kube.objects[f"/{plural}/{name}"]["metadata"].get("annotations", {}).get("poseidon.io/suspended")
        return json.loads(text) if text else None

    # -- pods -------------------------------------------------------------------------------------------------

    def pods(self, owner, *names, node="n", **fields):
        """Pods of a workload, bound unless `node` is empty."""
        for name in names:
            self.pod(name, node=node, owner=f"uid-{owner}", **fields)
        return [self.known(name) for name in names]

    def end_pods(self, *names):
        for name in names:
            self.store.remove_pod(f"uid-{name}")
        self.work()

    async def step(self):
        """A look at all that is suspended; what it writes is watched."""
        before = len(self.kube.patches)
        await self.controller.step()
        for path, _ in self.kube.patches[before:]:
            if path in self.kube.objects:
                self.watch(path)

    async def suspend(self, *pods, reason="Preempted"):
        """These pods leave."""
        done = await self.suspender.suspend(pods, reason, "why")
        for path in self.kube.objects:
            self.watch(path)
        return done

    def cluster_queue(self, name="cq", **spec):
        quota = {"name": "cpu", "nominalQuota": 100}
        group = {"coveredResources": ["cpu"], "flavors": [{"name": "f", "resources": [quota]}]}
        self.namespace("default")
        self.put("ResourceFlavor", "f")
        self.put("ClusterQueue", name, {"namespaceSelector": {}, "resourceGroups": [group], **spec})
        self.put("LocalQueue", "lq", {"clusterQueue": name}, namespace="default")


__all__ = ["JOBS", "JOB_SETS", "NOW", "QUEUE", "FakeWorkloads", "WorkloadRig"]
