"""The name of a resource, and the paths of its objects."""

from typing import NamedTuple
from urllib.parse import quote


class Resource(NamedTuple):
    """A kind of object that is read from the API server.

    `versions`: the supported ones, in order of preference; if the server has none of them, its own preferred version
    is used.
    """

    group: str
    plural: str
    versions: tuple[str, ...]
    namespaced: bool = True

    @property
    def label(self) -> str:
        """plural.group, as in `kubectl get`."""
        return f"{self.plural}.{self.group}" if self.group else self.plural


def path_of(collection: str, namespace: str, name: str) -> str:
    """The path of an object. `collection`: that of all objects of its resource; `namespace`: empty for objects of the
    cluster."""
    if not namespace:
        return f"{collection}/{quote(name, safe='')}"
    root, _, plural = collection.rpartition("/")
    return f"{root}/namespaces/{quote(namespace, safe='')}/{plural}/{quote(name, safe='')}"
