"""What is known of one event before it is sent."""

from poseidon_py.report.messages import note
from poseidon_py.state.records import PodRecord


class Report:
    """One event, and a condition with it."""

    __slots__ = (
        "action",
        "at",
        "attempts",
        "condition",
        "key",
        "kind",
        "lasting",
        "message",
        "name",
        "namespace",
        "reason",
        "related",
        "uid",
        "warning",
    )

    def __init__(
        self, namespace: str, name: str, uid: str, reason: str, message: str, *, warning: bool, condition: str = ""
    ) -> None:
        self.namespace = namespace
        self.name = name
        self.uid = uid
        self.reason = reason
        self.message = note(message)
        self.warning = warning
        self.condition = condition
        """Reason of the condition PodScheduled=False to set; empty: none."""
        self.action = "Scheduling" if warning else "Binding"
        self.related: PodRecord | None = None
        """Another pod that it is about."""
        self.key = uid
        """Reports with the same key coalesce."""
        self.kind = ("v1", "Pod")
        """API version and kind of the object."""
        self.lasting = False
        """Whether it is sent even if the pod is no longer pending."""
        self.attempts = 0
        self.at = 0.0
        """When it happened, in seconds since the epoch."""


def reference(namespace: str, name: str, uid: str, api_version: str = "v1", kind: str = "Pod") -> dict[str, str]:
    place = {"namespace": namespace} if namespace else {}
    return {"apiVersion": api_version, "kind": kind, **place, "name": name, "uid": uid}
