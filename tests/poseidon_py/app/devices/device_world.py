"""A cluster whose nodes have devices, and pods that ask for them."""

from benchmarks.cluster.store.device_kinds import RESOURCE_CLAIMS
from benchmarks.cluster.store.kinds import NODES
from tests.benchmarks.cluster.device_builders import device, device_class, resource_slice
from tests.poseidon_py.gang_world import World
from tests.poseidon_py.world import template


class DeviceWorld(World):
    """After `gpus`, nodes have so many devices each, of the class gpu."""

    @property
    def claims(self):
        return {each["metadata"]["name"]: each for each in self.cluster.objects(RESOURCE_CLAIMS)}

    def names(self):
        return sorted(node["metadata"]["name"] for node in self.cluster.objects(NODES))

    def gpus(self, *counts, served="", **attributes):
        """`served`: the extended resource that their class names."""
        self.create(device_class("gpu", **({"extendedResourceName": served} if served else {})))
        for node, count in zip(self.names(), counts, strict=False):
            devices = [device(f"gpu-{at}", attributes={k: v[at] for k, v in attributes.items()}) for at in range(count)]
            self.create(resource_slice(f"slice-{node}", *devices, pool=node, node=node))

    def pod(self, name, *, claim_name="", of="", labels=None, **fields):
        source = {"resourceClaimName": claim_name} if claim_name else {"resourceClaimTemplateName": of}
        given = template(resourceClaims=[{"name": "d", **source}], **fields)
        given["spec"]["containers"][0]["resources"]["claims"] = [{"name": "d"}]
        metadata = {"name": name, "namespace": "default", "labels": labels or {}}
        self.create({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, **given})

    def extended(self, name, resource, amount=1, labels=None):
        """A pod with an extended resource."""
        found = template()
        amounts = {resource: str(amount)}
        found["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "100m"} | amounts, "limits": amounts}
        metadata = {"name": name, "namespace": "default", "labels": labels or {}}
        self.create({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, **found})

    def devices(self):
        """Pod -> the devices of its claims."""
        found: dict[str, list[str]] = {}
        for each in self.claims.values():
            status = each.get("status", {})
            results = status.get("allocation", {}).get("devices", {}).get("results", [])
            for user in status.get("reservedFor", []):
                found.setdefault(user["name"], []).extend(f"{r['pool']}/{r['device']}" for r in results)
        return found

    def check(self):
        super().check()
        given = [each for devices in self.devices().values() for each in devices]
        assert len(given) == len(set(given))
        for name, devices in self.devices().items():
            if name in self.pods and (node := self.pods[name]["spec"].get("nodeName")):
                assert all(each.startswith(f"{node}/") for each in devices)
