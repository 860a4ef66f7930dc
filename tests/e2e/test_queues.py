"""Queues without their controllers: what they lend and take back, their status, and what users are told."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import yaml

from tests.e2e.api import PATIENCE, ApiError, Json
from tests.e2e.backends import PODS, Backend
from tests.e2e.conftest import SYNTHETIC
from tests.e2e.definitions import remove_definitions
from tests.e2e.objects import condition, node, pod
from tests.e2e.preemption import guard, relax
from tests.e2e.processes import POSEIDON, Scheduler, run
from tests.paths import ROOT

KUEUE = "kueue.x-k8s.io/v1beta2"
LOCAL = "kueue.x-k8s.io/queue-name"
OWN = "poseidon.io/queue"
_CLUSTER_QUEUES = f"/apis/{KUEUE}/clusterqueues"
_LOCAL_QUEUES = f"/apis/{KUEUE}/namespaces/default/localqueues"
_FLAVORS = f"/apis/{KUEUE}/resourceflavors"
_OWN_QUEUES = "/apis/poseidon.io/v1/queues"
_TOPOLOGIES = f"/apis/{KUEUE}/topologies"
_PRIORITIES = f"/apis/{KUEUE}/workloadpriorityclasses"
_KINDS = {
    "ClusterQueue": "clusterqueues",
    "LocalQueue": "localqueues",
    "ResourceFlavor": "resourceflavors",
    "Topology": "topologies",
    "WorkloadPriorityClass": "workloadpriorityclasses",
}

Schedule = Callable[..., Scheduler]


def definition(kind: str, plural: str) -> Json:
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    served = {"name": "v1beta2", "served": True, "storage": True, "schema": schema, "subresources": {"status": {}}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.kueue.x-k8s.io"},
        "spec": {
            "group": "kueue.x-k8s.io",
            "scope": "Namespaced" if kind == "LocalQueue" else "Cluster",
            "names": {"plural": plural, "singular": kind.lower(), "kind": kind, "listKind": f"{kind}List"},
            "versions": [served],
        },
    }


@pytest.fixture
def kueue(backend: Backend) -> Iterator[None]:
    """Kueue's kinds."""
    backend.create(*(definition(kind, plural) for kind, plural in _KINDS.items()))
    until_served(backend, _CLUSTER_QUEUES, _LOCAL_QUEUES, _FLAVORS, _TOPOLOGIES, _PRIORITIES)
    yield
    remove_definitions(backend, *(f"{plural}.kueue.x-k8s.io" for plural in _KINDS.values()))


@pytest.fixture
def own(backend: Backend) -> Iterator[None]:
    """Our own kind, as users install it."""
    items = list(yaml.safe_load_all((ROOT / "deploy" / "chart" / "definitions" / "queues.yaml").read_text()))
    backend.create(*items)
    until_served(backend, _OWN_QUEUES)
    yield
    remove_definitions(backend, *(item["metadata"]["name"] for item in items))


def until_served(backend: Backend, *paths: str) -> None:
    def served() -> bool:
        try:
            for path in paths:
                backend.api("GET", path)
        except ApiError:
            return False
        return True

    eventually(served, "the kinds are served")


def eventually(probe: Callable[[], Any], what: str) -> Any:
    end = time.monotonic() + PATIENCE
    while not (found := probe()):
        assert time.monotonic() < end, f"never: {what}"
        time.sleep(0.05)
    return found


def cluster_queue(name: str, cpu: str, flavor: str = "all", **spec: Any) -> Json:
    quota = {"name": flavor, "resources": [{"name": "cpu", "nominalQuota": cpu}]}
    spec = {
        "namespaceSelector": {},
        "cohortName": "org",
        "resourceGroups": [{"coveredResources": ["cpu"], "flavors": [quota]}],
        "preemption": {"reclaimWithinCohort": "Any", "withinClusterQueue": "LowerPriority"},
    } | spec
    return {"apiVersion": KUEUE, "kind": "ClusterQueue", "metadata": {"name": name}, "spec": spec}


def local_queue(name: str, target: str) -> Json:
    return {"apiVersion": KUEUE, "kind": "LocalQueue", "metadata": {"name": name}, "spec": {"clusterQueue": target}}


