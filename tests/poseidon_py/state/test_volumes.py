"""Requirements of claims on nodes: tables with expected values by hand, and properties of the choice of volumes."""

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from firmament_py.model.constraints import NAME_FIELD
from firmament_py.service.messages import term
from poseidon_py.describe.reason_keys import VOLUME_NODE, VOLUME_NONE, VOLUME_SPACE, VOLUME_ZONE
from poseidon_py.kube.storage_objects import Capacity, Claim, CsiDriver, CsiNode, StorageClass, Volume
from poseidon_py.state.claim_use import ClaimUse
from poseidon_py.state.volumes.cache import Storage, StorageListener
from poseidon_py.state.volumes.claims import PodIdentity, claims_of, volume_demands
from poseidon_py.state.volumes.matching import candidates, choose, usable_on
from protos.gen import firmament_pb2
from tests.poseidon_py.builders import pod

GI = 2**30
POD = PodIdentity("default", "p", "uid-p")
ZONE = "topology.kubernetes.io/zone"
BETA = "failure-domain.beta.kubernetes.io/zone"


def made(kind, name, namespace="default", metadata=None, **body):
    head = {"name": name, "namespace": namespace, "uid": f"uid-{name}", "resourceVersion": "1", **(metadata or {})}
    return msgspec.json.decode(json.dumps({"metadata": head, **body}), type=kind)


def claim(name="c", *, bound_to="", size="1Gi", storage_class="s", selected="", phase="Pending", metadata=None, **spec):
    annotations = {}
    if bound_to:
        annotations["pv.kubernetes.io/bind-completed"] = "yes"
        spec["volumeName"] = bound_to
    if selected:
        annotations["volume.kubernetes.io/selected-node"] = selected
    body = {"storageClassName": storage_class, "resources": {"requests": {"storage": size}}, **spec}
    head = {"annotations": annotations, **(metadata or {})}
    return made(Claim, name, metadata=head, spec=body, status={"phase": phase})


def volume(name="v", *, size="1Gi", storage_class="s", on=(), labels=None, phase="Available", driver="", **spec):
    body = {"storageClassName": storage_class, "capacity": {"storage": size}, "accessModes": ["ReadWriteOnce"], **spec}
    if on:
        demand = {"key": "host", "operator": "In", "values": list(on)}
        body["nodeAffinity"] = {"required": {"nodeSelectorTerms": [{"matchExpressions": [demand]}]}}
    if driver:
        body["csi"] = {"driver": driver, "volumeHandle": name}
    return made(Volume, name, "", metadata={"labels": labels or {}}, spec=body, status={"phase": phase})


def waiting_class(name="s", provisioner="kubernetes.io/no-provisioner", **fields):
    return made(StorageClass, name, "", provisioner=provisioner, volumeBindingMode="WaitForFirstConsumer", **fields)


def storage(*items):
    put: dict[type, Any] = {
        Claim: Storage.put_claim,
        Volume: Storage.put_volume,
        StorageClass: Storage.put_class,
        CsiDriver: Storage.put_driver,
        Capacity: Storage.put_capacity,
        CsiNode: Storage.put_csi_node,
    }
    found = Storage(ready=True)
    for item in items:
        put[type(item)](found, item)
    return found


ONE = (ClaimUse("c"),)


def demands(*items, uses=ONE, taken=False):
    return volume_demands(storage(*items), POD, uses, lambda key: taken)


def matches(terms, labels, name):
    """Whether a node matches one of `terms`, implemented again from the documentation of node selectors."""

    def meets(demand, values):
        value = values.get(demand.key)
        return {
            "In": value in demand.values,
            "NotIn": value not in demand.values,
            "Exists": value is not None,
            "DoesNotExist": value is None,
        }[demand.operator]

    return any(
        (term.matchExpressions or term.matchFields)
        and all(meets(d, labels) for d in term.matchExpressions)
        and all(meets(d, {"metadata.name": name}) for d in term.matchFields)
        for term in terms
    )


