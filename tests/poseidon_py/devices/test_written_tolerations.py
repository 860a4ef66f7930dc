"""What is tolerated for a time only is written so: the controller that evicts reads it in the allocation."""

from poseidon_py.devices.allocator import Grant
from poseidon_py.devices.objects import (
    ClaimDevices,
    DeviceClaimMetadata,
    DeviceClaimSpec,
    DeviceRequest,
    ExactRequest,
    RequestToleration,
    ResourceClaim,
)
from poseidon_py.devices.results import allocation
from tests.poseidon_py.devices.offers import device, node_with, option


def test_the_seconds_of_a_toleration_are_kept():
    toleration = RequestToleration("broken", "Exists", None, "NoExecute", 30)
    asked = DeviceRequest(name="r", exactly=ExactRequest("gpu", tolerations=[toleration]))
    claim = ResourceClaim(DeviceClaimMetadata(name="c"), DeviceClaimSpec(ClaimDevices([asked])))
    (gpu,) = node_with(device("d0")).devices
    written = allocation(claim, [Grant(option(label="r"), gpu, None)], "n", {}, (), "2026-01-01T00:00:00Z")
    (result,) = written["devices"]["results"]
    assert result["tolerations"] == [
        {"key": "broken", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 30}
    ]
