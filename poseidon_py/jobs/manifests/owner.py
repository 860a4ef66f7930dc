"""The job that objects are created for."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from poseidon_py.jobs import names

Json = dict[str, Any]


@dataclass(frozen=True)
class Owner:
    """A job's identity and metadata."""

    namespace: str
    name: str
    uid: str
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)

    @property
    def user(self) -> str:
        """Its user: the annotation or else the label poseidon.io/user; empty: none is given."""
        return self.annotations.get(names.USER, "") or self.labels.get(names.USER, "")

    def metadata(self, name: str) -> Json:
        """The metadata of an object that the job controls, and that is deleted with it."""
        reference = {
            "apiVersion": names.API_VERSION,
            "kind": names.KIND,
            "name": self.name,
            "uid": self.uid,
            "controller": True,
            "blockOwnerDeletion": True,
        }
        return {"name": name, "namespace": self.namespace, "ownerReferences": [reference]}

    def reference(self) -> Json:
        """For events about the job."""
        return {
            "apiVersion": names.API_VERSION,
            "kind": names.KIND,
            "namespace": self.namespace,
            "name": self.name,
            "uid": self.uid,
        }
