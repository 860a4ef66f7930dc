"""The labels of pods, as profiles: pods with equal labels in one namespace share one.

A pod without labels has a profile too: a selector may ask for every pod of a namespace.
"""

import msgspec

from poseidon_py.kube.objects import InvalidField, Labels, Pod, decode
from poseidon_py.util.ids import hash64
from protos.gen import flow_pb2


class Profiles:
    """Owns the descriptions, and the way from a pod to its profile."""

    def __init__(self) -> None:
        self._by_bytes: dict[tuple[str, bytes], int] = {}
        self._described: dict[int, flow_pb2.Profile] = {}

    def __len__(self) -> int:
        return len(self._described)

    def of(self, pod: Pod) -> int:
        """The id of the pod's profile; labels that make no sense count as none."""
        key = (pod.metadata.namespace, bytes(pod.metadata.labels))
        found = self._by_bytes.get(key)
        if found is None:
            found = self._by_bytes[key] = self._describe(pod)
        return found

    def _describe(self, pod: Pod) -> int:
        try:
            labels = decode(pod.metadata.labels, Labels, "metadata.labels") or {}
        except InvalidField:
            labels = {}
        content = msgspec.json.encode([pod.metadata.namespace, sorted(labels.items())])
        profile = hash64(content)
        self._described[profile] = flow_pb2.Profile(id=profile, namespace=pod.metadata.namespace, labels=labels)
        return profile

    def get(self, profile: int) -> flow_pb2.Profile | None:
        return self._described.get(profile)

    def keep(self, in_use: set[int]) -> None:
        """Forgets all other profiles."""
        self._described = {i: message for i, message in self._described.items() if i in in_use}
        self._by_bytes = {key: i for key, i in self._by_bytes.items() if i in in_use}
