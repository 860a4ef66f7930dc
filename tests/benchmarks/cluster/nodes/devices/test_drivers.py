"""What drivers publish: models, partitions, shared devices, network cards, pools of the network; and generations."""

from __future__ import annotations

import itertools

import pytest

from benchmarks.cluster import NodeShape
from benchmarks.cluster.api.deletion import delete
from benchmarks.cluster.nodes.devices.equipment import EQUIPMENT, node_pools, pcie_root
from benchmarks.cluster.nodes.devices.inventory import DeviceId, PoolId
from benchmarks.cluster.store.device_kinds import DEVICE_CLASSES, RESOURCE_SLICES
from benchmarks.cluster.store.kinds import NODES
from benchmarks.cluster.store.quantities import parse
from tests.benchmarks.cluster.builders import Still

GPU, NIC, FABRIC = "gpu.nvidia.com", "dra.net", "fabric.example.com"
ROOT = "resource.kubernetes.io/pcieRoot"


def equipped(**equipment):
    shape = NodeShape(devices=tuple((name.replace("_", "-"), count) for name, count in equipment.items()))
    return Still(nodes=1, shapes=(shape,))


def slices(still, driver=GPU):
    found = still.cluster.objects(RESOURCE_SLICES)
    return [one for one in found if one["spec"]["driver"] == driver]


def devices(still, driver=GPU):
    return [device for one in slices(still, driver) for device in one["spec"].get("devices") or ()]


def counted(consumption):
    return {name: parse(one["value"]) for name, one in consumption["counters"].items()}


@pytest.mark.parametrize("name", EQUIPMENT)
def test_everything_that_nodes_can_have_is_accepted_by_the_server(name):
    still = Still(nodes=1, shapes=(NodeShape(devices=((name, 8), (f"{name}-tainted", 1))),))
    published = [device for one in still.cluster.objects(RESOURCE_SLICES) for device in one["spec"].get("devices", ())]
    assert len({device["name"] for device in published}) == len(published) >= 9
    assert sum("taints" in device for device in published) == len(published) // 9


def test_a_gpu_has_the_attributes_of_nvidias_driver():
    still = equipped(a100=2)
    one, other = devices(still)
    attributes = one["attributes"]
    assert one["name"] == "gpu-0"
    assert attributes["type"] == {"string": "gpu"}
    assert attributes["productName"] == {"string": "NVIDIA A100-SXM4-40GB"}
    assert attributes["cudaComputeCapability"] == {"version": "8.0.0"}
    assert one["capacity"] == {"memory": {"value": "40Gi"}}
    assert attributes["uuid"]["string"].startswith("GPU-")
    assert attributes["uuid"] != other["attributes"]["uuid"]
    assert devices(equipped(a100=2)) == [one, other]  # the same in every run
    (published,) = slices(still)
    assert published["spec"]["nodeName"] == published["spec"]["pool"]["name"] == "node-00000"
    assert published["metadata"]["ownerReferences"][0]["kind"] == "Node"


def test_a_slice_goes_with_its_node():
    still = equipped(a100=1, nic=1)
    delete(still.api, NODES, "", "node-00000")
    still.pass_time(1)
    assert still.cluster.objects(RESOURCE_SLICES) == []


def test_partitions_share_the_counters_of_their_gpu():
    """One A100: itself, and 7 + 4 + 3 + 2 + 1 + 1 = 18 partitions."""
    still = equipped(a100_mig=1)
    found = devices(still)
    assert len(found) == 19
    (sets,) = [one["spec"]["sharedCounters"] for one in slices(still) if "sharedCounters" in one["spec"]]
    assert counted(sets[0]) == {"multiprocessors": 98} | {f"memory-slice-{at}": 1 for at in range(8)}
    profiles = [one["attributes"].get("profile", {}).get("string", "whole") for one in found]
    assert {one: profiles.count(one) for one in profiles} == {
        "whole": 1, "1g.5gb": 7, "1g.10gb": 4, "2g.10gb": 3, "3g.20gb": 2, "4g.20gb": 1, "7g.40gb": 1,
    }  # fmt: skip
    parents = {one["attributes"]["parentUUID"]["string"] for one in found if "parentUUID" in one["attributes"]}
    assert parents == {found[0]["attributes"]["uuid"]["string"]}


