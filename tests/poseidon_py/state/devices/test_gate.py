"""What claims require of pods, and what follows from each event."""

import pytest
from msgspec import Raw

from poseidon_py.describe.node import describe_node
from poseidon_py.devices.objects import (
    AllocatedDevice,
    AllocatedDevices,
    Allocation,
    ClaimDevices,
    Consumer,
    DeviceClaimMetadata,
    DeviceClaimSpec,
    DeviceClaimStatus,
    DeviceClass,
    DeviceRequest,
    ExactRequest,
    ResourceClaim,
)
from poseidon_py.kube.objects import Metadata, OwnerReference, RequiredTerms, Requirement, SelectorTerm
from poseidon_py.state.claim_use import PreparationError, TakenError
from poseidon_py.state.devices.chooser import DeviceChooser
from poseidon_py.state.store import Store
from tests.poseidon_py.builders import node, pod
from tests.poseidon_py.devices.offers import device, slice_of


def claim(name="c", *, count=1, users=(), on="", owner="", class_name="gpu", deleting=None):
    """`on`: the node where it is allocated; `owner`: UID of the pod that it is for."""
    metadata = DeviceClaimMetadata(name=name, namespace="default", uid=f"uid-{name}", deleting=deleting)
    metadata.owners = [OwnerReference(uid=owner, kind="Pod", controller=True)] if owner else None
    request = DeviceRequest(name="r", exactly=ExactRequest(class_name, count=count))
    status = DeviceClaimStatus(users=[Consumer("pods", each, each) for each in users])
    if on:
        here = RequiredTerms([SelectorTerm(fields=[Requirement("metadata.name", "In", [on])])])
        status.allocation = Allocation(AllocatedDevices([AllocatedDevice("r", "gpu.example.com", on, "d0")]), here)
    return ResourceClaim(metadata, DeviceClaimSpec(ClaimDevices([request])), status)


class Fleet:
    """A store with nodes n0, n1, ... of two devices each, and pods that name claims."""

    def __init__(self, nodes=2) -> None:
        self.store = Store(["poseidon"])
        self.gate = self.store.devices
        self.gate.set_readable("")
        self.gate.put_class(DeviceClass(Metadata(name="gpu")))
        for at in range(nodes):
            name = f"n{at}"
            self.store.observe_node(node(name))
            two = device("d0"), device("d1")
            self.gate.put_slice(slice_of(*two, name=f"s{at}", pool=name, node_name=name))
        self.chooser = DeviceChooser(self.gate, self.store.nodes.get)

    def pod(self, name, *claims, **fields):
        entries = [{"name": each, "resourceClaimName": each} for each in claims]
        given = pod(name, spec={"resourceClaims": entries, **fields.pop("spec", {})}, **fields)
        self.store.observe_pod(given)
        known = self.store.pods[given.metadata.uid]
        self.gate.use(known, given)
        return known

    @staticmethod
    def describe(record):
        record.base = record.base or describe_node(record.newest, record.id)

    def place(self, known, on):
        self.describe(self.store.nodes[on])
        assert self.store.assume(known, on)
        return self.chooser.choose(known, on)

    def touched(self):
        """UIDs of the pods that are to be described again since this was asked last."""
        found = {uid for uid, known in self.store.pods.items() if known.dirty}
        for known in self.store.pods.values():
            known.dirty = False
        return found


@pytest.fixture
def fleet():
    return Fleet()


def demands(fleet, known):
    return fleet.gate.demands_of(known)


def test_a_claim_that_is_not_allocated_is_counted_by_its_devices(fleet):
    fleet.gate.put_claim(claim(count=2))
    found = demands(fleet, fleet.pod("a", "c"))
    assert (found.blocked, found.requests, found.further) == ("", {"devices:gpu": 2}, [])


def test_a_claim_with_devices_requires_their_node_and_counts_as_nothing(fleet):
    fleet.gate.put_claim(claim(on="n1"))
    found = demands(fleet, fleet.pod("a", "c"))
    assert (found.blocked, found.requests, [name for name, _ in found.further]) == ("", {}, ["devices"])


@pytest.mark.parametrize(
    ("given", "text"),
    [
        (None, 'resourceclaim "c" not found'),
        (claim(deleting="2026-01-01T00:00:00Z"), 'resourceclaim "c" is being deleted'),
        (claim(class_name="fpga"), "request r: device class fpga does not exist"),
        (claim(on="n0", users=[f"u{at}" for at in range(256)]), "resourceclaim in use"),
    ],
)
def test_what_blocks_a_pod(fleet, given, text):
    if given is not None:
        fleet.gate.put_claim(given)
    found = demands(fleet, fleet.pod("a", "c"))
    assert (found.blocked, found.is_reportable) == (text, True)


