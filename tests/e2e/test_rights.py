"""The rights of the scheduler's account with all features, on an API server that enforces them.

With that account the scheduler makes every kind of request that it ever makes. The requests that the server
recorded must be exactly those granted: a missing right appears as a rejected request, a superfluous one as unused.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
import yaml

from poseidon_py.state.gangs.by_owner import JOB_SETS, JOBS
from poseidon_py.state.gangs.owner_kinds import KIND_OF, KNOWN_KINDS, LEADER_WORKER_SETS, OWNER_KINDS, SUSPENDABLE
from tests.e2e.api import Json, View
from tests.e2e.backends import Backend
from tests.e2e.conftest import SharedScheduler
from tests.e2e.objects import SERVED_BY_DEVICES, condition, container, node, pod
from tests.e2e.preemption import HIGH, LOW, define_priorities, ranked
from tests.e2e.processes import Scheduler
from tests.e2e.real_backend import Real, gate_flags, why_not_real
from tests.e2e.rights import REVIEWS, account_with_rights, granted_to
from tests.e2e.test_constraints import BOUND, NONE, claim, volume, waiting
from tests.e2e.test_devices import CLAIMS, gpu_class, gpus, with_claim
from tests.e2e.test_devices import claim as claim_of_devices
from tests.e2e.test_restarts import LEASE
from tests.paths import ROOT

Schedule = Callable[..., Scheduler]
Grant = tuple[str, str, str]

ACCOUNT = "system:serviceaccount:kube-system:poseidon"
NATIVE = "scheduling.k8s.io"
LABELS = {"app": "x"}
WITH_FIGURES = {(group, "queues/status", "patch") for group in ("scheduling.run.ai", "scheduling.volcano.sh")}
"""Rights to write figures only, for which a queue has to be in use by what the flow service reports."""

WITHIN_OTHERS = {("", "pods/finalizers", "update"), ("resource.k8s.io", "resourceclaims/binding", "patch")}
"""Rights that a server asks for within other requests, which it refuses without: a test of its own shows that."""
FOR_FITS = {("resource.k8s.io", "resourceclaimtemplates", "get")}
"""For `poseidon fits` and `what-if` alone, of pods whose claims come from templates."""


@dataclass(frozen=True)
class Guarded:
    """A server, and whether it serves Kubernetes' PodGroups, in the version that is supported here."""

    server: Real
    native: bool

    def granted(self) -> set[Grant]:
        """Group, resource and verb of all rights that this server supports."""
        return {grant for grant in granted_to("scheduler") if self.native or grant[0] != NATIVE}

    def asked(self) -> Iterator[tuple[Grant, int]]:
        """The requests of the account, and the server's answers."""
        for entry in self.server.audited():
            if entry["user"]["username"] == ACCOUNT and (what := entry.get("objectRef")):
                resource = "/".join(filter(None, (what["resource"], what.get("subresource"))))
                yield (what.get("apiGroup", ""), resource, entry["verb"]), entry["responseStatus"]["code"]

    @contextmanager
    def nothing_refused(self) -> Iterator[None]:
        """Also checked after a timeout, whose most likely reason it is."""
        try:
            yield
        finally:
            refused = {grant for grant, code in self.asked() if code in (401, 403)}
            assert refused == set(), "the rights do not allow what is needed"


@pytest.fixture(scope="module", params=["real"])
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    """A server whose kubeconfig is that of an account with all rights of the table."""
    if problem := why_not_real():
        pytest.skip(problem)
    assets, folder = Path(os.environ["KUBEBUILDER_ASSETS"]), tmp_path_factory.mktemp("rights")
    server = Real(assets, folder, authorization="RBAC", flags=gate_flags(assets), watched=ACCOUNT)
    try:
        server.kubeconfig = server.kubeconfig_with(
            account_with_rights(server, "scheduler", "poseidon"), folder / "account"
        )
        served = server.api("GET", f"/apis/{NATIVE}")["versions"]
        yield Guarded(server, native="v1alpha2" in [each["version"] for each in served])
    finally:
        server.close()