def test_the_counters_allow_the_combinations_of_the_hardware():
    """NVIDIA's table of what can be side by side on an A100. Of the eight memory slices, 3g takes four as 4g does, and
    the last is for it and 1g.10gb only."""
    found = [one for one in devices(equipped(a100_mig=1)) if one["attributes"]["type"]["string"] == "mig"]

    def possible(*profiles):
        places = [[one for one in found if one["attributes"]["profile"]["string"] == profile] for profile in profiles]
        return any(fit(chosen) for chosen in itertools.product(*places))

    def fit(chosen):
        consumed: dict[str, int] = {}
        for one in chosen:
            for name, amount in counted(one["consumesCounters"][0]).items():
                consumed[name] = consumed.get(name, 0) + amount
        limit = {"multiprocessors": 98} | {f"memory-slice-{at}": 1 for at in range(8)}
        return all(amount <= limit[name] for name, amount in consumed.items())

    assert possible("3g.20gb", "4g.20gb")
    assert possible("3g.20gb", "3g.20gb")
    assert possible("2g.10gb", "2g.10gb", "2g.10gb", "1g.5gb")
    assert possible("4g.20gb", "1g.10gb", "1g.5gb")
    assert not possible("4g.20gb", "4g.20gb")
    assert not possible("7g.40gb", "1g.5gb")
    assert possible("3g.20gb", "2g.10gb", "2g.10gb")
    assert not possible("4g.20gb", "2g.10gb", "2g.10gb")
    assert not possible("3g.20gb", "3g.20gb", "1g.5gb")


def test_many_partitions_take_several_slices():
    """8 * 19 = 152 devices with counters, 64 in a slice; 8 counter sets in one."""
    still = equipped(a100_mig=8)
    found = slices(still)
    assert sorted(len(one["spec"].get("devices", ())) for one in found) == [0, 24, 64, 64]
    assert {one["spec"]["pool"]["resourceSliceCount"] for one in found} == {4}
    ((home, generation, whole, count),) = still.cluster.inventory.pools()
    assert (home, generation, whole, count) == (PoolId(GPU, "node-00000"), 1, True, 152)


def test_a_shared_gpu_can_be_allocated_by_parts():
    (device,) = devices(equipped(l4_shared=1))
    assert device["allowMultipleAllocations"] is True
    assert device["capacity"]["cores"]["requestPolicy"]["validRange"] == {"min": "1", "max": "100", "step": "1"}
    assert device["attributes"]["type"] == {"string": "shared"}


def test_network_cards_are_on_the_roots_of_the_gpus():
    still = equipped(h100=8, nic=8)
    gpus, nics = devices(still), devices(still, NIC)
    assert [one["attributes"]["rail"]["int"] for one in nics] == list(range(8))
    roots = [one["attributes"][ROOT]["string"] for one in gpus]
    assert roots == [one["attributes"][ROOT]["string"] for one in nics] == [pcie_root(at) for at in range(8)]
    assert len(set(roots)) == 8
    numa = [one["attributes"]["resource.kubernetes.io/numaNode"]["int"] for one in gpus]
    assert numa == [0, 0, 0, 0, 1, 1, 1, 1]


def test_the_devices_of_several_names_have_one_pool_of_their_driver():
    still = equipped(a100=2, t4_tainted=1)
    found = devices(still)
    assert [one["name"] for one in found] == ["gpu-0", "gpu-1", "gpu-2"]
    assert ["taints" in one for one in found] == [False, False, True]
    (taint,) = found[2]["taints"]
    assert (taint["key"], taint["effect"]) == ("example.com/unhealthy", "NoSchedule")


def test_pools_of_the_network_are_for_all_nodes_or_for_a_zone():
    still = Still(nodes=3, zones=3, device_pools=(("fabric", 2), ("zone-fabric", 4)))
    found = {one["spec"]["pool"]["name"]: one["spec"] for one in slices(still, FABRIC)}
    assert sorted(found) == ["fabric", "fabric-zone-0", "fabric-zone-1", "fabric-zone-2"]
    assert found["fabric"]["allNodes"] is True
    port = DeviceId(FABRIC, "fabric-zone-1", "port-3")
    reached = [
        node["metadata"]["name"]
        for node in still.cluster.objects(NODES)
        if still.cluster.inventory.reaches(port, node["metadata"]["name"], node["metadata"]["labels"])
    ]
    assert reached == ["node-00001"]


