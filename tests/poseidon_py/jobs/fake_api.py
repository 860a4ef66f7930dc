"""An API server of dictionaries for the controller of jobs: names, versions, preconditions, merges; and refusals on
demand. `feed` passes all that has changed to a cache, as watches would."""

import copy
import json
from typing import Any

import msgspec

from poseidon_py.jobs.cache import Cache
from poseidon_py.jobs.handlers import handlers
from poseidon_py.jobs.objects import Command, JobObject, JobPod, PodGroup
from poseidon_py.kube.client import ApiError, ConflictError, KubeError, LostAnswerError, NotFoundError

_KINDS = {"jobs": JobObject, "pods": JobPod, "podgroups": PodGroup, "commands": Command}


class FakeApi:
    """The requests of writer.JobApi and rivals.RivalApi."""

    def __init__(self) -> None:
        self.objects: dict[str, dict[str, Any]] = {}
        """Path -> object."""
        self.version = 0
        self.uids = 0
        self.requests: list[tuple[str, str]] = []
        self.refusals: list[tuple[str, str, KubeError]] = []
        """Verb, part of a path, and the error of all such requests."""
        self.lose: list[str] = []
        """Verbs whose next answer is lost: it is done, and an error."""
        self.pages: dict[str, list[dict[str, Any]]] = {}
        self._changes: list[tuple[str, str, dict[str, Any]]] = []

    # -- requests ---------------------------------------------------------------------------------------------

    async def create(self, path: str, body: Any, timeout: float = 30.0) -> bytes:
        path = f"{path}/{body['metadata']['name']}"
        self._requested("POST", path)
        if path in self.objects:
            raise ConflictError(409, "AlreadyExists", f"{path} already exists")
        self.uids += 1
        body = json.loads(msgspec.json.encode(body))
        body["metadata"] |= {"uid": f"u{self.uids}", "creationTimestamp": "2026-01-01T00:00:00Z"}
        return self._store("POST", path, body)

    async def merge(self, path: str, patch: Any) -> bytes:
        self._requested("PATCH", path)
        path = path.removesuffix("/status")
        found = copy.deepcopy(self._get(path))
        patch = json.loads(msgspec.json.encode(patch))
        self._check(found, patch.get("metadata", {}))
        patch["metadata"] = {"annotations": patch.get("metadata", {}).get("annotations", {})}
        return self._store("PATCH", path, _merged(found, patch))

    async def call(self, verb: str, path: str, body: bytes = b"", content_type: str = "", timeout: float = 0) -> bytes:
        self._requested(verb, path)
        found = self._get(path)
        if verb == "GET":
            return msgspec.json.encode(found)
        assert verb == "DELETE"
        self._check(found, json.loads(body).get("preconditions", {}))
        self.remove(path)
        self._lose(verb)
        return b"{}"

    async def page(self, path: str, parameters: Any) -> bytes:
        self._requested("GET", path)
        return msgspec.json.encode({"metadata": {}, "items": self.pages.get(path, [])})

    def watch(self, path: str, parameters: Any, silence: float) -> Any:
        raise AssertionError("not used here")

    # -- what tests do ----------------------------------------------------------------------------------------

    def put(self, path: str, body: dict[str, Any]) -> None:
        """Changes an object, or creates it, as somebody else does."""
        known = self.objects.get(path)
        self.uids += 1
        uid = known["metadata"]["uid"] if known else f"u{self.uids}"
        body = copy.deepcopy(body)
        body["metadata"] = (
            {"namespace": "ns", "creationTimestamp": "2026-01-01T00:00:00Z"} | body["metadata"] | {"uid": uid}
        )
        self._store("PUT", path, body)

    def remove(self, path: str) -> None:
        self.version += 1
        self._changes.append(("removed", path, self.objects.pop(path)))

    def feed(self, cache: Cache) -> None:
        """Reports all changes since the last time, in their order."""
        sinks = dict(zip(("jobs", "pods", "podgroups", "commands"), handlers(cache), strict=True))
        changes, self._changes = self._changes, []
        for what, path, body in changes:
            resource = path.split("/")[-2]
            if resource in _KINDS:
                item: Any = msgspec.json.decode(json.dumps(body), type=_KINDS[resource])
                getattr(sinks[resource], what)(item)

    def names(self, resource: str) -> list[str]:
        return sorted(path.rpartition("/")[2] for path in self.objects if path.split("/")[-2] == resource)

    # -- inside -----------------------------------------------------------------------------------------------

    def _requested(self, verb: str, path: str) -> None:
        self.requests.append((verb, path))
        for refused, part, error in self.refusals:
            if refused == verb and part in path:
                raise error

    def _get(self, path: str) -> dict[str, Any]:
        if path not in self.objects:
            raise NotFoundError(404, "NotFound", f"{path} not found")
        return self.objects[path]

    def _check(self, found: dict[str, Any], demanded: dict[str, Any]) -> None:
        for name in ("uid", "resourceVersion"):
            if demanded.get(name) not in (None, found["metadata"][name]):
                raise ConflictError(409, "Conflict", f"{name} is {found['metadata'][name]}")

    def _store(self, verb: str, path: str, body: dict[str, Any]) -> bytes:
        self.version += 1
        body["metadata"]["resourceVersion"] = str(self.version)
        self.objects[path] = body
        self._changes.append(("observe", path, copy.deepcopy(body)))
        self._lose(verb)
        return msgspec.json.encode(body)

    def _lose(self, verb: str) -> None:
        if verb in self.lose:
            self.lose.remove(verb)
            raise LostAnswerError("the answer was lost")


FORBIDDEN = ApiError(403, "Forbidden", "exceeded quota: pods=2")


def _merged(found: Any, patch: Any) -> Any:
    if not isinstance(patch, dict):
        return patch
    result = dict(found) if isinstance(found, dict) else {}
    for name, value in patch.items():
        if value is None:
            result.pop(name, None)
        else:
            result[name] = _merged(result.get(name), value)
    return result
