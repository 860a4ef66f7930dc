"""Devices that count in quotas: for which pod, and what nodes offer of the resource that they count as."""

import pytest

from poseidon_py.devices.device_quotas import NO_QUOTAS, DeviceQuotas
from poseidon_py.devices.objects import ClassSpec, DeviceClass
from poseidon_py.kube.objects import Metadata
from poseidon_py.state.records import QueueMembership
from tests.poseidon_py.devices.offers import device, slice_of
from tests.poseidon_py.state.devices.test_gate import Fleet, claim

GPUS = DeviceQuotas({"gpu": "gpus"}, exclusive=True)
BY_CLASS = DeviceQuotas({"gpu": "deviceclass.resource.kubernetes.io/gpu"})


def fleet_with(quotas):
    """A fleet whose queues have these quotas."""
    fleet = Fleet()
    fleet.gate._quota_use._quotas = fleet.gate.offers._quotas = lambda: quotas
    return fleet


def of(fleet, node="n0", **allocatable):
    return dict(fleet.gate.offers.of(node, {}, allocatable))


def test_a_claim_of_several_pods_counts_for_one_of_them_and_then_for_the_next():
    fleet = fleet_with(BY_CLASS)
    (name,) = BY_CLASS.resource_of.values()
    fleet.gate.put_claim(claim(count=2))
    first, second = (fleet.pod(each, "c", created=f"2026-01-0{at}T00:00:00Z") for at, each in enumerate("ab", 1))
    assert fleet.gate.demands_of(first).requests[name] == 2
    assert name not in fleet.gate.demands_of(second).requests
    fleet.pod("b", "c", node="n0", created="2026-01-02T00:00:00Z")
    assert fleet.gate.demands_of(second).requests == {name: 2}
    assert name not in fleet.gate.demands_of(first).requests


def test_a_node_offers_what_nobody_uses_and_what_its_pods_count_as():
    fleet = fleet_with(GPUS)
    assert of(fleet)["gpus"] == 2
    fleet.gate.put_claim(claim(count=1))
    known = fleet.pod("a", "c")
    assert fleet.gate.demands_of(known).requests == {"devices:gpu": 1, "gpus": 1}
    fleet.place(known, "n0")
    assert of(fleet)["gpus"] == 2
    fleet.gate.put_claim(claim("others", on="n1"))
    assert of(fleet, "n1")["gpus"] == 2  # of devices in use without a pod that counts, too: their claim may get one
    fleet.gate.put_slice(slice_of(device("s", shareable=True), name="shared", pool="shared", node_name="n0"))
    assert of(fleet)["gpus"] == 2**40


def test_where_a_device_plugin_serves_the_resource_it_offers_that_and_what_claims_count_as():
    fleet = fleet_with(GPUS)
    fleet.gate.put_class(DeviceClass(Metadata(name="gpu"), ClassSpec(extended="example.com/gpu")))
    assert of(fleet, "n9", **{"example.com/gpu": 8})["gpus"] == 8
    same = fleet_with(DeviceQuotas({"gpu": "example.com/gpu"}, exclusive=True))
    assert of(same, "n0", **{"example.com/gpu": 8})["example.com/gpu"] == 8
    same.gate.put_claim(claim())
    known = same.pod("a", "c")
    assert same.gate.demands_of(known).requests["example.com/gpu"] == 1
    same.place(known, "n0")
    assert of(same, "n0", **{"example.com/gpu": 8})["example.com/gpu"] == 9  # the plugin's eight are still there


@pytest.mark.parametrize(
    ("quotas", "in_queue", "text"),
    [
        (GPUS, True, "resourceclaim c has no quota, as other pods may share it; use a template"),
        (GPUS, False, ""),
        (BY_CLASS, True, ""),
        (NO_QUOTAS, True, ""),
    ],
)
def test_a_claim_that_others_may_share_is_refused_where_devices_need_a_quota(quotas, in_queue, text):
    fleet = fleet_with(quotas)
    fleet.gate.put_claim(claim())
    known = fleet.pod("a", "c")
    known.queue = QueueMembership(id=7 if in_queue else 0)
    demands = fleet.gate.demands_of(known)
    assert (demands.blocked, demands.is_reportable) == (text, True)


def test_pods_and_nodes_are_described_again_when_devices_count_as_something_else():
    fleet = Fleet()
    fleet.gate.put_claim(claim())
    known = fleet.pod("a", "c")
    fleet.touched()
    fleet.gate.put_quotas(GPUS)
    assert fleet.touched() == {known.uid}
    fleet.gate.put_quotas(DeviceQuotas({"gpu": "gpus"}, exclusive=True))
    assert fleet.touched() == set()
