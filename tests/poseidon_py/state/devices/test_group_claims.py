"""Claims of PodGroups: whose they are, for whom they are reserved, and when they are given back."""

import json

import msgspec
import pytest

from poseidon_py.devices.objects import Consumer
from poseidon_py.kube.objects import OwnerReference
from poseidon_py.state.devices.gate import DeviceListener
from poseidon_py.state.gangs.by_pod_group import NATIVE
from poseidon_py.state.gangs.decode import Item, owner_or_group_of
from tests.poseidon_py.builders import pod
from tests.poseidon_py.state.devices.test_gate import Fleet, claim
from tests.poseidon_py.state.gangs.builders import Objects

ENTRY = {"name": "d", "resourceClaimName": "c"}
TEMPLATE = {"name": "d", "resourceClaimTemplateName": "t"}
GROUP = Consumer("podgroups", "g", "uid-g", "scheduling.k8s.io")


class GroupFleet(Fleet):
    def __init__(self, *claims):
        super().__init__()
        objects = self.store.gangs.objects = Objects()
        spec = {"schedulingPolicy": {"basic": {}}, "resourceClaims": list(claims)}
        body = {"metadata": {"name": "g", "namespace": "default", "uid": "uid-g"}, "spec": spec}
        objects.put(NATIVE, owner_or_group_of(NATIVE, msgspec.json.decode(json.dumps(body), type=Item)))

    def member(self, name, entry=ENTRY, group="g", **fields):
        statuses = [{"name": entry["name"], "resourceClaimName": "c"}] if entry is not ENTRY else []
        spec = {"resourceClaims": [entry], **({"schedulingGroup": {"podGroupName": group}} if group else {})}
        given = pod(name, spec=spec, status={"resourceClaimStatuses": statuses}, **fields)
        self.store.observe_pod(given)
        known = self.store.pods[given.metadata.uid]
        self.gate.use(known, given)
        return known


@pytest.mark.parametrize(
    ("of_group", "entry", "group", "of"),
    [
        (ENTRY, ENTRY, "g", GROUP),
        (TEMPLATE, TEMPLATE, "g", GROUP),
        (ENTRY, ENTRY, "", None),
        (ENTRY, ENTRY, "absent", None),
        (ENTRY, {**ENTRY, "name": "e"}, "g", None),
        (ENTRY, TEMPLATE, "g", None),
        (TEMPLATE, {**TEMPLATE, "resourceClaimTemplateName": "u"}, "g", None),
    ],
)
def test_an_entry_that_equals_the_groups_is_the_claim_of_the_group(of_group, entry, group, of):
    """Name and reference, as BindTo of k8s.io/dynamic-resource-allocation 1.36."""
    known = GroupFleet(of_group).member("a", entry, group)
    assert known.devices.entries[0].claim == "c"
    found = GroupFleet(of_group)
    known = found.member("a", entry, group)
    assert found.gate.groups.consumer(known, "c") == (of or Consumer("pods", "a", "uid-a"))


def test_a_generated_claim_belongs_to_the_group():
    fleet = GroupFleet(TEMPLATE)
    known = fleet.member("a", TEMPLATE)
    fleet.gate.put_claim(claim(owner="uid-a"))
    assert fleet.gate.demands_of(known).blocked.endswith("(PodGroup is not owner)")
    fleet.gate.put_claim(claim(owner="uid-g"))
    assert fleet.gate.demands_of(known).blocked == ""
    assert known.devices.is_tied  # its successor has the same claim
    own = fleet.member("b", {**TEMPLATE, "name": "e"})
    assert "(pod is not owner)" in fleet.gate.demands_of(own).blocked


def test_the_number_of_pods_is_not_limited_but_that_of_users_is():
    fleet = GroupFleet(ENTRY)
    users = [f"u{at}" for at in range(255)]
    fleet.gate.put_claim(claim(on="n0", users=[*users, "uid-g"]))
    member, other = fleet.member("a"), fleet.member("b", group="")
    assert (fleet.gate.demands_of(member).blocked, fleet.gate.demands_of(other).blocked) == ("", "resourceclaim in use")


def test_what_a_group_has_is_not_freed_by_one_of_its_pods():
    fleet = GroupFleet(ENTRY)
    fleet.gate.put_claim(claim(on="n0", users=["uid-g"]))
    known = fleet.member("a", node="n0")
    assert fleet.gate.demands_of(known).requests == {}


def test_devices_that_no_pod_of_the_group_can_use_are_given_back():
    """As kube-scheduler, which does so while none of its pods is scheduled."""
    fleet, given_back = GroupFleet(ENTRY), []

    class Listener(DeviceListener):
        def unused(self, known, key):
            given_back.append((known.name, key))

    fleet.gate.listener = Listener()
    fleet.gate.put_claim(claim(on="n0", users=["uid-g"]))
    first, _ = fleet.member("a"), fleet.member("b")
    fleet.gate.fits_nowhere(first)
    assert given_back == [("a", ("default", "c"))]
    fleet.member("b", node="n0")
    fleet.gate.fits_nowhere(first)
    assert len(given_back) == 1


def test_the_owner_of_a_group_is_not_enough():
    fleet = GroupFleet(TEMPLATE)
    other = claim(owner="uid-g")
    other.metadata.owners = [OwnerReference(uid="uid-h", kind="PodGroup", controller=True)]
    fleet.gate.put_claim(other)
    assert fleet.gate.demands_of(fleet.member("a", TEMPLATE)).blocked
