"""Constraints from a pod's manifest to its node: the bridge with a real flow service, on the synthetic cluster.

Six nodes in three zones. The expected placements are derived by hand from the manifests.
"""

from collections import Counter

import pytest

from benchmarks.cluster.api.deletion import delete
from benchmarks.cluster.store.kinds import ATTACHMENTS, CLAIMS, NAMESPACES, NODES, PODS, VOLUMES
from tests.poseidon_py.world import World, template, world_of

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

ZONE, HOST = "topology.kubernetes.io/zone", "kubernetes.io/hostname"


class Constrained(World):
    def run(self, count, prefix, *, labels=None, cpu="100m", namespace="default", **spec):
        body = template(cpu=cpu, **spec)
        body["metadata"] = {"labels": labels or {"app": prefix}}
        self.cluster.add_pods(count, body, prefix=f"{prefix}-", namespace=namespace)

    def nodes_of(self, prefix):
        return {
            name: pod["spec"].get("nodeName", "") for name, pod in self.pods.items() if name.startswith(f"{prefix}-")
        }

    def placed(self, prefix, count):
        return sum(map(bool, self.nodes_of(prefix).values())) == count

    def zone_of(self, node):
        return self.cluster.get(NODES, node)["metadata"]["labels"][ZONE]

    def domains(self, prefix, key=ZONE):
        nodes = [node for node in self.nodes_of(prefix).values() if node]
        return Counter(self.zone_of(node) if key == ZONE else node for node in nodes)

    def condition(self, name):
        found = self.pods[name]["status"].get("conditions") or []
        return next((c for c in found if c["type"] == "PodScheduled"), {})

    def says(self, name):
        """The message on a pending pod, as condition and as event."""
        condition = self.condition(name)
        if condition.get("reason") != "Unschedulable":
            return ""
        events = {e["message"] for e in self.events("FailedScheduling") if e["involvedObject"]["name"] == name}
        return condition["message"] if condition["message"] in events else ""

    async def hears(self, name, text):
        try:
            await self.until(lambda: self.says(name) == text, 15)
        except TimeoutError:
            raise AssertionError(f"{self.says(name)!r} is not {text!r}; {self.condition(name)}") from None

    def change(self, kind, name, patch, namespace="default"):
        home = namespace if kind.namespaced else ""
        self.cluster.api.patch(kind, home, name, patch, "application/merge-patch+json")

    def remove(self, name, kind=PODS):
        delete(self.cluster.api, kind, "default" if kind.namespaced else "", name, {"gracePeriodSeconds": 0})

    def claim(self, name, storage_class=None, modes=("ReadWriteOnce",), size="1Gi", **spec):
        body = {"accessModes": list(modes), "resources": {"requests": {"storage": size}}, **spec}
        if storage_class is not None:
            body["storageClassName"] = storage_class
        return self.make("v1", "PersistentVolumeClaim", name, spec=body)

    def volume(self, name, storage_class="", size="1Gi", on=None, labels=None, **spec):
        body = {
            "capacity": {"storage": size},
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": storage_class,
            **spec,
        }
        if on is not None:
            demand = {"key": HOST, "operator": "In", "values": [on]}
            body["nodeAffinity"] = {"required": {"nodeSelectorTerms": [{"matchExpressions": [demand]}]}}
        return self.make("v1", "PersistentVolume", name, labels=labels, spec=body)

    def storage_class(self, name, provisioner="sim.csi", mode="WaitForFirstConsumer", **fields):
        return self.make(
            "storage.k8s.io/v1", "StorageClass", name, provisioner=provisioner, volumeBindingMode=mode, **fields
        )

    def make(self, version, kind, name, *, labels=None, annotations=None, **body):
        metadata = {"name": name, "labels": labels or {}, "annotations": annotations or {}}
        return self.cluster.create({"apiVersion": version, "kind": kind, "metadata": metadata, **body})


