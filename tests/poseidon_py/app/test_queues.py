"""Queues through the whole bridge with a real flow service, against the synthetic cluster."""

import pytest

from benchmarks.cluster.api.deletion import delete
from benchmarks.cluster.store.kinds import LEASES
from poseidon_py.describe.queues.model import id_of
from poseidon_py.kube.informers import informers
from poseidon_py.state.queues import watches
from tests.poseidon_py.app.queue_kinds import (
    declare,
    install,
    install_kai,
    install_koordinator,
    install_own,
    install_volcano,
)
from tests.poseidon_py.gang_world import World, job, template
from tests.poseidon_py.world import world_of

KUEUE = "kueue.x-k8s.io/v1beta2"
LABEL = "kueue.x-k8s.io/queue-name"
ANY = {"quota": 0, "limit": -1}

pytestmark = [pytest.mark.e2e, pytest.mark.slow]


@pytest.fixture
async def world(tmp_path, monkeypatch):
    monkeypatch.setattr(watches, "RECHECK", 0.1)
    monkeypatch.setattr(informers, "RECHECK", 0.1)
    async with world_of(World, tmp_path) as world:
        yield world


def queue_of(bridge, prefix):
    """The ids of the queues of the pods with a prefix, as they were sent to the flow service."""
    pods = [known for known in bridge.store.pods.values() if known.name.startswith(prefix)]
    return {known.sent.queue for known in pods if known.sent is not None}


def find(world, group, version, plural, name, namespace="default"):
    return world.cluster.get(world.cluster.kinds.find(group, version, plural), name, namespace)


def active(world, *where):
    conditions = find(world, *where).get("status", {}).get("conditions", [])
    return next(((each["status"], each["reason"], each["message"]) for each in conditions), None)


def declare_team(world, name="team-a"):
    groups = [
        {
            "coveredResources": ["cpu", "memory"],
            "flavors": [
                {
                    "name": "all",
                    "resources": [{"name": "cpu", "nominalQuota": 8}, {"name": "memory", "nominalQuota": "4Gi"}],
                }
            ],
        }
    ]
    declare(world.cluster, KUEUE, "ResourceFlavor", "all", {})
    declare(world.cluster, KUEUE, "ClusterQueue", name, {"resourceGroups": groups, "namespaceSelector": {}})
    declare(world.cluster, KUEUE, "LocalQueue", "lq", {"clusterQueue": name}, "default")


async def test_the_queues_of_kueue_are_read_without_its_controller(world):
    install(world.cluster, "ClusterQueue", "Cohort", "LocalQueue", "ResourceFlavor", "WorkloadPriorityClass")
    declare_team(world)
    declare(world.cluster, KUEUE, "WorkloadPriorityClass", "high", {}, value=500)
    labelled = job("labelled", 3, gang="3")
    labelled["metadata"]["labels"] = {LABEL: "lq", "kueue.x-k8s.io/priority-class": "high"}
    bridge = await world.bridge()
    await world.until(lambda: bridge.store.queues.active.kind == "kueue")
    world.create(labelled)
    world.cluster.add_pods(2, template(labels={LABEL: "lq"}), prefix="pod-")
    world.cluster.add_pods(2, template(), prefix="free-")
    await world.until(lambda: len(world.bound()) == 7)
    await world.until(
        lambda: queue_of(bridge, "labelled") == queue_of(bridge, "pod-") == {id_of("clusterqueue/team-a")}
    )
    assert queue_of(bridge, "free-") == {0}
    priorities = {each.described.priority for each in bridge.store.pods.values() if each.name.startswith("labelled")}
    assert priorities == {500}
    where = ("kueue.x-k8s.io", "v1beta2", "clusterqueues", "team-a")
    await world.until(lambda: active(world, *where) == ("True", "Ready", "takes pods"))
    await world.until(lambda: find(world, *where)["status"].get("admittedWorkloads") == 5)
    (usage,) = find(world, *where)["status"]["flavorsUsage"]
    amounts = [{"name": "cpu", "total": "5", "borrowed": "0"}, {"name": "memory", "total": "80Mi", "borrowed": "0"}]
    assert usage == {"name": "all", "resources": amounts}
    body = await bridge.status()
    assert (body["queues"]["kind"], body["queues"]["queues"]) == ("kueue", 1)
    assert [gang["queue"] for gang in (await bridge.gangs("", ""))["gangs"]] == ["team-a"]
    world.check()