def flavor(name: str, **spec: Any) -> Json:
    return {"apiVersion": KUEUE, "kind": "ResourceFlavor", "metadata": {"name": name}, "spec": spec}


def own_queue(name: str, **spec: Any) -> Json:
    return {"apiVersion": "poseidon.io/v1", "kind": "Queue", "metadata": {"name": name}, "spec": spec}


def queued(prefix: str, count: int, label: str, queue: str) -> list[Json]:
    metadata: Json = {"labels": {label: queue}}
    return [pod(f"{prefix}-{at}", metadata=metadata, containers=[one_cpu()]) for at in range(count)]


def one_cpu() -> Json:
    return {"name": "main", "image": "example.com/image:1", "resources": {"requests": {"cpu": "1"}}}


def status_of(backend: Backend, path: str, name: str) -> Json:
    found: Json = backend.api("GET", f"{path}/{name}").get("status", {})
    return found


def until_status(backend: Backend, path: str, name: str, **expected: Any) -> Json:
    """Waits until the status of an object has these fields."""

    def probe() -> Json | None:
        found = status_of(backend, path, name)
        return found if {key: found.get(key) for key in expected} == expected else None

    found: Json = eventually(probe, f"status of {name}: {expected}, but {status_of(backend, path, name)}")
    return found


def ask(scheduler: Scheduler, *arguments: str, code: int = 0) -> str:
    answer = run(*POSEIDON, *arguments, "--address", scheduler.address)
    assert answer.returncode == code, answer.stderr
    return answer.stderr if code else answer.stdout


def listed(scheduler: Scheduler, *arguments: str) -> dict[str, Json]:
    """`poseidon queues --json`, by name."""
    found: Json = json.loads(ask(scheduler, "queues", "--json", *arguments))
    return {each["name"]: each for each in found["queues"]}


def until_listed(scheduler: Scheduler, name: str, **expected: Any) -> Json:
    def probe() -> Json | None:
        found = listed(scheduler).get(name, {})
        return found if {key: found.get(key) for key in expected} == expected else None

    found: Json = eventually(probe, f"queue {name} as {expected}, but {listed(scheduler).get(name)}")
    return found


def usage(total: str, borrowed: str) -> list[Json]:
    return [{"name": "all", "resources": [{"name": "cpu", "total": total, "borrowed": borrowed}]}]


def gone(backend: Backend, prefix: str) -> list[str]:
    """Pods that have been deleted."""
    return [
        p["metadata"]["name"]
        for what, p in backend.pods.history
        if what == "DELETED" and p["metadata"]["name"].startswith(prefix)
    ]


