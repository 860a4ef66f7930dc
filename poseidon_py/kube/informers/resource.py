"""The name of a resource, and the paths of its objects."""

from typing import NamedTuple
from urllib.parse import quote


class Resource(NamedTuple):
    """A kind of object that is read from the API server.

    `versions`: the supported ones, in order of preference. What is served in other versions alone is not decoded: its
    fields may mean something else there. Empty: any, because only the metadata is read.
    """

    group: str
    plural: str
    versions: tuple[str, ...]
    namespaced: bool = True

    @property
    def label(self) -> str:
        """plural.group, as in `kubectl get`."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    def collection(self, version: str, namespace: str = "") -> str:
        """The path of all objects, or of those in a namespace."""
        root = f"/apis/{self.group}/{version}" if self.group else f"/api/{version}"
        return f"{root}/namespaces/{namespace}/{self.plural}" if namespace else f"{root}/{self.plural}"


def path_of(collection: str, namespace: str, name: str) -> str:
    """The path of an object. `collection`: that of all objects of its resource; `namespace`: empty for objects of the
    cluster."""
    if not namespace:
        return f"{collection}/{quote(name, safe='')}"
    root, _, plural = collection.rpartition("/")
    return f"{root}/namespaces/{quote(namespace, safe='')}/{plural}/{quote(name, safe='')}"