async def test_a_pod_that_kueue_gates_is_left_alone_and_quota_is_left_to_its_controller(world):
    install(world.cluster, "ClusterQueue", "LocalQueue", "ResourceFlavor")
    declare_team(world)
    gated = template(labels={LABEL: "lq"}, schedulingGates=[{"name": "kueue.x-k8s.io/admission"}])
    bridge = await world.bridge()
    world.cluster.add_pods(1, gated, prefix="gated-")
    world.cluster.add_pods(1, template(labels={LABEL: "lq"}), prefix="open-")
    await world.until(lambda: len(world.bound("open-")) == 1)
    assert world.bound("gated-") == set()
    labels = {"app": "kueue"}
    pod = {"metadata": {"labels": labels}, "spec": {**template()["spec"], "restartPolicy": "Always"}}
    manager = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "kueue-controller-manager"},
        "spec": {"replicas": 1, "selector": {"matchLabels": labels}, "template": pod},
    }
    world.cluster.create(manager)
    await world.until(lambda: bridge.store.queues.active.kind == "poseidon")
    await world.until(lambda: queue_of(bridge, "open-") == {0})
    assert "kueue-controller-manager runs" in (await bridge.status())["queues"]["why"]


async def test_our_own_queues_may_be_installed_while_the_scheduler_runs(world):
    bridge = await world.bridge()
    world.cluster.add_pods(1, template(labels={"poseidon.io/queue": "team"}), prefix="pod-")
    await world.until(lambda: len(bridge.store.pods) == 1)
    install_own(world.cluster)
    declare(world.cluster, "poseidon.io/v1", "Queue", "team", {"guarantee": {"cpu": "2"}, "parent": "org"})
    where = ("poseidon.io", "v1", "queues", "team")
    missing = "spec.parent: queue org does not exist; create it or name another"
    await world.until(lambda: active(world, *where) == ("False", "Misconfigured", missing))
    assert {event["message"] for event in world.events("InvalidQueue")} == {missing}
    declare(world.cluster, "poseidon.io/v1", "Queue", "org", {})
    await world.until(lambda: active(world, *where) == ("True", "Ready", "takes pods"))
    await world.until(lambda: queue_of(bridge, "pod-") == {id_of("queue/team")})
    body = await bridge.explain("default", next(iter(world.pods)))
    assert body is not None
    assert (body["queue"], body["problem"]) == ("team", "")


def waits_for_quota(world, prefix):
    return {
        name
        for name, pod in world.pods.items()
        if name.startswith(prefix)
        and any(each.get("reason") == "WaitingForQuota" for each in pod["status"].get("conditions", []))
    }


async def test_pods_that_are_created_right_after_a_queue_is_closed_wait(world):
    """After `stopPolicy: Hold`, a lowered quota or a deletion eight of eight such pods were bound."""
    install_own(world.cluster)
    kind = world.cluster.kinds.find("poseidon.io", "v1", "queues")
    for name in ("held", "deleted"):
        declare(world.cluster, "poseidon.io/v1", "Queue", name, {})
    bridge = await world.bridge()
    await world.until(lambda: bridge.runtime.session.ready and len(bridge.store.queues.tree.queues) == 2)
    queue = world.cluster.get(kind, "held", "")
    world.cluster.api.update(kind, "", "held", {**queue, "spec": {"stop": "hold"}})
    delete(world.cluster.api, kind, "", "deleted", {})
    for name in ("held", "deleted"):
        world.cluster.add_pods(2, template(labels={"poseidon.io/queue": name}), prefix=f"{name}-")
    world.cluster.add_pods(2, template(), prefix="free-")
    await world.until(lambda: len(world.bound("free-")) == 2)
    await world.until(lambda: len(waits_for_quota(world, "held-") | waits_for_quota(world, "deleted-")) == 4)
    assert world.bound() == world.bound("free-")


async def test_two_schedulers_with_a_queue_in_common_count_all_pods_in_it_and_one_writes_its_status(world):
    """The second one, which has no pods in the queue, overwrote the status with zeros, and gave out the limit again."""
    install_own(world.cluster)
    declare(world.cluster, "poseidon.io/v1", "Queue", "team", {"limit": {"cpu": "4"}})
    label = {"poseidon.io/queue": "team"}
    where = ("poseidon.io", "v1", "queues", "team")
    first = await world.bridge(leader_elect=True)
    world.cluster.add_pods(3, template("1", labels=label), prefix="a-")
    await world.until(lambda: len(world.bound("a-")) == 3)
    await world.until(lambda: find(world, *where).get("status", {}).get("used") == {"cpu": "3"})
    written = find(world, *where)["status"]
    second = await world.bridge(leader_elect=True, scheduler_name=("batch",), lease_name="batch")
    world.cluster.add_pods(2, template("1", scheduler="batch", labels=label), prefix="b-")
    await world.until(lambda: len(world.bound("b-")) == 1)  # the limit is 4
    await world.until(lambda: find(world, *where)["status"]["used"] == {"cpu": "4"})
    assert written["pending"] == find(world, *where)["status"]["pending"] == 0  # of the pods of the first
    await world.until(lambda: second.runtime.queues.summary()["written_by"] == "poseidon")
    assert first.runtime.queues.summary()["written_by"] == ""
    lease = world.cluster.get(LEASES, "poseidon-queues-poseidon", "kube-system")
    assert lease["spec"]["holderIdentity"] == "poseidon"
    world.check()


