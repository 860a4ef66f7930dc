"""Label profiles: pods with equal labels in one namespace share one.

A pod without labels has a profile, too: a selector may match every pod of a namespace.
"""

import msgspec

from poseidon_py.describe.vocabulary import Vocabulary
from poseidon_py.kube.objects import InvalidField, Pod, labels_of
from poseidon_py.util.ids import hash64
from protos.gen import flow_pb2


class Profiles(Vocabulary[tuple[str, bytes], flow_pb2.Profile]):
    """All label profiles in use."""

    def of(self, pod: Pod) -> int:
        """The id of the pod's profile; invalid labels count as none."""
        return self.id_of((pod.metadata.namespace, bytes(pod.metadata.labels)), lambda: describe_profile(pod))


def describe_profile(pod: Pod) -> flow_pb2.Profile:
    """The message about the labels of a pod in its namespace."""
    namespace = pod.metadata.namespace
    try:
        labels = labels_of(pod.metadata)
    except InvalidField:
        labels = {}
    ident = hash64(msgspec.json.encode([namespace, sorted(labels.items())]))
    return flow_pb2.Profile(id=ident, namespace=namespace, labels=labels)