@pytest.mark.usefixtures("kueue")
def test_a_cohort_lends_and_takes_back(backend: Backend, schedule: Schedule) -> None:
    backend.create(node("n", cpu="4"), flavor("all"), cluster_queue("team-a", "2"), cluster_queue("team-b", "2"))
    backend.create(local_queue("a", "team-a"), local_queue("b", "team-b"))
    backend.create(cluster_queue("odd", "x", cohortName=""), cluster_queue("lost", "1", "none", cohortName=""))
    scheduler = schedule("--queues", "kueue")
    backend.create(*queued("a", 5, LOCAL, "a"))
    backend.until_bound(4, "a-")
    until_status(backend, _CLUSTER_QUEUES, "team-a", flavorsUsage=usage("4", "2"), admittedWorkloads=4)
    until_status(backend, _CLUSTER_QUEUES, "team-a", pendingWorkloads=1)
    (waiting,) = {f"a-{at}" for at in range(5)} - set(backend.bound("a-"))
    text = ask(scheduler, "queues", "team-a")
    assert f"default/{waiting}: waits for quota of queue org: lacks 1 cpu" in text
    (row,) = [line for line in text.splitlines() if "team-a" in line and "cpu" in line]
    assert [cell.strip() for cell in row.strip("│┃ ").split("│")] == [
        "team-a", "open", "4", "1", "0.5", "cpu", "4", "2", "2",
    ]  # fmt: skip
    assert "waits for quota of queue org: lacks 1 cpu" in ask(scheduler, "explain", f"default/{waiting}")
    # team-b takes its own back
    backend.create(*queued("b", 3, LOCAL, "b"))
    backend.until_bound(2, "b-")
    assert len(gone(backend, "a-")) == 2
    conditions = [
        condition(item, "DisruptionTarget") for _, item in backend.pods.history if item["metadata"]["name"][0] == "a"
    ]
    assert {each["message"] for each in conditions if each} == {"poseidon: reclaiming capacity for queue team-b"}
    until_status(backend, _CLUSTER_QUEUES, "team-a", flavorsUsage=usage("2", "0"), admittedWorkloads=2)
    until_status(backend, _CLUSTER_QUEUES, "team-b", flavorsUsage=usage("2", "0"), pendingWorkloads=1)
    whole = until_listed(scheduler, "org", running=4, pending=2)
    assert (whole["type"], whole["parent"], whole["depth"]) == ("Cohort", None, 0)
    assert [(each["used"], each["guarantee"], each["limit"]) for each in whole["resources"]] == [("4", "4", None)]
    # objects with mistakes are named, and the others have gone on
    queues = listed(scheduler)
    assert queues["lost"]["state"] == "stopped"
    assert queues["lost"]["why"] == "ResourceFlavor none does not exist; create it or change spec.resourceGroups"
    assert "'x' is not" in queues["odd"]["problems"][0]
    text = ask(scheduler, "queues")
    assert "org (Cohort)" in text
    assert "lost: ResourceFlavor none does not exist" in text
    assert condition(backend.api("GET", f"{_CLUSTER_QUEUES}/lost"), "Active")["reason"] == "FlavorNotFound"
    assert "did you mean team-b or team-a?" in ask(scheduler, "queues", "team-c", code=1)
    scheduler.until_shows('poseidon_queue_used{queue="team-b",resource="cpu",type="ClusterQueue"} 2.0')
    scheduler.until_shows('poseidon_queue_guaranteed{queue="org",resource="cpu",type="Cohort"} 4.0')
    scheduler.until_shows('poseidon_queue_pending_pods{queue="team-b",type="ClusterQueue"} 1.0')


@pytest.mark.usefixtures("own")
def test_our_own_queues_lend_and_take_back(backend: Backend, schedule: Schedule) -> None:
    backend.create(node("n", cpu="4"), own_queue("org"), own_queue("lost", parent="none"))
    backend.create(*(own_queue(name, parent="org", guarantee={"cpu": "2"}) for name in ("team-a", "team-b")))
    scheduler = schedule()
    backend.create(*queued("a", 5, OWN, "team-a"))
    backend.until_bound(4, "a-")
    until_status(backend, _OWN_QUEUES, "team-a", used={"cpu": "4"}, borrowed={"cpu": "2"}, running=4, pending=1)
    backend.create(*queued("b", 2, OWN, "team-b"))
    backend.until_bound(2, "b-")
    assert len(gone(backend, "a-")) == 2
    until_status(backend, _OWN_QUEUES, "team-a", used={"cpu": "2"}, borrowed={"cpu": "0"}, fairShare={"cpu": "2"})
    until_status(backend, _OWN_QUEUES, "team-b", used={"cpu": "2"}, borrowed={"cpu": "0"}, running=2, pending=0)
    lost = "spec.parent: queue none does not exist; create it or name another"
    assert (listed(scheduler)["lost"]["state"], listed(scheduler)["lost"]["why"]) == ("invalid", lost)
    text = ask(scheduler, "queues", "org")
    assert "org: the oldest of the pods that wait\n  default/a-" in text
    assert ": 0/1 nodes are available: 1 Insufficient cpu." in text  # quota is left, but no capacity
    names = [line[2:].split("│")[0].rstrip() for line in text.splitlines() if line.startswith("│")]
    assert names == ["org", "  team-a", "  team-b"]
    backend.patch(f"{_OWN_QUEUES}/team-b", {"spec": {"stop": "hold"}})
    assert until_listed(scheduler, "team-b", state="stopped")["why"] == "spec.stop is hold"


