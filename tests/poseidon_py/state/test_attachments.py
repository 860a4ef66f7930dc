"""Slots for attached volumes, against kube-scheduler's count (nodevolumelimits/csi.go), written out."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from poseidon_py.kube.storage_objects import CsiNode, VolumeAttachment
from poseidon_py.state.volumes.attachments import Attachments
from poseidon_py.state.volumes.claims import VolumeDemands, slots
from protos.gen import firmament_pb2
from tests.effort import examples
from tests.poseidon_py.state.test_volumes import made, storage, volume

DRIVERS = ("d", "e")
VOLUMES = [(driver, f"{driver}{number}") for driver in DRIVERS for number in range(3)]
some_volumes = st.frozensets(st.sampled_from(VOLUMES), max_size=3)


def attachment(name, volume, node):
    return made(
        VolumeAttachment,
        name,
        "",
        spec={"attacher": volume[0], "nodeName": node, "source": {"persistentVolumeName": volume[1]}},
    )


def csi_node(name, **limits):
    drivers = [{"name": driver, "allocatable": {"count": count}} for driver, count in limits.items()]
    return made(CsiNode, name, "", spec={"drivers": drivers})


def taken(pods, left, node):
    """What is attached to a node: each volume of its pods once, and what is left there."""
    return {volume for at, volumes in pods.values() if at == node for volume in volumes} | {
        v for v, at in left if at == node
    }


@examples(300)
@given(
    limits=st.fixed_dictionaries({}, optional={driver: st.integers(0, 4) for driver in DRIVERS}),
    pods=st.dictionaries(st.sampled_from("abcde"), st.tuples(st.sampled_from("nm"), some_volumes), max_size=5),
    left=st.sets(st.tuples(st.sampled_from(VOLUMES), st.sampled_from("nm")), max_size=3),
    gone=st.sets(st.sampled_from("abcde")),
    requested=some_volumes,
)
def test_free_slots_are_those_of_kube_scheduler(limits, pods, left, gone, requested):
    touched: set[str] = set()
    found = storage(csi_node("n", **limits), *(volume(handle, driver=driver) for driver, handle in VOLUMES))
    for number, (of, node) in enumerate(sorted(left)):
        found.put_attachment(attachment(f"a{number}", of, node))
    attachments = Attachments(found, touched.add, touched.add)
    for uid, (node, volumes) in pods.items():
        attachments.use(uid, node, volumes, bound=True)
    own = {uid: attachments.own(uid) for uid in pods}
    touched.clear()
    for uid in gone & pods.keys():
        attachments.forget(uid)
        del pods[uid]
    # rows that were not sent again are right
    own |= {uid: attachments.own(uid) for uid in pods.keys() & touched}
    there = taken(pods, left, "n")
    for driver, limit in limits.items():
        by_pods = sum(own[uid][driver] for uid, (node, _) in pods.items() if node == "n")
        assert attachments.limits("n")[driver] - by_pods == limit - sum(of == driver for of, _ in there)
    fits = all(
        not (new := [v for v in requested - {v for at, vs in pods.values() if at == "n" for v in vs} if v[0] == driver])
        or sum(of == driver for of, _ in there) + len(new) <= limit
        for driver, limit in limits.items()
    )
    assert attachments.takes("n", requested) == fits


def test_volumes_of_assumed_pods_take_slots_until_they_are_given_back():
    found = storage(csi_node("n", d=1), volume("d0", driver="d"), volume("d1", driver="d"))
    attachments = Attachments(found, lambda uid: None, lambda node: None)
    one, other = frozenset({VOLUMES[0]}), frozenset({VOLUMES[1]})
    attachments.use("a", "n", one, bound=False)
    assert attachments.takes("n", one)
    assert not attachments.takes("n", other)
    assert attachments.limits("n") == {"d": 1}  # the flow service counts it by its request
    assert attachments.forget("a") == "n"
    assert attachments.takes("n", other)


def test_a_pod_needs_no_slot_for_a_volume_that_is_attached_for_others():
    """Three pods of one node on one volume took three slots of it: of a limit of one, a single pod ran."""
    nodes = csi_node("n", d=1), csi_node("m", d=1), csi_node("free", d=1)
    found = storage(*nodes, volume("d0", driver="d"), volume("d1", driver="d"))
    attachments = Attachments(found, lambda uid: None, lambda node: None)
    attachments.use("a", "n", frozenset({VOLUMES[0]}), bound=True)
    attachments.use("b", "m", frozenset({VOLUMES[1]}), bound=True)
    demands = VolumeDemands(attached=frozenset({VOLUMES[0]}), requests=slots(Counter(d=1)))
    assert attachments.relieve(demands)
    assert demands.requests == {}
    (requirement,) = demands.further
    (term,) = firmament_pb2.NodeSelector.FromString(requirement[1]).nodeSelectorTerms
    assert [(each.operator, list(each.values)) for each in term.matchFields] == [("NotIn", ["m"])]
    other = VolumeDemands(attached=frozenset({("d", "d2")}), requests=slots(Counter(d=1)))
    assert not attachments.relieve(other)
    assert (other.requests, other.further) == (slots(Counter(d=1)), [])