@pytest.fixture(scope="module")
def server(guarded: Guarded) -> Real:
    """The server, for the shared fixtures."""
    return guarded.server


@pytest.fixture(scope="module")
def shared_scheduler(server: Real, tmp_path_factory: pytest.TempPathFactory) -> SharedScheduler:
    """Required by `schedule`, which stops it first; not used here."""
    return SharedScheduler(server, tmp_path_factory.mktemp("scheduler"))


def test_exactly_the_needed_requests_are_allowed(guarded: Guarded, backend: Backend, schedule: Schedule) -> None:
    with guarded.nothing_refused():
        do_everything(guarded, backend, schedule)
    asked, granted = {grant for grant, _ in guarded.asked()}, guarded.granted()
    assert sorted(granted - asked - WITH_FIGURES - REVIEWS - WITHIN_OTHERS - FOR_FITS) == [], "superfluous"
    assert sorted(asked - granted) == [], "missing"


def do_everything(guarded: Guarded, backend: Backend, schedule: Schedule) -> None:
    """Causes every kind of request, with two replicas of which the second takes over."""
    backend.create(*(node(f"n{at}", cpu="8", pods=40) for at in range(3)), node("small", cpu="2"))
    define(backend)
    half_a_gang(backend)
    backend.create(QUEUE)
    kinds = ",".join(each.resource.plural for each in CUSTOM)
    usage = ("--usage", "used", "--usage-interval", "1", "--queue-half-life", "3600")
    flags = (*LEASE, *usage, "--gang-timeout", "1", "--gangs-from", kinds)
    leader = schedule(*flags)
    leader.until_says("leading: ")
    until(backend, "/apis/poseidon.io/v1/queues", has_condition)
    standby = schedule(*flags)
    for scenario in (
        reports,
        preemption,
        gangs_by_owner,
        gangs_without_marks,
        gangs_by_object,
        volumes,
        queues,
        suspended,
        devices,
    ):
        scenario(backend)
    if guarded.native:
        native_gang(backend)
    backend.pods.until(lambda pods: not {"half-0", "half-1"} & {p["metadata"]["name"] for p in pods}, "evictions")
    leader.end()
    standby.until_says("leading: ")
    backend.create(pod("after"))
    backend.until_bound(1, "after")
    standby.end()


def define(backend: Backend) -> None:
    """Kinds of other projects. Their controllers do not run; the tests act for them."""
    kinds = [(group, "PodGroup", "podgroups", version) for group, version, _ in GROUPS]
    kinds += [
        ("scheduler.grove.io", "PodGang", "podgangs", "v1alpha1"),
        ("batch.volcano.sh", "Job", "jobs", "v1alpha1"),
    ]
    kinds += QUEUE_KINDS
    backend.create(*yaml.safe_load_all((ROOT / "deploy" / "chart" / "definitions" / "queues.yaml").read_text()))
    kinds += [("jobset.x-k8s.io", "JobSet", "jobsets", "v1alpha2")]
    kinds += [(each.resource.group, each.kind, each.resource.plural, each.resource.versions[0]) for each in CUSTOM]
    kinds += [each for each in FURTHER if each[0] != "batch"]
    kinds += [("metrics.k8s.io", f"{kind}Metrics", f"{kind.lower()}s", "v1beta1") for kind in ("Node", "Pod")]
    for group, kind, plural, version in kinds:
        schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
        status: Json = {} if group in WITHOUT_SUBRESOURCE and kind == "PodGroup" else {"subresources": {"status": {}}}
        served = {"name": version, "served": True, "storage": True, "schema": schema, **status}
        scope = "Cluster" if kind in CLUSTER_SCOPED else "Namespaced"
        names = {"plural": plural, "kind": kind}
        metadata = {
            "name": f"{plural}.{group}",
            "annotations": {"api-approved.kubernetes.io": "unapproved, for a test"},
        }
        spec = {"group": group, "scope": scope, "names": names, "versions": [served]}
        crd = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition"}
        backend.create(crd | {"metadata": metadata, "spec": spec})
    until(
        backend,
        "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
        lambda items: all(condition(item, "Established").get("status") == "True" for item in items),
    )