def with_claim(*claims):
    return {"volumes": [{"name": f"v{i}", "persistentVolumeClaim": {"claimName": c}} for i, c in enumerate(claims)]}


def near(app, key=ZONE, kind="podAffinity", **fields):
    term = {"topologyKey": key, "labelSelector": {"matchLabels": {"app": app}}, **fields}
    return {"affinity": {kind: {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}}


def far(app, key=HOST, **fields):
    return near(app, key, "podAntiAffinity", **fields)


@pytest.fixture
async def world(tmp_path):
    async with world_of(Constrained, tmp_path, nodes=6, zones=3) as world:
        yield world
    world.check()


@pytest.fixture
async def running(world):
    await world.bridge()
    return world


async def test_affinity_follows_the_first_pod_into_its_zone(running):
    running.run(10, "a", **near("a"))
    await running.until(lambda: running.placed("a", 10))
    assert len(running.domains("a")) == 1
    running.run(5, "b", **near("a", HOST))
    await running.until(lambda: running.placed("b", 5))
    assert set(running.domains("b", HOST)) <= set(running.domains("a", HOST))


async def test_anti_affinity_one_a_node_and_symmetric(running):
    running.run(8, "a", **far("a"))
    await running.until(lambda: running.placed("a", 6))
    assert set(running.domains("a", HOST).values()) == {1}
    left = next(name for name, node in running.nodes_of("a").items() if not node)
    await running.hears(left, "0/6 nodes are available: 6 node(s) didn't match pod anti-affinity rules.")
    running.run(1, "b", **far("a", ZONE))
    await running.hears("b-0000", "0/6 nodes are available: 6 node(s) didn't match pod anti-affinity rules.")
    running.run(1, "c", labels={"app": "a"})  # it repels no pod, but running ones repel it
    await running.hears(
        "c-0000", "0/6 nodes are available: 6 node(s) didn't satisfy existing pods anti-affinity rules."
    )
    # a blocking pod goes: one of those that wait is back at once
    gone = next(name for name, node in running.nodes_of("a").items() if node)
    running.remove(gone)
    await running.until(lambda: running.placed("a", 6) or running.placed("c", 1))


async def test_affinity_to_pods_that_do_not_exist(running):
    running.run(1, "a", **near("none"))
    await running.hears("a-0000", "0/6 nodes are available: 6 node(s) didn't match pod affinity rules.")
    running.run(1, "none")
    await running.until(lambda: running.placed("a", 1))


async def test_spread_over_zones_in_one_round(running):
    spread = {
        "maxSkew": 1,
        "topologyKey": ZONE,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "a"}},
    }
    running.run(20, "a", topologySpreadConstraints=[spread])
    await running.until(lambda: running.placed("a", 20))
    assert sorted(running.domains("a").values()) == [6, 7, 7]
    lacking = dict(spread, topologyKey="rack-of-nobody", labelSelector={"matchLabels": {"app": "b"}})
    running.run(1, "b", topologySpreadConstraints=[lacking])
    text = "node(s) didn't match pod topology spread constraints (missing required label)"
    await running.hears("b-0000", f"0/6 nodes are available: 6 {text}.")
    # a label of a node appears: back at once
    node = running.cluster.objects(NODES)[0]["metadata"]["name"]
    running.change(NODES, node, {"metadata": {"labels": {"rack-of-nobody": "r"}}})
    await running.until(lambda: running.placed("b", 1))


async def test_host_ports(running):
    def port(**fields):
        return [{"name": "c", "image": "x", "ports": [{"containerPort": 80, **fields}]}]

    running.run(7, "a", containers=port(hostPort=8080))
    await running.until(lambda: running.placed("a", 6))
    left = next(name for name, node in running.nodes_of("a").items() if not node)
    text = "0/6 nodes are available: 6 node(s) didn't have free ports for the requested pod ports."
    await running.hears(left, text)
    running.run(1, "ip", containers=port(hostPort=8080, hostIP="10.1.1.1"))
    await running.hears("ip-0000", text)
    running.run(6, "udp", containers=port(hostPort=8080, protocol="UDP"))
    await running.until(lambda: running.placed("udp", 6))


