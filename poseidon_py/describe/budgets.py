"""PodDisruptionBudgets as messages of the contract. Pure."""

from poseidon_py.describe.selectors import label_requirements
from poseidon_py.kube.budget_objects import DisruptionBudget
from poseidon_py.util.ids import hash64
from protos.gen import flow_pb2


def budget_id(item: DisruptionBudget) -> int:
    """A budget that is deleted and created again is another one."""
    metadata = item.metadata
    return hash64(f"{metadata.namespace}/{metadata.name}/{metadata.uid}")


def describe_budget(item: DisruptionBudget) -> flow_pb2.Budget:
    """The budget. As for kube-scheduler, an absent and an empty selector match no pod. Raises InvalidField."""
    metadata, selector = item.metadata, item.spec.selector
    message = flow_pb2.Budget(
        id=budget_id(item), allowed=max(item.status.allowed or 0, 0), name=f"{metadata.namespace}/{metadata.name}"
    )
    message.selector.namespaces.append(metadata.namespace)
    if selector is not None:
        message.selector.labels.extend(label_requirements(selector, "spec.selector"))
    message.selector.no_task = not message.selector.labels
    return message