def until(backend: Backend, path: str, true: Callable[[list[Json]], object]) -> None:
    """Waits for a condition on objects other than pods."""
    view = View(backend.api, path)
    try:
        view.until(true, path)
    finally:
        view.stop()


def reports(backend: Backend) -> None:
    """Causes events, one of them repeated, and conditions."""
    backend.create(pod("large", cpu="64"))
    backend.until_unschedulable("large")
    message = backend.until_event("FailedScheduling", "large")["message"]
    backend.create(node("another"))
    backend.until_event("FailedScheduling", "large", "0/5 nodes")
    backend.delete("/api/v1/nodes", "another")
    backend.events.until(lambda events: any(e["message"] == message and e.get("count", 0) > 1 for e in events))


def preemption(backend: Backend) -> None:
    """A pod is deleted for one of higher priority."""
    define_priorities(backend)
    backend.create(node("full", cpu="1"))
    only_there = {"kubernetes.io/hostname": "full"}
    backend.create(ranked("victim", LOW, cpu="1", nodeSelector=only_there))
    backend.until_bound(1, "victim")
    backend.create(ranked("preemptor", HIGH, cpu="1", nodeSelector=only_there))
    backend.until_bound(1, "preemptor")


def devices(backend: Backend, on: str = "n0") -> None:
    """Devices for a claim and for an extended resource, and a claim that was left behind by another process."""
    backend.create(gpu_class(extendedResourceName=SERVED_BY_DEVICES), gpus(on, 3))
    backend.create(claim_of_devices("named"), with_claim("claims", "named"))
    served, too_large = pod("served", cpu="100m"), pod("too-large", cpu="64")
    for each in (served, too_large):
        for part in ("requests", "limits"):
            each["spec"]["containers"][0]["resources"].setdefault(part, {})[SERVED_BY_DEVICES] = "1"
    _, waits = backend.create(served, too_large)
    for name in ("claims", "served"):
        backend.until_bound(1, name)
    left = claim_of_devices("left-behind")
    annotations = {"resource.kubernetes.io/extended-resource-claim": "true"}
    left["metadata"] |= {"ownerReferences": [controlled_by(waits)], "annotations": annotations}
    backend.create(left)
    until(backend, CLAIMS, lambda items: all(each["metadata"]["name"] != "left-behind" for each in items))


# -- gangs -----------------------------------------------------------------------------------------------------------


def members(
    name: str, count: int = 2, owner: Json | None = None, metadata: Json | None = None, **spec: Any
) -> list[Json]:
    """Pods of a gang; `owner`: the object that controls them."""
    about = dict(metadata or {})
    if owner is not None:
        about["ownerReferences"] = [controlled_by(owner)]
    return [pod(f"{name}-{at}", metadata=about, **spec) for at in range(count)]


def controlled_by(owner: Json) -> Json:
    about = {"name": owner["metadata"]["name"], "uid": owner["metadata"]["uid"], "controller": True}
    return {"apiVersion": owner["apiVersion"], "kind": owner["kind"]} | about


def template(restart: str = "Always") -> Json:
    return {"metadata": {"labels": LABELS}, "spec": {"containers": [container()], "restartPolicy": restart}}


JOB = {"parallelism": 2, "completions": 2, "template": template("Never")}
REPLICAS = {"replicas": 2, "selector": {"matchLabels": LABELS}, "template": template()}
OWNERS: dict[str, tuple[str, Json]] = {
    "Job": ("batch/v1", JOB),
    "ReplicaSet": ("apps/v1", REPLICAS),
    "ReplicationController": ("v1", REPLICAS | {"selector": LABELS}),
    "StatefulSet": ("apps/v1", REPLICAS | {"serviceName": "x"}),
    "Deployment": ("apps/v1", REPLICAS),
    "JobSet": (
        "jobset.x-k8s.io/v1alpha2",
        {"replicatedJobs": [{"name": "j", "replicas": 1, "template": {"spec": JOB}}]},
    ),
}
BETWEEN = {"Deployment": "ReplicaSet", "JobSet": "Job"}
"""What such an owner has that has the pods."""