async def test_namespaces_by_label(running):
    running.make("v1", "Namespace", "other", labels={"team": "x"})
    running.run(6, "db", namespace="other", **far("db"))
    await running.until(lambda: running.placed("db", 6))
    # not of our namespace: no reason to keep away
    running.run(1, "own", **far("db"))
    await running.until(lambda: running.placed("own", 1))
    running.run(1, "y", **far("db", namespaceSelector={"matchLabels": {"team": "y"}}))
    await running.until(lambda: running.placed("y", 1))
    running.run(1, "x", **far("db", namespaceSelector={"matchLabels": {"team": "x"}}))
    await running.hears("x-0000", "0/6 nodes are available: 6 node(s) didn't match pod anti-affinity rules.")
    running.run(1, "all", **far("db", namespaceSelector={}))
    await running.hears("all-0000", "0/6 nodes are available: 6 node(s) didn't match pod anti-affinity rules.")
    running.change(NAMESPACES, "other", {"metadata": {"labels": {"team": "z"}}})
    await running.until(lambda: running.placed("x", 1))
    assert running.placed("all", 0)


async def test_preferences(running):
    nodes = [node["metadata"]["name"] for node in running.cluster.objects(NODES)]
    demand = {"key": HOST, "operator": "In", "values": [nodes[4]]}
    wish = [{"weight": 100, "preference": {"matchExpressions": [demand]}}]
    affinity = {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": wish}}
    running.run(3, "a", affinity=affinity)
    await running.until(lambda: running.placed("a", 3))
    assert set(running.nodes_of("a").values()) == {nodes[4]}


async def test_added_affinity(world):
    term = {"matchExpressions": [{"key": "pool", "operator": "In", "values": ["batch"]}]}
    await world.bridge(added_node_affinity={"nodeSelectorTerms": [term]})
    world.run(1, "a")
    await world.hears("a-0000", "0/6 nodes are available: 6 node(s) didn't match scheduler-enforced node affinity.")
    node = world.cluster.objects(NODES)[2]["metadata"]["name"]
    world.change(NODES, node, {"metadata": {"labels": {"pool": "batch"}}})
    await world.until(lambda: world.nodes_of("a")["a-0000"] == node)


# -- volumes --------------------------------------------------------------------------------------------------


async def test_a_claim_that_is_missing_then_unbound_then_bound(running):
    running.run(1, "a", **with_claim("data"))
    await running.hears("a-0000", '0/6 nodes are available: persistentvolumeclaim "data" not found.')
    running.storage_class("none", provisioner="kubernetes.io/no-provisioner", mode="Immediate")
    running.claim("data", "none")
    await running.hears("a-0000", "0/6 nodes are available: pod has unbound immediate PersistentVolumeClaims.")
    node = running.cluster.objects(NODES)[3]["metadata"]["name"]
    running.volume("pv", "none", on=node)
    await running.until(lambda: running.nodes_of("a")["a-0000"] == node)


async def test_a_bound_volume_ties_to_its_node_and_its_zone(running):
    nodes = {n["metadata"]["name"]: n["metadata"]["labels"] for n in running.cluster.objects(NODES)}
    zone = sorted({labels[ZONE] for labels in nodes.values()})[1]
    running.storage_class("now", mode="Immediate", provisioner="kubernetes.io/no-provisioner")
    running.volume("zonal", "now", labels={ZONE: f"{zone}__elsewhere"})
    running.claim("zonal", "now")
    running.run(2, "z", **with_claim("zonal"))
    await running.until(lambda: running.placed("z", 2))
    assert set(running.domains("z")) == {zone}
    running.volume("lost", "now", on="no-such-node", size="5Gi")
    running.claim("lost", "now", size="5Gi")
    running.run(1, "l", **with_claim("lost"))
    await running.hears("l-0000", "0/6 nodes are available: 6 node(s) didn't match PersistentVolume's node affinity.")
    running.volume("nowhere", "now", labels={ZONE: "elsewhere"}, size="9Gi")
    running.claim("nowhere", "now", size="9Gi")
    running.run(1, "n", **with_claim("nowhere"))
    await running.hears("n-0000", "0/6 nodes are available: 6 node(s) had no available volume zone.")


async def test_a_volume_is_provisioned_on_the_node_of_the_pod(running):
    zones = sorted({n["metadata"]["labels"][ZONE] for n in running.cluster.objects(NODES)})
    allowed = [{"matchLabelExpressions": [{"key": ZONE, "values": [zones[2]]}]}]
    running.storage_class("wait", allowedTopologies=allowed)
    for i in range(4):
        running.claim(f"data-{i}", "wait")
        running.run(1, f"a{i}", **with_claim(f"data-{i}"))
    await running.until(lambda: all(running.placed(f"a{i}", 1) for i in range(4)))
    for i in range(4):
        node = running.nodes_of(f"a{i}")[f"a{i}-0000"]
        claim = running.cluster.get(CLAIMS, f"data-{i}")
        assert running.zone_of(node) == zones[2]
        assert claim["metadata"]["annotations"]["volume.kubernetes.io/selected-node"] == node
        assert claim["status"]["phase"] == "Bound"


async def test_each_local_volume_is_used_by_one_pod(running):
    running.storage_class("local", provisioner="kubernetes.io/no-provisioner")
    nodes = [node["metadata"]["name"] for node in running.cluster.objects(NODES)]
    for i, node in enumerate(nodes[:4]):
        running.volume(f"pv-{i}", "local", on=node)
    for i in range(5):
        running.claim(f"data-{i}", "local")
        running.run(1, f"a{i}", **with_claim(f"data-{i}"))
    await running.until(lambda: sum(running.placed(f"a{i}", 1) for i in range(5)) == 4, 40)
    placed = {i: running.nodes_of(f"a{i}")[f"a{i}-0000"] for i in range(5)}
    assert sorted(node for node in placed.values() if node) == sorted(nodes[:4])
    for i, node in placed.items():
        if node:
            name = running.cluster.get(CLAIMS, f"data-{i}")["spec"]["volumeName"]
            volume = running.cluster.get(VOLUMES, name)
            assert volume["spec"]["nodeAffinity"]["required"]["nodeSelectorTerms"][0]["matchExpressions"][0][
                "values"
            ] == [node]
    left = next(i for i, node in placed.items() if not node)
    text = "0/6 nodes are available: 6 node(s) didn't find available persistent volumes to bind."
    await running.hears(f"a{left}-0000", text)
    running.volume("late", "local", on=nodes[5])
    await running.until(lambda: running.placed(f"a{left}", 1))


@pytest.mark.slow
async def test_gang_members_that_are_placed_with_the_same_local_volume(world):
    """bin-packing places all on one node, which has only one volume."""
    world.storage_class("local", provisioner="kubernetes.io/no-provisioner")
    nodes = [node["metadata"]["name"] for node in world.cluster.objects(NODES)]
    for i in range(4):
        world.volume(f"pv-{i}", "local", on=nodes[i])
        world.claim(f"data-{i}", "local")
    bridge = await world.bridge(policy="bin-packing")
    name = "pod-group.scheduling.x-k8s.io"
    gang = {f"{name}/name": "g", f"{name}/min-available": "6"}
    for i in range(4):
        world.run(1, f"a{i}", labels=gang, **with_claim(f"data-{i}"))
    world.run(2, "z", labels=gang)
    await world.until(lambda: len(world.bound()) == 6, 40)
    assert sorted(world.nodes_of(f"a{i}")[f"a{i}-0000"] for i in range(4)) == sorted(nodes[:4])
    assert not bridge.store.storage.reserved


async def test_read_write_once_pod_waits_for_the_other_pod(running):
    running.storage_class("now", mode="Immediate")
    running.claim("one", "now", modes=("ReadWriteOncePod",))
    running.run(3, "a", **with_claim("one"))
    await running.until(lambda: running.placed("a", 1))
    left = next(name for name, node in running.nodes_of("a").items() if not node)
    conflict = "PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by another pod"
    text = f"node(s) unavailable due to {conflict}"
    await running.hears(left, f"0/6 nodes are available: 6 {text}.")
    running.remove(next(name for name, node in running.nodes_of("a").items() if node))
    await running.until(lambda: running.placed("a", 1))


async def test_attach_limits(running):
    running.storage_class("now", mode="Immediate", provisioner="sim.csi")
    for node in running.cluster.objects(NODES):
        driver = {"name": "sim.csi", "nodeID": "x", "allocatable": {"count": 1}}
        running.make("storage.k8s.io/v1", "CSINode", node["metadata"]["name"], spec={"drivers": [driver]})
    for i in range(7):
        running.claim(f"c{i}", "now")
        running.run(1, f"a{i}", **with_claim(f"c{i}"))
    await running.until(lambda: sum(running.placed(f"a{i}", 1) for i in range(7)) == 6)
    left = next(i for i in range(7) if not running.placed(f"a{i}", 1))
    await running.hears(f"a{left}-0000", "0/6 nodes are available: 6 node(s) exceed max volume count.")


async def test_a_volume_takes_one_slot_of_a_node_and_is_counted_until_it_is_detached(running):
    """Three pods on one node with one slot share a volume; a fourth one waits until it is detached from the node."""
    running.storage_class("now", mode="Immediate", provisioner="sim.csi")
    node, *_ = sorted(each["metadata"]["name"] for each in running.cluster.objects(NODES))
    driver = {"name": "sim.csi", "nodeID": "x", "allocatable": {"count": 1}}
    running.make("storage.k8s.io/v1", "CSINode", node, spec={"drivers": [driver]})
    for name in ("shared", "other"):
        running.claim(name, "now")
    here = {"nodeSelector": {HOST: node}}
    running.run(3, "a", **with_claim("shared"), **here)
    await running.until(lambda: running.placed("a", 3))
    source = {"persistentVolumeName": running.cluster.get(CLAIMS, "shared")["spec"]["volumeName"]}
    spec = {"attacher": "sim.csi", "nodeName": node, "source": source}
    running.make("storage.k8s.io/v1", "VolumeAttachment", "va", spec=spec)
    running.run(1, "b", **with_claim("other"), **here)
    selector = "5 node(s) didn't match Pod's node affinity/selector"
    await running.hears("b-0000", f"0/6 nodes are available: 1 node(s) exceed max volume count, {selector}.")
    for name in running.nodes_of("a"):
        running.remove(name)
    await running.until(lambda: not running.nodes_of("a"))
    assert running.placed("b", 0)
    running.remove("va", ATTACHMENTS)
    await running.until(lambda: running.placed("b", 1))


async def test_an_ephemeral_claim(running):
    running.storage_class("wait")
    volumes = [{"name": "scratch", "ephemeral": {"volumeClaimTemplate": {"spec": {}}}}]
    running.run(1, "a", volumes=volumes)
    text = 'waiting for ephemeral volume controller to create the persistentvolumeclaim "a-0000-scratch"'
    await running.hears("a-0000", f"0/6 nodes are available: {text}.")
    uid = running.pods["a-0000"]["metadata"]["uid"]
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "a-0000", "uid": uid, "controller": True}
    body = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}, "storageClassName": "wait"}
    running.cluster.create(
        {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {"name": "a-0000-scratch", "ownerReferences": [owner]},
            "spec": body,
        }
    )
    await running.until(lambda: running.placed("a", 1))