def test_the_256th_user_is_the_last(fleet):
    fleet.gate.put_claim(claim(on="n0", users=[f"u{at}" for at in range(255)]))
    assert demands(fleet, fleet.pod("a", "c")).blocked == ""


def test_until_devices_are_known_pods_wait_in_silence(fleet):
    fleet.gate.set_readable("the devices of the cluster are not known yet")
    fleet.gate.put_claim(claim())
    found = demands(fleet, fleet.pod("a", "c"))
    assert found.blocked == "the devices of the cluster are not known yet"
    assert not found.is_reportable


def test_the_oldest_of_the_most_important_pods_of_a_claim_is_placed_first(fleet):
    fleet.gate.put_claim(claim())
    first, second = fleet.pod("a", "c"), fleet.pod("b", "c")
    first.created_us, second.created_us = 1, 2
    assert demands(fleet, first).requests
    behind = demands(fleet, second)
    assert (bool(behind.blocked), behind.is_reportable) == (True, False)
    second.described.priority = 1
    assert demands(fleet, first).blocked
    assert demands(fleet, second).requests


def test_members_of_its_gang_need_not_wait_behind_the_first_once_that_is_known(fleet):
    fleet.gate.put_claim(claim())
    first, other = fleet.pod("a", "c"), fleet.pod("b", "c")
    other.gang.id = 7
    assert demands(fleet, first).blocked == ""
    assert demands(fleet, other).blocked.startswith("behind a pod")
    fleet.touched()
    first.gang.id = 7
    assert demands(fleet, first).blocked == ""
    assert fleet.touched() == {other.uid}
    assert demands(fleet, other).blocked == ""


def test_the_others_follow_as_soon_as_devices_are_chosen(fleet):
    fleet.gate.put_claim(claim())
    first, second = fleet.pod("a", "c"), fleet.pod("b", "c")
    first.created_us, second.created_us = 1, 2
    demands(fleet, first)
    fleet.place(first, "n1")
    found = demands(fleet, second)
    assert (found.blocked, [name for name, _ in found.further]) == ("", ["devices"])
    with pytest.raises(TakenError, match="on another node"):
        fleet.place(second, "n0")


def test_devices_are_in_use_from_the_choice_on_and_free_when_the_placement_ends(fleet):
    for name in "cd":
        fleet.gate.put_claim(claim(name, count=2))
    first, second = fleet.pod("a", "c"), fleet.pod("b", "d")
    for known in (first, second):
        demands(fleet, known)
    fleet.place(first, "n0")
    with pytest.raises(TakenError, match="given to other pods"):
        fleet.place(second, "n0")
    fleet.store.release(second)
    fleet.store.release(first)
    assert fleet.place(second, "n0") is not None


def test_a_node_offers_what_is_free_and_what_its_pods_count_as(fleet):
    """So that the engine, which counts the pods itself, sees the same amount free throughout."""
    fleet.gate.put_claim(claim())
    known = fleet.pod("a", "c")
    demands(fleet, known)
    offers = lambda: dict(fleet.gate.offers.of("n0", {}, {}))  # noqa: E731
    assert offers() == {"devices:gpu": 2}
    fleet.place(known, "n0")
    assert offers() == {"devices:gpu": 2}
    fleet.gate.put_claim(claim(on="n0", users=["uid-a"]))
    assert offers() == {"devices:gpu": 2}
    fleet.store.observe_pod(pod("a", node="n0", spec={"resourceClaims": [{"name": "c", "resourceClaimName": "c"}]}))
    demands(fleet, known)
    assert offers() == {"devices:gpu": 2}
    fleet.store.remove_pod(known.uid)
    assert offers() == {"devices:gpu": 1}
    fleet.gate.put_claim(claim())
    assert offers() == {"devices:gpu": 2}


def test_a_claim_of_others_takes_devices_away(fleet):
    fleet.gate.put_claim(claim())
    demands(fleet, fleet.pod("a", "c"))
    fleet.gate.put_claim(claim("other", on="n0", users=["someone"]))
    assert dict(fleet.gate.offers.of("n0", {}, {})) == {"devices:gpu": 1}


def test_what_a_pod_fits_nowhere_with_is_given_back_if_nobody_else_uses_it(fleet):
    given_back = []
    fleet.gate.listener.unused = lambda known, key: given_back.append(key)
    fleet.gate.put_claim(claim("mine", on="n0", users=["uid-a"]))
    fleet.gate.put_claim(claim("shared", on="n0", users=["uid-a", "other"]))
    fleet.gate.put_claim(claim("named", on="n0"))
    known = fleet.pod("a", "mine", "shared", "named")
    fleet.pod("b", "named")
    fleet.gate.fits_nowhere(known)
    assert given_back == [("default", "mine")]