def owner(kind: str, name: str, **metadata: object) -> Json:
    version, spec = OWNERS[kind]
    return {"apiVersion": version, "kind": kind, "metadata": {"name": name, **metadata}, "spec": spec}


def half_a_gang(backend: Backend) -> None:
    """Two of three are bound, as after the exit of a scheduler, and there is no capacity for the third. Their owner
    cannot be suspended, so they are evicted."""
    spec = {**REPLICAS, "replicas": 3}
    (found,) = backend.create(owner("ReplicaSet", "half", annotations={"poseidon.io/gang": "all"}) | {"spec": spec})
    pods = members("half", 3, found, cpu="1", nodeSelector={"kubernetes.io/hostname": "small"})
    backend.create(*pods)
    backend.bind("half-0", "small")
    backend.bind("half-1", "small")


def gangs_by_owner(backend: Backend) -> None:
    gang = {"poseidon.io/gang": "all"}
    for kind in OWNERS:
        name = kind.lower()
        (found,) = backend.create(owner(kind, name, annotations=gang))
        if kind in BETWEEN:
            between = owner(BETWEEN[kind], f"of-{name}", ownerReferences=[controlled_by(found)])
            (found,) = backend.create(between)
        role = {"labels": {"jobset.sigs.k8s.io/replicatedjob-name": "j"}} if kind == "JobSet" else {}
        first, second = members(name, owner=found, metadata=role)
        backend.create(first)
        backend.until_event("FailedScheduling", f"{name}-0", "1 more member")
        backend.create(second)
        backend.until_bound(2, f"{name}-")
        # what is not there when its pods are is asked for by name
        gone = owner(kind, "gone", uid=str(uuid4()))
        backend.create(*members(f"orphan-{name}", 1, gone))
        backend.until_bound(1, f"orphan-{name}")


CUSTOM = [each for each in OWNER_KINDS.values() if each.resource not in (JOBS, JOB_SETS)]


FURTHER = [
    *(
        (kind.group, kind.kind, resource.plural, resource.versions[0])
        for kind, resource in KNOWN_KINDS.items()
        if resource in SUSPENDABLE and resource not in (JOBS, JOB_SETS, *(each.resource for each in CUSTOM))
    ),
    ("ray.io", "RayService", "rayservices", "v1"),
    ("sparkoperator.k8s.io", "ScheduledSparkApplication", "scheduledsparkapplications", "v1beta2"),
    ("batch", "CronJob", "cronjobs", "v1"),
    ("disaggregatedset.x-k8s.io", "DisaggregatedSet", "disaggregatedsets", "v1"),
]
"""Owners that declare no gang: group, kind, plural, version."""


def gangs_without_marks(backend: Backend) -> None:
    """An owner that the watch has not shown is asked for by name."""
    for kind in CUSTOM:
        plural, group = kind.resource.plural, kind.resource.group
        version = f"{group}/{kind.resource.versions[0]}"
        gone = {"apiVersion": version, "kind": kind.kind, "metadata": {"name": "gone", "uid": str(uuid4())}}
        labels = {"leaderworkerset.sigs.k8s.io/name": "gone", "leaderworkerset.sigs.k8s.io/group-index": "0"}
        of_set = {"labels": labels} if kind.resource == LEADER_WORKER_SETS else {}
        backend.create(*members(f"orphan-{plural}", 1, gone, metadata=of_set))
        why = "not found" if of_set else f"{kind.kind} default/gone does not exist any more"
        backend.until_event("FailedScheduling", f"orphan-{plural}-0", why)
    for group, name, plural, version in FURTHER:
        gone = {"apiVersion": f"{group}/{version}", "kind": name, "metadata": {"name": "gone", "uid": str(uuid4())}}
        backend.create(*members(f"orphan-{plural}", 1, gone))
        backend.until_bound(1, f"orphan-{plural}")