def test_classes_come_with_the_first_devices():
    still = Still(nodes=1)
    assert still.cluster.objects(DEVICE_CLASSES) == []
    still.cluster.drivers.equip("node-00000", [("t4", 1)])
    classes = {one["metadata"]["name"]: one["spec"] for one in still.cluster.objects(DEVICE_CLASSES)}
    assert classes["gpu.nvidia.com"]["extendedResourceName"] == "nvidia.com/gpu"
    assert sorted(classes) == [
        "gpu.nvidia.com", "mig.nvidia.com", "port.fabric.example.com", "rdma.dra.net", "shared.nvidia.com",
    ]  # fmt: skip


def test_a_driver_that_restarts_publishes_the_next_generation_before_it_removes_the_last():
    still = equipped(a100_mig=8)
    seen = []
    still.store.subscribe(RESOURCE_SLICES, lambda change: seen.append(change.type))
    before = sorted(devices(still), key=str)
    assert still.cluster.drivers.restart(GPU, "node-00000") == 2
    assert seen == ["ADDED"] * 4 + ["DELETED"] * 4
    assert {one["spec"]["pool"]["generation"] for one in slices(still)} == {2}
    assert sorted(devices(still), key=str) == before


def test_while_a_pool_is_renewed_only_its_newest_generation_counts():
    still = equipped(a100_mig=8)
    (old,) = [one for one in slices(still) if len(one["spec"].get("devices", ())) == 24]
    spec = old["spec"] | {"pool": old["spec"]["pool"] | {"generation": 2}}
    manifest = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice", "metadata": {"name": "new"}, "spec": spec}
    still.cluster.create(manifest)
    assert list(still.cluster.inventory.pools()) == [(PoolId(GPU, "node-00000"), 2, False, 24)]
    assert still.cluster.inventory.device(DeviceId(GPU, "node-00000", "gpu-0")) is None


def test_a_device_gets_taints_and_loses_them():
    still = equipped(a100=2)
    drivers, which = still.cluster.drivers, (GPU, "node-00000", "gpu-1")
    assert drivers.taint(*which, [{"key": "example.com/hot", "effect": "NoExecute"}]) == 2
    (taint,) = devices(still)[1]["taints"]
    assert taint["timeAdded"]
    assert "taints" not in devices(still)[0]
    assert drivers.taint(*which, []) == 3
    assert all("taints" not in one for one in devices(still))


def test_a_pool_that_is_withdrawn_comes_back_in_a_later_generation():
    still = equipped(a100=1)
    still.cluster.drivers.withdraw(GPU, "node-00000")
    assert slices(still) == []
    still.cluster.drivers.equip("node-00000", [("a100", 1)])
    assert slices(still)[0]["spec"]["pool"]["generation"] == 2


@pytest.mark.parametrize(
    ("call", "problem"),
    [
        pytest.param(lambda drivers: drivers.equip("n", [("a200", 1)]), "unknown devices 'a200'", id="model"),
        pytest.param(lambda drivers: drivers.equip("n", [("t4-mig", 1)]), "unknown devices 't4-mig'", id="partitions"),
        pytest.param(lambda drivers: drivers.attach("cloth", 1), "unknown pool 'cloth'", id="pool of the network"),
        pytest.param(lambda drivers: drivers.restart(GPU, "n"), "there is no pool 'n'", id="pool"),
        pytest.param(
            lambda drivers: drivers.taint(GPU, "node-00000", "gpu-7", []), "has no device 'gpu-7'", id="device"
        ),
    ],
)
def test_what_does_not_exist_is_named(call, problem):
    with pytest.raises(ValueError, match=problem):
        call(equipped(a100=1).cluster.drivers)


def test_devices_of_one_pool_are_published_together_whatever_their_order():
    (gpus, nics) = node_pools("n", [("a100", 1), ("nic", 1), ("a100", 1)])
    assert [one["name"] for one in gpus.devices] == ["gpu-0", "gpu-1"]
    assert (nics.driver, len(nics.devices)) == (NIC, 1)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("cpu=96,device:a100-mig=8,device:nic=8", (("a100-mig", 8), ("nic", 8)), id="two"),
        pytest.param("cpu=96", (), id="none"),
    ],
)
def test_the_devices_of_a_shape(text, expected):
    assert NodeShape.parse(text).devices == expected


@pytest.mark.parametrize("text", ["device:a100=many", "device:a100=-1", "device:a100="])
def test_a_count_that_is_no_number(text):
    with pytest.raises(ValueError, match=r"NAME=VALUE|DEVICES=COUNT"):
        NodeShape.parse(text)