@pytest.mark.parametrize(
    "event",
    [
        lambda gate: gate.put_claim(claim()),
        lambda gate: gate.drop_claim(("default", "c")),
        lambda gate: gate.put_class(DeviceClass(Metadata(name="gpu"))),
        lambda gate: gate.drop_class("gpu"),
        lambda gate: gate.set_readable("why"),
    ],
)
def test_events_have_pods_described_again(fleet, event):
    fleet.gate.put_claim(claim())
    known = fleet.pod("a", "c")
    fleet.pod("b")
    demands(fleet, known)
    fleet.touched()
    event(fleet.gate)
    assert fleet.touched() == {known.uid}


def test_a_deleted_claim_ends_a_placement(fleet):
    fleet.gate.put_claim(claim())
    known = fleet.pod("a", "c")
    demands(fleet, known)
    fleet.gate.drop_claim(("default", "c"))
    with pytest.raises(PreparationError, match="was deleted"):
        fleet.place(known, "n0")


def test_a_claim_that_was_left_behind_is_noticed_whenever_it_comes(fleet):
    """That of extended resources, of a pod that waits: another process ended before it was bound."""
    noticed = []
    fleet.gate.listener.left_behind = lambda known, key: noticed.append(key)
    resources = {"requests": {"example.com/gpu": "1"}, "limits": {"example.com/gpu": "1"}}
    known = fleet.pod("a", spec={"containers": [{"name": "c", "resources": resources}]})
    demands(fleet, known)
    fleet.touched()
    left = claim("left", on="n0", owner=known.uid)
    left.metadata.annotations = Raw(b'{"resource.kubernetes.io/extended-resource-claim": "true"}')
    fleet.gate.put_claim(left)
    assert fleet.touched() == {known.uid}
    demands(fleet, known)
    assert noticed == [("default", "left")]


def test_the_users_of_a_claim_with_devices_are_not_described_again_when_one_of_them_is_bound_or_deleted(fleet):
    """They go where the devices are and count as nothing: otherwise 256 users would have 65,536 descriptions."""
    fleet.gate.put_claim(claim(on="n1"))
    pods = [fleet.pod(name, "c") for name in "abc"]
    fleet.touched()
    fleet.pod("a", "c", spec={"nodeName": "n1"})
    assert fleet.touched() == {pods[0].uid}
    fleet.store.remove_pod(pods[1].uid)
    assert fleet.touched() == set()
    fleet.store.remove_pod(pods[0].uid)
    assert fleet.touched() == {pods[2].uid}, "one that is left alone counts as what it would free"


def test_the_users_of_a_claim_without_devices_are_described_again_when_the_first_of_them_goes(fleet):
    fleet.gate.put_claim(claim())
    first, second, third = (fleet.pod(name, "c") for name in "abc")
    fleet.touched()
    fleet.store.remove_pod(first.uid)
    assert fleet.touched() >= {second.uid, third.uid}


def test_a_version_of_a_claim_that_is_known_changes_nothing(fleet):
    """The watch shows what the answer to a write has said already."""
    known, given = fleet.pod("a", "c"), claim(on="n1")
    given.metadata.resource_version = "7"
    fleet.gate.put_claim(given)
    assert fleet.touched() == {known.uid}
    fleet.gate.put_claim(given)
    assert fleet.touched() == set()
    newer = claim(on="n1", users=["uid-a"])
    newer.metadata.resource_version = "8"
    fleet.gate.put_claim(newer)
    assert fleet.touched() == {known.uid}


def test_an_older_version_of_a_claim_frees_none_of_its_devices(fleet):
    """A watch may show what was before a write when its answer has come already."""

    def version(number, **fields):
        found = claim(**fields)
        found.metadata.resource_version = number
        return found

    fleet.gate.put_claim(version("10", on="n1"))
    (given,) = fleet.gate.book.holdings.of("uid-c")
    fleet.gate.put_claim(version("9"))
    assert fleet.gate.book.holdings.of("uid-c") == (given,)
    fleet.gate.put_claim(version("11"))
    assert fleet.gate.book.holdings.of("uid-c") == ()
    another = version("5", on="n1")
    another.metadata.uid = "another"
    fleet.gate.put_claim(another)
    assert fleet.gate.book.holdings.of("another") == (given,), "a new claim of that name, of a server that began anew"