WITHOUT_SUBRESOURCE = ("scheduling.volcano.sh",)
"""Whose own definition of a PodGroup has no subresource for the status."""
GROUPS: tuple[tuple[str, str, Json], ...] = (
    ("scheduling.x-k8s.io", "v1alpha1", {"labels": {"scheduling.x-k8s.io/pod-group": "g"}}),
    ("scheduling.sigs.k8s.io", "v1alpha1", {"labels": {"pod-group.scheduling.sigs.k8s.io": "g"}}),
    ("scheduling.volcano.sh", "v1beta1", {"annotations": {"scheduling.k8s.io/group-name": "g"}}),
    ("scheduling.run.ai", "v2alpha2", {"annotations": {"pod-group-name": "g"}}),
    ("scheduling.godel.kubewharf.io", "v1alpha1", {"annotations": {"godel.bytedance.com/pod-group-name": "g"}}),
)


def gangs_by_object(backend: Backend) -> None:
    for group, version, metadata in GROUPS:
        name = group.removeprefix("scheduling.").partition(".")[0]
        about = {"apiVersion": f"{group}/{version}", "kind": "PodGroup", "metadata": {"name": "g"}}
        backend.create(about | {"spec": {"minMember": 2}}, *members(name, metadata=metadata))
        backend.until_bound(2, f"{name}-")
    awaited: Json = {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "metadata": {"name": "awaited"}}
    tasks = [{"name": "t", "replicas": 2, "template": {"spec": {"schedulerName": "poseidon"}}}]
    (job,) = backend.create(awaited | {"spec": {"tasks": tasks}})
    gone = awaited | {"metadata": {"name": "gone", "uid": str(uuid4())}}
    controllers: dict[str, Json] = {"awaited": job, "gone": gone}
    for name, of in controllers.items():  # their pods come once their phase is not Pending any more
        metadata = {"name": name, "ownerReferences": [controlled_by(of)]}
        pod_group: Json = {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "PodGroup", "metadata": metadata}
        backend.create(pod_group | {"spec": {"minMember": 2}})
    path = "/apis/scheduling.volcano.sh/v1beta1/namespaces/default/podgroups"
    until(backend, path, lambda items: "Inqueue" in [item.get("status", {}).get("phase") for item in items])
    gang: Json = {"apiVersion": "scheduler.grove.io/v1alpha1", "kind": "PodGang", "metadata": {"name": "g"}}
    gang["spec"] = {"podgroups": [{"name": "c", "minReplicas": 2, "podReferences": []}]}
    backend.create(gang, *members("grove", metadata={"labels": {"grove.io/podgang": "g", "grove.io/podclique": "c"}}))
    backend.until_bound(2, "grove-")
    path = "/apis/scheduling.x-k8s.io/v1alpha1/namespaces/default/podgroups"
    until(backend, path, lambda items: [item for item in items if item.get("status", {}).get("phase") == "Scheduling"])


def native_gang(backend: Backend) -> None:
    about = {"apiVersion": f"{NATIVE}/v1alpha2", "kind": "PodGroup", "metadata": {"name": "g"}}
    backend.create(about | {"spec": {"schedulingPolicy": {"gang": {"minCount": 2}}}})
    backend.create(*members("native", schedulingGroup={"podGroupName": "g"}))
    backend.until_bound(2, "native-")
    path = f"/apis/{NATIVE}/v1alpha2/namespaces/default/podgroups"
    until(backend, path, lambda items: [i for i in items if condition(i, "PodGroupScheduled").get("status") == "True"])


# -- queues ----------------------------------------------------------------------------------------------------------