def admits(found, labels, name="n"):
    """The names of the requirements that a node does not meet."""
    terms = [(what, firmament_pb2.NodeSelector.FromString(raw)) for what, raw in found.further]
    return [what for what, selector in terms if not matches(selector.nodeSelectorTerms, labels, name)]


def test_claims_of_a_pod_in_the_order_of_its_volumes():
    volumes = [
        {"name": "a", "persistentVolumeClaim": {"claimName": "x"}},
        {"name": "kube-api-access-zz", "projected": {"sources": []}},
        {"name": "b", "ephemeral": {"volumeClaimTemplate": {}}},
        {"name": "c", "emptyDir": {}},
    ]
    assert claims_of(pod("p", spec={"volumes": volumes})) == (ClaimUse("x"), ClaimUse("p-b", own=True))
    assert claims_of(pod("p")) == ()


@pytest.mark.parametrize(
    ("items", "uses", "text"),
    [
        ([], [ClaimUse("c")], 'persistentvolumeclaim "c" not found'),
        (
            [],
            [ClaimUse("c", own=True)],
            'waiting for ephemeral volume controller to create the persistentvolumeclaim "c"',
        ),
        (
            [claim(bound_to="gone", phase="Lost")],
            [ClaimUse("c")],
            'persistentvolumeclaim "c" bound to non-existent persistentvolume "gone"',
        ),
        (
            [claim(metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"})],
            [ClaimUse("c")],
            'persistentvolumeclaim "c" is being deleted',
        ),
        ([claim()], [ClaimUse("c", own=True)], "PVC default/c was not created for pod default/p (pod is not owner)"),
        ([claim()], [ClaimUse("c")], "pod has unbound immediate PersistentVolumeClaims"),
        ([claim(bound_to="v")], [ClaimUse("c")], 'persistentvolume "v" not found'),
        # the controller is not done with it: the annotation is missing
        (
            [claim(volumeName="v"), volume(), waiting_class()],
            [ClaimUse("c")],
            "pod has unbound immediate PersistentVolumeClaims",
        ),
        # the first that is wrong in the pod's order
        ([claim()], [ClaimUse("c"), ClaimUse("d")], 'persistentvolumeclaim "d" not found'),
    ],
)
def test_a_pod_is_blocked(items, uses, text):
    assert demands(*items, uses=uses).blocked == text


def test_an_ephemeral_claim_of_the_pod():
    owner = {"ownerReferences": [{"uid": "uid-p", "controller": True}]}
    assert demands(claim(bound_to="v", metadata=owner), volume(), uses=[ClaimUse("c", own=True)]).blocked == ""


def test_the_nodes_of_a_bound_volume():
    found = demands(claim(bound_to="v"), volume(on=["a", "b"]))
    assert admits(found, {"host": "a"}) == []
    assert admits(found, {"host": "c"}) == [VOLUME_NODE]


@pytest.mark.parametrize(
    ("labels", "node", "fails"),
    [
        ({ZONE: "a"}, {ZONE: "a"}, []),
        ({ZONE: "a"}, {ZONE: "b"}, [VOLUME_ZONE]),
        ({ZONE: "a__b"}, {ZONE: "b"}, []),
        ({ZONE: "a"}, {"other": "x"}, []),  # a cluster of one zone
        ({ZONE: "a"}, {"topology.kubernetes.io/region": "r"}, [VOLUME_ZONE]),
        ({BETA: "a"}, {ZONE: "a"}, []),  # the label's successor
        ({BETA: "a"}, {BETA: "b", ZONE: "a"}, [VOLUME_ZONE]),
        ({ZONE: "a"}, {BETA: "a"}, [VOLUME_ZONE]),  # but not its predecessor
        ({ZONE: "a__"}, {ZONE: "z"}, []),  # an empty member: the label is ignored
        (
            {ZONE: "a", "topology.kubernetes.io/region": "r"},
            {ZONE: "a", "topology.kubernetes.io/region": "q"},
            [VOLUME_ZONE],
        ),
    ],
)
def test_zone_labels_of_a_bound_volume(labels, node, fails):
    assert admits(demands(claim(bound_to="v"), volume(labels=labels)), node) == fails


def test_nodes_of_a_claim_that_waits_for_the_pod():
    free = [volume("v1", on=["a"]), volume("v2", on=["b"], size="2Gi"), volume("v3", on=["c"], size="512Mi")]
    found = demands(claim(), waiting_class(), *free)
    assert [host for host in "abcd" if not admits(found, {"host": host})] == ["a", "b"]
    assert found.waits_in == {"s"}
    assert admits(demands(claim(), waiting_class()), {}) == [VOLUME_NONE]
    assert admits(demands(claim(), waiting_class(), volume()), {}) == []  # one without affinity, anywhere


def test_the_selected_node_of_a_claim_is_kept():
    found = demands(claim(selected="n1"), waiting_class(provisioner="p"))
    assert admits(found, {}, "n1") == []
    assert admits(found, {}, "n2") == [VOLUME_NONE]


def test_where_a_volume_can_be_provisioned():
    allowed = [{"matchLabelExpressions": [{"key": ZONE, "values": ["a", "b"]}]}]
    klass = waiting_class(provisioner="p", allowedTopologies=allowed)
    found = demands(claim(), klass)
    assert admits(found, {ZONE: "b"}) == []
    assert admits(found, {ZONE: "c"}) == [VOLUME_NONE]
    # or there is one already
    found = demands(claim(), klass, volume(on=["x"]))
    assert admits(found, {ZONE: "c", "host": "x"}) == []
    assert admits(demands(claim(), waiting_class(provisioner="p")), {}) == []
    assert admits(demands(claim(), waiting_class(provisioner="p"), volume(on=["x"])), {}) == []


def test_capacity_counts_if_the_driver_publishes_it():
    def space(name, zone, amount, **fields):
        return made(
            Capacity, name, storageClassName="s", nodeTopology={"matchLabels": {ZONE: zone}}, capacity=amount, **fields
        )

    items = [
        claim(size="2Gi"),
        waiting_class(provisioner="p"),
        space("one", "a", "1Gi"),
        space("two", "b", "5Gi"),
        space("three", "c", "5Gi", maximumVolumeSize="1Gi"),
    ]
    tracked = demands(*items, made(CsiDriver, "p", "", spec={"storageCapacity": True}))
    assert [zone for zone in "abc" if not admits(tracked, {ZONE: zone})] == ["b"]
    assert admits(tracked, {ZONE: "a"}) == [VOLUME_SPACE]
    assert not admits(demands(*items, made(CsiDriver, "p", "", spec={})), {ZONE: "a"})


def test_read_write_once_pod():
    items = [claim(bound_to="v", accessModes=["ReadWriteOncePod"]), volume()]
    assert demands(*items).blocked == ""
    found = demands(*items, taken=True)
    assert found.blocked.startswith("node(s) unavailable due to PersistentVolumeClaim")
    assert found.per_node


def test_attachments_count_each_volume_once():
    limit = made(CsiNode, "n", "", spec={"drivers": [{"name": "d", "allocatable": {"count": 3}}, {"name": "e"}]})
    items = [
        claim("a", bound_to="v"),
        claim("b", bound_to="v"),
        claim("c", bound_to="w"),
        claim("x", bound_to="e"),
        volume("v", driver="d"),
        volume("w", driver="d"),
        volume("e", driver="e"),
        limit,
    ]
    uses = [ClaimUse(name) for name in "abcx"]
    assert demands(*items, uses=uses).requests == {"attachable-volumes-csi-d": 2}
    assert demands(*items[:-1], uses=uses).requests == {}
    # one that is still to be made counts by its class
    assert demands(claim(), waiting_class(provisioner="d"), limit).requests == {"attachable-volumes-csi-d": 1}


@pytest.mark.parametrize(
    ("driver", "source", "provisioner"),
    [
        ("pd.csi.storage.gke.io", {"gcePersistentDisk": {"pdName": "x"}}, "kubernetes.io/gce-pd"),
        ("ebs.csi.aws.com", {"awsElasticBlockStore": {"volumeID": "aws://z/x"}}, "kubernetes.io/aws-ebs"),
        ("disk.csi.azure.com", {"azureDisk": {"diskURI": "/subscriptions/x"}}, "kubernetes.io/azure-disk"),
        ("cinder.csi.openstack.org", {"cinder": {"volumeID": "x"}}, "kubernetes.io/cinder"),
    ],
)
def test_volumes_of_migrated_plugins_are_those_of_their_drivers(driver, source, provisioner):
    """csi-translation-lib, which kube-scheduler uses; nodevolumelimits/utils.go says which plug-ins are migrated."""
    limit = made(CsiNode, "n", "", spec={"drivers": [{"name": driver, "allocatable": {"count": 3}}]})
    bound = [claim("a", bound_to="v"), claim("b", bound_to="v"), volume("v", **source), limit]
    assert demands(*bound, uses=[ClaimUse("a"), ClaimUse("b")]).requests == {f"attachable-volumes-csi-{driver}": 1}
    to_be_made = claim(), waiting_class(provisioner=provisioner), limit
    assert demands(*to_be_made).requests == {f"attachable-volumes-csi-{driver}": 1}


@pytest.mark.parametrize(
    ("given_volume", "requests", "fits"),
    [
        (volume(), claim(), True),
        (volume(size="1023Mi"), claim(), False),
        (volume(volumeMode="Block"), claim(), False),
        (volume(volumeMode="Filesystem"), claim(), True),
        (volume(), claim(accessModes=["ReadWriteMany"]), False),
        (volume(phase="Released"), claim(), False),
        (volume(), claim(selector={"matchLabels": {"tier": "gold"}}), False),
        (volume(labels={"tier": "gold"}), claim(selector={"matchLabels": {"tier": "gold"}}), True),
        (volume(storage_class="t"), claim(), False),
        (volume(claimRef={"namespace": "default", "name": "d"}), claim(), False),
        (volume(claimRef={"namespace": "default", "name": "c"}), claim(), True),
        (volume(claimRef={"namespace": "default", "name": "c", "uid": "old"}), claim(), False),
        (volume(volumeAttributesClassName="fast"), claim(), False),
    ],
)
def test_which_volumes_fit(given_volume, requests, fits):
    assert bool(candidates(storage(given_volume), requests)) == fits


def test_a_reserved_volume_is_for_its_claim_only():
    found = storage(volume())
    found.reserved["v"] = ("default", "d")
    assert candidates(found, claim("c")) == []
    assert len(candidates(found, claim("d"))) == 1


ON_A = {"key": "host", "operator": "In", "values": ["a"]}
NAMED_N = {"key": "metadata.name", "operator": "In", "values": ["n"]}


def above(bound):
    return {"matchExpressions": [{"key": "rank", "operator": "Gt", "values": [bound]}]}


@pytest.mark.parametrize(
    ("terms", "labels", "fits"),
    [
        ([{"matchExpressions": [ON_A]}], {"host": "a"}, True),
        ([{"matchExpressions": [ON_A]}], {"host": "b"}, False),
        ([{}], {"host": "a"}, False),
        ([{"matchFields": [NAMED_N]}], {}, True),  # a volume is held against labels alone
        ([{"matchFields": [NAMED_N], "matchExpressions": [ON_A]}], {"host": "a"}, True),
        ([{"matchFields": [NAMED_N], "matchExpressions": [ON_A]}], {"host": "b"}, False),
        ([above("9")], {"rank": "10"}, True),
        ([above("9")], {"rank": "1_0"}, False),
        ([above("9")], {"rank": "9223372036854775808"}, False),
        ([above("x")], {"rank": "10"}, False),
        ([above("x"), {"matchExpressions": [ON_A]}], {"host": "a"}, True),
    ],
)
def test_on_which_nodes_a_volume_can_be_used(terms, labels, fits):
    given_volume = volume(
        claimRef={"namespace": "default", "name": "c"}, nodeAffinity={"required": {"nodeSelectorTerms": terms}}
    )
    assert usable_on(given_volume, labels) == fits
    found = demands(claim(bound_to="v"), given_volume)
    assert found.blocked == ""
    selectors = [firmament_pb2.NodeSelector.FromString(raw) for _, raw in found.further]
    # as the flow service understands it, on a node of another name
    assert (
        all(any(term(one).matches(labels, {NAME_FIELD: "m"}) for one in each.nodeSelectorTerms) for each in selectors)
        == fits
    )


@pytest.mark.parametrize("kept_for", [None, {"namespace": "default", "name": "other"}])
def test_a_change_of_a_volume_is_announced_for_the_claims_that_name_it(kept_for):
    found = storage(claim("c", bound_to="v"))
    heard: list[tuple[str, str]] = []

    class Listener(StorageListener):
        def claim_changed(self, key):
            heard.append(key)

    found.listener = Listener()
    extra = {"claimRef": kept_for} if kept_for else {}
    found.put_volume(volume("v", **extra))
    assert heard.count(("default", "c")) == 1
    heard.clear()
    found.put_claim(claim("c", bound_to="w"))
    assert heard == [("default", "c")]
    found.put_volume(volume("v", labels={ZONE: "a"}, **extra))
    found.drop_claim(("default", "c"))
    heard.clear()
    found.drop_volume("v")
    found.put_volume(volume("w"))
    assert ("default", "c") not in heard
    assert found.named_by == {}


def test_zones_are_checked_last():
    zonal = volume("z", labels={ZONE: "a"}, claimRef={"namespace": "default", "name": "c"})
    near = volume("w", labels={ZONE: "a"}, on=["a"], claimRef={"namespace": "default", "name": "d"})
    items = (claim(bound_to="z"), zonal, claim("d", bound_to="w"), near)
    found = demands(*items, uses=(*ONE, ClaimUse("d")))
    assert [name for name, _ in found.further] == [VOLUME_NODE, VOLUME_ZONE, VOLUME_ZONE]


SIZES = st.integers(1, 6)


@given(st.lists(st.tuples(SIZES, st.sampled_from(["a", "b", ""])), max_size=8), st.lists(SIZES, max_size=4))
def test_the_choice_is_sound_and_smallest_first(volumes, claims):
    there = [volume(f"v{i}", size=f"{size}Gi", on=[host] if host else ()) for i, (size, host) in enumerate(volumes)]
    requests = [claim(f"c{i}", size=f"{size}Gi") for i, size in enumerate(claims)]
    labels = {"host": "a"}
    pairs, left = choose(storage(*there), requests, lambda one: usable_on(one, labels))
    assert len(pairs) + len(left) == len(requests)
    names = [chosen.metadata.name for _, chosen in pairs]
    assert len(set(names)) == len(names)
    sizes = {f"v{i}": size for i, (size, _) in enumerate(volumes)}
    asked = {f"c{i}": size for i, size in enumerate(claims)}
    usable = {f"v{i}" for i, (_, host) in enumerate(volumes) if host != "b"}
    assert set(names) <= usable
    assert all(sizes[v.metadata.name] >= asked[c.metadata.name] for c, v in pairs)
    # on one line of sizes, smallest first leaves no claim without a volume that some other choice would give one
    free = usable - set(names)
    assert not any(sizes[name] >= asked[c.metadata.name] for c in left for name in free)