@pytest.mark.parametrize(
    ("kind", "api_version", "label", "spec"),
    [
        ("volcano", "scheduling.volcano.sh/v1beta1", "", {"capability": {"cpu": 8, "memory": "8Gi"}}),
        ("kai", "scheduling.run.ai/v2", "kai.scheduler/queue", {"resources": {"cpu": ANY, "memory": ANY, "gpu": ANY}}),
    ],
)
async def test_other_kinds_of_queues(world, kind, api_version, label, spec):
    {"volcano": install_volcano, "kai": install_kai}[kind](world.cluster)
    declare(world.cluster, api_version, "Queue", "team", spec)
    bridge = await world.bridge(queues=kind)
    annotations = {} if label else {"scheduling.volcano.sh/queue-name": "team"}
    labels = {label: "team"} if label else {}
    world.cluster.add_pods(2, template(labels=labels, annotations=annotations), prefix="pod-")
    await world.until(lambda: queue_of(bridge, "pod-") == {id_of(f"{kind}/team")})
    await world.until(lambda: len(world.bound()) == 2)
    where = (*api_version.split("/"), "queues", "team")
    amounts = {"cpu": "2", "memory": "32Mi"} | ({"nvidia.com/gpu": "0"} if kind == "kai" else {})
    await world.until(lambda: find(world, *where).get("status", {}).get("allocated") == amounts)


async def test_pods_stay_in_their_node_pool_of_kai(world):
    pool, free = "kai.scheduler/node-pool", {"resources": dict.fromkeys(("cpu", "memory", "gpu"), ANY)}
    install_kai(world.cluster)
    world.cluster.add_nodes(1, prefix="pooled-", labels={pool: "x"})
    declare(world.cluster, "scheduling.run.ai/v2", "Queue", "team", free)
    await world.bridge(queues="kai")
    labels = {"kai.scheduler/queue": "team"}
    world.cluster.add_pods(2, template(labels=labels), prefix="free-")
    world.cluster.add_pods(2, template(labels={pool: "x"}), prefix="in-x-")
    world.cluster.add_pods(1, template(labels={pool: "y"}), prefix="in-y-")
    await world.until(lambda: len(world.bound()) == 4)
    nodes = {name: pod["spec"].get("nodeName", "") for name, pod in world.pods.items()}
    assert {name for name, node in nodes.items() if node.startswith("pooled-")} == {"in-x-0000", "in-x-0001"}


async def test_pods_stay_within_max_of_a_quota_of_koordinator(world):
    install_koordinator(world.cluster)
    spec = {"min": {"cpu": 1}, "max": {"cpu": 2}}
    declare(world.cluster, "scheduling.sigs.k8s.io/v1alpha1", "ElasticQuota", "team", spec, "default")
    bridge = await world.bridge()
    world.cluster.add_pods(3, template(labels={"quota.scheduling.koordinator.sh/name": "team"}), prefix="pod-")
    await world.until(lambda: queue_of(bridge, "pod-") == {id_of("koordinator/team")})
    await world.until(lambda: len(world.bound()) == 2)


async def test_yunikorn_and_elastic_quotas(world):
    install(world.cluster, "ElasticQuota")
    declare(world.cluster, "scheduling.x-k8s.io/v1alpha1", "ElasticQuota", "q", {"max": {"cpu": 2}}, "default")
    bridge = await world.bridge()
    world.cluster.add_pods(1, template(), prefix="pod-")
    await world.until(lambda: queue_of(bridge, "pod-") == {id_of("elasticquota/default/q")})
    file = "partitions: [{queues: [{name: root, queues: [{name: default}]}]}]"
    config = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "yunikorn-configs"},
        "data": {"queues.yaml": file},
    }
    world.cluster.create(config)
    await world.until(lambda: queue_of(bridge, "pod-") == {id_of("yunikorn/root.default")})