def test_without_queues_users_learn_how_to_make_one(backend: Backend, schedule: Schedule) -> None:
    scheduler = schedule("--queues", "volcano")
    text = ask(scheduler, "queues")
    assert "queues of kind volcano are in force" in text
    assert "no queues; to have some, create a Queue of scheduling.volcano.sh/v1beta1" in text
    assert "there are none: create a Queue" in ask(scheduler, "queues", "x", code=1)


@pytest.mark.usefixtures("kueue")
def test_the_local_queue_that_used_least_is_served_first_also_after_a_restart(
    backend: Backend, schedule: Schedule
) -> None:
    by_use = {"admissionMode": "UsageBasedAdmissionFairSharing"}
    backend.create(node("n", cpu="9"), flavor("all"), cluster_queue("q", "4", cohortName="", admissionScope=by_use))
    backend.create(local_queue("a", "q"), local_queue("b", "q"))
    arguments = "--queues", "kueue", "--queue-half-life", "3600"
    scheduler = schedule(*arguments)
    backend.create(*queued("a", 6, LOCAL, "a"))
    backend.until_bound(4, "a-")

    def used() -> dict[str, float]:
        return {each["name"]: each["past_use"] for each in listed(scheduler)["q"]["local_queues"]}

    eventually(lambda: used()["default/a"] > 0, "local queue a has used something")
    backend.create(*queued("b", 4, LOCAL, "b"))
    eventually(lambda: listed(scheduler)["q"]["pending"] == 6, "all other pods wait")
    backend.delete(PODS, *list(backend.bound("a-"))[:2])
    backend.until_bound(2, "b-")
    assert len(backend.bound("a-")) == 2
    until_status(backend, _LOCAL_QUEUES, "b", admittedWorkloads=2, pendingWorkloads=2)
    consumed = status_of(backend, _LOCAL_QUEUES, "a")["fairSharing"]["admissionFairSharingStatus"]
    assert set(consumed) == {"consumedResources", "lastUpdate"}
    before = used()
    assert before["default/a"] > before["default/b"] > 0
    assert scheduler.end() == 0
    scheduler = schedule(*arguments)
    eventually(lambda: used()["default/a"] >= before["default/a"], "what was used before the restart counts")


@pytest.mark.usefixtures("own")
def test_a_queue_drains_within_budgets_until_it_is_started_again(backend: Backend, schedule: Schedule) -> None:
    backend.create(node("n", cpu="9"), own_queue("team-a"), own_queue("team-b"))
    scheduler = schedule("--queue-drain-rate", "20")
    backend.create(*queued("a", 3, OWN, "team-a"), *queued("b", 1, OWN, "team-b"))
    backend.until_bound(4)
    for at in range(3):  # budgets do not hold for pods that do not run, or are not ready
        ready = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
        backend.patch(f"{PODS}/a-{at}/status", {"status": ready})
    guard(backend, {OWN: "team-a"}, 0)
    backend.patch(f"{_OWN_QUEUES}/team-a", {"spec": {"stop": "drain"}})
    found = until_listed(scheduler, "team-a", state="draining", running=3)
    assert found["why"] == "spec.stop is drain: 3 pods still run, and are evicted"

    def events(reason: str) -> set[str]:
        items = backend.api("GET", "/api/v1/namespaces/default/events")["items"]
        return {each["involvedObject"]["name"] for each in items if each["reason"] == reason}

    eventually(lambda: events("DrainDelayed") == {"a-0", "a-1", "a-2"}, "events say why they stay")
    # another leader goes on with it, once the budget permits that
    assert scheduler.end() == 0
    relax(backend, "team-a", 1)
    scheduler = schedule("--queue-drain-rate", "20")
    eventually(lambda: gone(backend, "a-"), "the next leader drains the queue")
    eventually(lambda: events("QueueDrained") >= set(gone(backend, "a-")), "events say why they leave")
    backend.patch(f"{_OWN_QUEUES}/team-a", {"spec": {"stop": "none"}})
    until_listed(scheduler, "team-a", state="open")
    backend.create(*queued("new", 1, OWN, "team-a"))
    backend.until_bound(1, "new-")
    assert not gone(backend, "b-")


