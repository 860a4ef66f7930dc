"""Kubelet features that a pod needs, and that nodes declare in status.declaredFeatures. Pure.

In the contract a declared feature is a node label, with a key that is not valid for labels of Kubernetes.
"""

from poseidon_py.kube.object_details import RestartRules
from poseidon_py.kube.objects import NOTHING, Node, Pod, decode
from protos.gen import firmament_pb2

_RESTART_ALL = "RestartAllContainersOnContainerExits"
_OWN_USERS_ON_HOST_NETWORK = "UserNamespacesHostNetworkSupport"


def needed(pod: Pod) -> list[str]:
    """The features without which a node cannot run the pod. Raises InvalidField."""
    spec = pod.spec
    found = []
    for path, containers in (("spec.containers", spec.containers), ("spec.initContainers", spec.init_containers)):
        for container in containers or ():
            if container.restart_rules is not NOTHING and _RESTART_ALL not in found:
                rules = decode(container.restart_rules, RestartRules, f"{path}.restartPolicyRules") or ()
                if any(rule.action == "RestartAllContainers" for rule in rules):
                    found.append(_RESTART_ALL)
    if spec.host_network and spec.host_users is False:
        found.append(_OWN_USERS_ON_HOST_NETWORK)
    return found


def demand(features: list[str]) -> firmament_pb2.NodeSelector:
    """The requirement that a node declares all of these features."""
    declared = [firmament_pb2.NodeSelectorRequirement(key=label(each), operator="Exists") for each in features]
    return firmament_pb2.NodeSelector(nodeSelectorTerms=[firmament_pb2.NodeSelectorTerm(matchExpressions=declared)])


def labels(node: Node) -> dict[str, str]:
    """The declared features of a node, as labels. Raises InvalidField."""
    given = decode(node.status.declared, list[str], "status.declaredFeatures") or ()
    return {label(each): "" for each in given}


def label(feature: str) -> str:
    return f"declared-feature:{feature}"
