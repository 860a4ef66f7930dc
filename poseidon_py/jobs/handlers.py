"""Passes the reports of the watches to the cache, without invalid objects."""

import logging
from collections.abc import Callable
from typing import Any, Generic, TypeVar

from poseidon_py.jobs.cache import Cache
from poseidon_py.jobs.objects import Command, JobObject, JobPod, PodGroup
from poseidon_py.kube.objects import InvalidField, Metadata

log = logging.getLogger(__name__)

T = TypeVar("T")


class CacheHandler(Generic[T]):
    """Of one kind."""

    def __init__(
        self,
        observe: Callable[[T], None],
        remove: Callable[[Metadata], None],
        listed: Callable[[set[str]], None],
    ) -> None:
        self._observe = observe
        self._remove = remove
        self._listed = listed

    def observe(self, item: T) -> None:
        try:
            self._observe(item)
        except InvalidField as error:
            metadata: Metadata = item.metadata  # type: ignore[attr-defined]
            self.invalid(metadata, str(error))

    def removed(self, item: Any) -> None:
        self._remove(item.metadata)

    def listed(self, uids: set[str]) -> None:
        self._listed(uids)

    def invalid(self, metadata: Metadata, problem: str) -> None:
        log.warning("ignoring %s/%s: %s", metadata.namespace, metadata.name, problem)


def handlers(
    cache: Cache,
) -> tuple[CacheHandler[JobObject], CacheHandler[JobPod], CacheHandler[PodGroup], CacheHandler[Command]]:
    """For the kinds of objects.kinds, in their order."""
    return (
        CacheHandler(cache.observe_job, cache.remove_job, cache.jobs_listed),
        CacheHandler(cache.observe_pod, lambda meta: cache.remove_pod(meta.uid), cache.pods_listed),
        CacheHandler(cache.observe_group, cache.remove_group, cache.groups_listed),
        CacheHandler(cache.observe_command, lambda meta: cache.remove_command(meta.uid), cache.commands_listed),
    )