@pytest.mark.usefixtures("kueue")
def test_a_pod_group_is_placed_in_one_domain_of_a_topology(backend: Backend, schedule: Schedule) -> None:
    for name, rack, cpu in (("a", "r1", "2"), ("b", "r1", "1"), ("c", "r2", "2"), ("d", "r2", "2")):
        backend.create(node(name, cpu=cpu, labels={"rack": rack}))
    backend.create(flavor("all", topologyName="dc"), cluster_queue("q", "9", cohortName=""), local_queue("q", "q"))
    scheduler = schedule("--queues", "kueue")
    missing = "Topology dc does not exist; create it or change spec.topologyName of ResourceFlavor all"
    assert until_listed(scheduler, "q", state="stopped")["why"] == missing
    levels = {"levels": [{"nodeLabel": "rack"}]}
    topology = {"apiVersion": KUEUE, "kind": "Topology", "metadata": {"name": "dc"}, "spec": levels}
    backend.api("POST", _TOPOLOGIES, topology)
    until_listed(scheduler, "q", state="open")

    def group(name: str, count: int, level: str) -> list[Json]:
        metadata: Json = {
            "labels": {LOCAL: "q", "kueue.x-k8s.io/pod-group-name": name},
            "annotations": {
                "kueue.x-k8s.io/pod-group-total-count": str(count),
                "kueue.x-k8s.io/podset-required-topology": level,
            },
        }
        return [pod(f"{name}-{at}", metadata=metadata, containers=[one_cpu()]) for at in range(count)]

    backend.create(*group("wide", 4, "rack"), *group("odd", 2, "shelf"))
    backend.until_bound(4, "wide-")
    assert set(backend.bound("wide-").values()) == {"c", "d"}
    wrong = "annotation kueue.x-k8s.io/podset-required-topology: shelf is no level of Topology dc; give rack"
    eventually(lambda: wrong in ask(scheduler, "explain", "default/odd-0"), "the pod says what is wrong")


@pytest.mark.usefixtures("kueue")
def test_a_pod_group_leaves_its_preferred_rack_for_the_block_around_it(backend: Backend, schedule: Schedule) -> None:
    for name, rack, block, cpu in (
        *(("a", "r1", "x", "2"), ("b", "r2", "x", "1")),
        *(("c", "r3", "y", "2"), ("d", "r4", "y", "2")),
    ):
        backend.create(node(name, cpu=cpu, labels={"rack": rack, "block": block}))
    levels = {"levels": [{"nodeLabel": "block"}, {"nodeLabel": "rack"}]}
    backend.api(
        "POST", _TOPOLOGIES, {"apiVersion": KUEUE, "kind": "Topology", "metadata": {"name": "dc"}, "spec": levels}
    )
    backend.create(flavor("all", topologyName="dc"), cluster_queue("q", "9", cohortName=""), local_queue("q", "q"))
    schedule("--queues", "kueue")
    metadata: Json = {
        "labels": {LOCAL: "q", "kueue.x-k8s.io/pod-group-name": "g"},
        "annotations": {
            "kueue.x-k8s.io/pod-group-total-count": "4",
            "kueue.x-k8s.io/podset-preferred-topology": "rack",
        },
    }
    backend.create(*(pod(f"g-{at}", metadata=metadata, containers=[one_cpu()]) for at in range(4)))
    backend.until_bound(4, "g-")
    assert set(backend.bound("g-").values()) == {"c", "d"}


@pytest.mark.usefixtures("kueue")
def test_pods_are_admitted_only_on_flavors_whose_taints_they_tolerate(backend: Backend, schedule: Schedule) -> None:
    """No node has the taint."""
    taint = {"key": "spot", "value": "true", "effect": "NoSchedule"}
    quotas = [{"name": name, "resources": [{"name": "cpu", "nominalQuota": "1"}]} for name in ("spot", "usual")]
    groups = [{"coveredResources": ["cpu"], "flavors": quotas}]
    for name, spec in (("spot", {"nodeTaints": [taint]}), ("usual", {})):
        backend.create(node(name, labels={"kind": name}), flavor(name, nodeLabels={"kind": name}, **spec))
    backend.create(cluster_queue("team", "0", resourceGroups=groups), local_queue("a", "team"))
    scheduler = schedule("--queues", "kueue")
    backend.create(*queued("a", 2, LOCAL, "a"))
    backend.until_bound(1, "a-")
    assert set(backend.bound("a-").values()) == {"usual"}
    (waiting,) = {"a-0", "a-1"} - set(backend.bound("a-"))
    assert "quota" in ask(scheduler, "explain", f"default/{waiting}")
    tolerating: Json = {"tolerations": [{"key": "spot", "operator": "Exists"}]}
    backend.create(pod("t", metadata={"labels": {LOCAL: "a"}}, containers=[one_cpu()], **tolerating))
    backend.until_bound(1, "t")
    assert backend.bound("t") == {"t": "spot"}


