"""Builders of Kueue's objects."""

from tests.poseidon_py.state.queues.rig import Rig

LABEL = "kueue.x-k8s.io/queue-name"


def group(*flavors, covered=("cpu", "memory")):
    return {"coveredResources": list(covered), "flavors": list(flavors)}


def flavor(name, **quotas):
    return {"name": name, "resources": [{"name": key, **value} for key, value in quotas.items()]}


def cluster_queue(rig, name, *groups, **fields):
    rig.put("ClusterQueue", name, {"resourceGroups": list(groups), "namespaceSelector": {}, **fields})


def kueue_rig():
    """A rig whose queues are Kueue's, with one flavor."""
    rig = Rig("kueue")
    rig.put("ResourceFlavor", "on-demand", {"nodeLabels": {"tier": "on-demand"}})
    return rig


def simple(rig, name="team-a", **fields):
    cluster_queue(rig, name, group(flavor("on-demand", cpu={"nominalQuota": "9"}), covered=["cpu"]), **fields)
