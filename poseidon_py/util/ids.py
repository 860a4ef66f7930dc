"""Ids in the engine: of tasks (pods), resources (nodes) and jobs (controllers).

Ids depend only on what the API server stores, so that they are the same after any restart.
"""

import logging
import uuid
from functools import lru_cache

import xxhash

from poseidon_py.metrics.metrics import Metrics

log = logging.getLogger(__name__)

_NODES = uuid.UUID("6d9d4b3c-62a1-5c0e-9b1f-0f7f6c0a8e55")


def hash64(content: str | bytes, seed: int = 0) -> int:
    """A 64-bit hash; never 0, which means "none" in the contract."""
    data = content.encode() if isinstance(content, str) else content
    return xxhash.xxh3_64_intdigest(data, seed=seed) or 1


@lru_cache(maxsize=65536)
def node_id(name: str, uid: str) -> str:
    """The UUID of a node. A node that is deleted and created again gets another one."""
    return str(uuid.uuid5(_NODES, f"{name}/{uid}"))


@lru_cache(maxsize=65536)
def job_id(owner_uid: str) -> int:
    """The job of all pods with this controlling owner."""
    return hash64(owner_uid)


class TaskIds:
    """Task ids of the known pods. Of two UIDs with the same hash, the later one gets another id."""

    def __init__(self, metrics: Metrics | None = None) -> None:
        self._metrics = metrics if metrics is not None else Metrics()
        self._uid: dict[int, str] = {}

    def add(self, uid: str) -> int:
        """Assign an id to a pod."""
        seed = 0
        while self._uid.get(task := hash64(uid, seed), uid) != uid:
            log.warning("pods %s and %s have the same task id %016x, taking another", uid, self._uid[task], task)
            self._metrics.collisions.inc()
            seed += 1
        self._uid[task] = uid
        return task

    def remove(self, task: int) -> None:
        self._uid.pop(task, None)

    def uid(self, task: int) -> str | None:
        """The UID of the pod of a task; None if the task is unknown."""
        return self._uid.get(task)
