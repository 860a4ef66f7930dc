"""Passes reports of the watches of other kinds than pods and nodes, without invalid objects."""

import logging
from collections.abc import Callable
from typing import Any, Generic, TypeVar

from poseidon_py.kube.objects import InvalidField, Metadata
from poseidon_py.metrics.metrics import ProcessMetrics

log = logging.getLogger(__name__)

T = TypeVar("T")


class ObjectHandler(Generic[T]):
    """Keeps objects of another kind up to date: `put` takes existing objects, `drop` the keys of deleted ones.

    `key`: the key of an object, from its metadata. `put` may raise InvalidField. `counted_as`: the kind of invalid
    objects in metrics; empty: `name`.
    """

    def __init__(
        self,
        name: str,
        key: Callable[[Metadata], Any],
        put: Callable[[T], None],
        drop: Callable[[Any], None],
        metrics: ProcessMetrics,
        counted_as: str = "",
    ) -> None:
        self._name = name
        self._key = key
        self._put = put
        self._drop = drop
        self._metrics = metrics
        self._counted_as = counted_as or name
        self._uid: dict[Any, str] = {}
        self._warned: set[str] = set()
        """UIDs of invalid objects."""

    def observe(self, item: T) -> None:
        metadata: Metadata = item.metadata  # type: ignore[attr-defined]
        self._uid[self._key(metadata)] = metadata.uid
        try:
            self._put(item)
        except InvalidField as problem:
            self.invalid(metadata, str(problem))
        else:
            self._warned.discard(metadata.uid)

    def removed(self, item: T) -> None:
        metadata: Metadata = item.metadata  # type: ignore[attr-defined]
        key = self._key(metadata)
        self._warned.discard(metadata.uid)
        if self._uid.get(key) == metadata.uid:
            del self._uid[key]
            self._drop(key)

    def listed(self, uids: set[str]) -> None:
        for key in [key for key, uid in self._uid.items() if uid not in uids]:
            del self._uid[key]
            self._drop(key)
        self._warned &= uids

    def clear(self) -> None:
        """The kind is not served any more."""
        self.listed(set())

    def invalid(self, metadata: Metadata, problem: str) -> None:
        if metadata.uid not in self._warned:
            name = f"{metadata.namespace}/{metadata.name}" if metadata.namespace else metadata.name
            log.warning("skipping %s %s: %s", self._name, name, problem)
            self._metrics.invalid.labels(self._counted_as).inc()
        self._warned.add(metadata.uid)


def by_name(metadata: Metadata) -> str:
    return metadata.name


def by_namespace(metadata: Metadata) -> tuple[str, str]:
    return metadata.namespace, metadata.name