@pytest.mark.usefixtures("kueue")
def test_a_job_preempts_on_its_first_flavor_rather_than_take_the_next(backend: Backend, schedule: Schedule) -> None:
    for name in ("red", "blue"):
        backend.create(node(name, cpu="2", labels={"kind": name}), flavor(name, nodeLabels={"kind": name}))

    def quotas(**cpu: str) -> list[Json]:
        flavors = [
            {"name": name, "resources": [{"name": "cpu", "nominalQuota": amount}]} for name, amount in cpu.items()
        ]
        return [{"coveredResources": ["cpu"], "flavors": flavors}]

    stays = {"whenCanPreempt": "MayStopSearch"}
    backend.create(
        cluster_queue("team-a", "0", resourceGroups=quotas(red="2", blue="2"), flavorFungibility=stays),
        cluster_queue("team-b", "0", resourceGroups=quotas(red="0")),
        local_queue("a", "team-a"),
        local_queue("b", "team-b"),
    )
    schedule("--queues", "kueue")
    backend.create(*queued("b", 2, LOCAL, "b"))
    backend.until_bound(2, "b-")
    backend.create(*queued("a", 1, LOCAL, "a"))
    backend.until_bound(1, "a-")
    assert backend.bound("a-") == {"a-0": "red"}
    assert len(gone(backend, "b-")) == 1


@SYNTHETIC
@pytest.mark.usefixtures("kueue")
def test_jobs_without_a_label_are_workloads_of_the_default_queue(backend: Backend, schedule: Schedule) -> None:
    backend.create(node("n", cpu="9"), flavor("all"), cluster_queue("team", "2"), local_queue("default", "team"))
    schedule("--queues", "kueue")
    backend.create(job("one", 1))
    backend.until_bound(1, "one-")
    backend.create(job("pair", 2, suspend=True))
    backend.until_event("Resumed", "pair", "its pods wait in queue team")
    backend.create(job("high", 1, metadata={"labels": {"kueue.x-k8s.io/priority-class": "high"}}))
    missing = "WorkloadPriorityClass high does not exist"
    eventually(lambda: any(missing in why for why in reasons(backend, "high-")), "the pod says what is missing")
    eventually(lambda: sum(map(bool, reasons(backend, "pair-"))) == 2, "both wait for quota")
    assert not backend.bound("pair-")  # there is quota for one of two
    backend.api("POST", _PRIORITIES, priority_class("high", 9))
    backend.until_bound(1, "high-")
    backend.patch(f"{_CLUSTER_QUEUES}/team", {"spec": cluster_queue("team", "4")["spec"]})
    backend.until_bound(2, "pair-")


def priority_class(name: str, value: int) -> Json:
    return {"apiVersion": KUEUE, "kind": "WorkloadPriorityClass", "metadata": {"name": name}, "value": value}


def job(name: str, size: int, *, suspend: bool = False, metadata: Json | None = None) -> Json:
    spec = {"schedulerName": "poseidon", "restartPolicy": "Never", "containers": [one_cpu()]}
    counts = {"parallelism": size, "completions": size, "backoffLimit": 9, "suspend": suspend}
    about = {"name": name, **(metadata or {})}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": about,
        "spec": counts | {"template": {"spec": spec | {"terminationGracePeriodSeconds": 0}}},
    }


def reasons(backend: Backend, prefix: str) -> list[str]:
    """Why these pods wait; empty texts for those of which nothing is said yet."""
    pods = [item for item in backend.api("GET", PODS)["items"] if item["metadata"]["name"].startswith(prefix)]
    return [condition(item).get("message", "") for item in pods]
