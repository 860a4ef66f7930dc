"""Pods with a controller that the test plays: a real API server has none here."""

from __future__ import annotations

import itertools
import threading
from math import ceil
from types import TracebackType
from typing import Any

from tests.e2e.api import Json
from tests.e2e.backends import Backend
from tests.e2e.objects import pod


class Owner:
    """A context in which each of its pods that is deleted gets a successor. Its pods may be moved."""

    def __init__(self, backend: Backend, name: str, *, stop_seconds: float = 0.0) -> None:
        """`stop_seconds`: how long the synthetic cluster's kubelets take to end one of its pods."""
        self._backend = backend
        self._stop_seconds = stop_seconds
        self._name = name
        (owner,) = backend.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}})
        self._reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": name, "uid": owner["metadata"]["uid"]}
        self._numbers = itertools.count()
        self._ends = threading.Event()
        self._thread = threading.Thread(target=self._recreate, name=f"controller {name}", daemon=True)
        self.came_from: dict[str, str] = {}
        """Name of a successor -> name of the node that its predecessor was on."""
        self.left: list[str] = []
        """Names of the pods that were deleted."""

    def create(self, node: str = "", **spec: Any) -> str:
        """Creates a pod with the label `app`, on a node if one is given; returns its name."""
        name = f"{self._name}-{next(self._numbers)}"
        about = {
            "annotations": {
                "poseidon.io/movable": "true",
                "cluster.poseidon.io/stop-seconds": str(self._stop_seconds),
            },
            "labels": {"app": self._name},
            "ownerReferences": [{**self._reference, "controller": True}],
        }
        spec |= {"restartPolicy": "Never", "terminationGracePeriodSeconds": ceil(self._stop_seconds)}
        if node:
            spec["nodeName"] = node
        self._backend.create(pod(name, metadata=about, **spec))
        return name

    def _recreate(self) -> None:
        pods, at = self._backend.pods, 0
        while not self._ends.wait(0.02):
            history = pods.history[at:]
            at += len(history)
            for what, item in history:
                if what == "DELETED" and self._is_ours(item) and not self._ends.is_set():
                    self.left.append(item["metadata"]["name"])
                    requests = item["spec"]["containers"][0]["resources"]["requests"]
                    self.came_from[self.create(**requests)] = item["spec"].get("nodeName", "")

    def _is_ours(self, item: Json) -> bool:
        owners = item["metadata"].get("ownerReferences", ())
        return any(owner["uid"] == self._reference["uid"] for owner in owners)

    def __enter__(self) -> Owner:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ends.set()
        self._thread.join()