KUEUE = "kueue.x-k8s.io/v1beta2"
QUEUE: Json = {"apiVersion": "poseidon.io/v1", "kind": "Queue", "metadata": {"name": "own"}, "spec": {"weight": 2}}
QUEUE_KINDS = [
    ("kueue.x-k8s.io", "ClusterQueue", "clusterqueues", "v1beta2"),
    ("kueue.x-k8s.io", "Cohort", "cohorts", "v1beta2"),
    ("kueue.x-k8s.io", "LocalQueue", "localqueues", "v1beta2"),
    ("kueue.x-k8s.io", "ResourceFlavor", "resourceflavors", "v1beta2"),
    ("kueue.x-k8s.io", "Topology", "topologies", "v1beta2"),
    ("kueue.x-k8s.io", "WorkloadPriorityClass", "workloadpriorityclasses", "v1beta2"),
    ("kai.scheduler", "SchedulingShard", "schedulingshards", "v1"),
    ("scheduling.run.ai", "Queue", "queues", "v2"),
    ("scheduling.volcano.sh", "Queue", "queues", "v1beta1"),
    ("scheduling.x-k8s.io", "ElasticQuota", "elasticquotas", "v1alpha1"),
    ("scheduling.sigs.k8s.io", "ElasticQuota", "elasticquotas", "v1alpha1"),
]
CLUSTER_SCOPED = {
    *("NodeMetrics", "ClusterQueue", "Cohort", "ResourceFlavor", "Topology", "WorkloadPriorityClass", "Queue"),
    "SchedulingShard",
}


def has_condition(items: list[Json]) -> bool:
    return any(condition(item, "Active") for item in items)


def queues(backend: Backend) -> None:
    """The status of a queue of our own is written at the start; then those of Kueue are in force."""
    by_use = {"admissionMode": "UsageBasedAdmissionFairSharing"}  # past use is stored when the leader stops
    queue: Json = {"namespaceSelector": {}, "resourceGroups": [], "admissionScope": by_use}
    local = {"clusterQueue": "q"}
    backend.create(
        {"apiVersion": KUEUE, "kind": "ClusterQueue", "metadata": {"name": "q"}, "spec": queue},
        {"apiVersion": KUEUE, "kind": "LocalQueue", "metadata": {"name": "lq"}, "spec": local},
    )
    until(backend, f"/apis/{KUEUE}/clusterqueues", has_condition)
    until(backend, f"/apis/{KUEUE}/namespaces/default/localqueues", has_condition)


def suspended(backend: Backend) -> None:
    """Workloads of all kinds that can be suspended are resumed; Kueue's queue takes their pods."""
    for resource in SUSPENDABLE:
        home = f"{resource.group}/{resource.versions[0]}"
        pods = template("Never")
        pods["spec"]["schedulerName"] = "poseidon"
        spec: Json = {"template": pods, "suspend": True}
        if resource != JOBS:
            spec |= {"runPolicy": {"suspend": True}, "shutdownAfterJobFinishes": True}
        about = {"name": f"asleep-{resource.plural}", "labels": {"kueue.x-k8s.io/queue-name": "lq"}}
        backend.create({"apiVersion": home, "kind": KIND_OF[resource], "metadata": about, "spec": spec})
        path = f"/apis/{home}/namespaces/default/{resource.plural}"
        until(backend, path, partial(is_resumed, f"asleep-{resource.plural}"))


def is_resumed(name: str, items: list[Json]) -> bool:
    found = [each["spec"] for each in items if each["metadata"]["name"] == name]
    return any(not (spec.get("suspend") and spec.get("runPolicy", {}).get("suspend", True)) for spec in found)


# -- volumes ---------------------------------------------------------------------------------------------------------


def volumes(backend: Backend) -> None:
    """An existing volume is bound to its claim, another is requested; controllers would do the rest."""
    backend.create(waiting("there", NONE), volume("there", "n1"), waiting("made"), claim("there"), claim("made"))
    backend.patch("/api/v1/persistentvolumes/there/status", {"status": {"phase": "Available"}})
    for name in ("there", "made"):
        user = pod(f"uses-{name}", volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": name}}])
        backend.create(user)
    claims = "/api/v1/namespaces/default/persistentvolumeclaims"
    until(backend, "/api/v1/persistentvolumes", lambda items: [i for i in items if i["spec"].get("claimRef")])
    chosen = "volume.kubernetes.io/selected-node"
    until(backend, claims, lambda items: [i for i in items if chosen in i["metadata"].get("annotations", {})])
    backend.create(volume("made"))
    for name in ("there", "made"):
        backend.patch(f"{claims}/{name}", {"metadata": {"annotations": BOUND}, "spec": {"volumeName": name}})
    assert backend.until_bound(2, "uses-")["uses-there"] == "n1"
