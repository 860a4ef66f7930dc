"""The writes of the controller to the API server. Each may be repeated."""

import asyncio
import contextlib
from collections.abc import Callable, Coroutine, Iterable, Mapping
from typing import Any, Protocol, TypeVar
from urllib.parse import quote

import msgspec

from poseidon_py.jobs import names
from poseidon_py.jobs.cache import Cache, CachedJob
from poseidon_py.jobs.manifests.owner import Json, Owner
from poseidon_py.jobs.metrics import JobMetrics
from poseidon_py.jobs.objects import JobObject, JobPod, PodGroup
from poseidon_py.jobs.rules.annotations import EVENT
from poseidon_py.jobs.rules.replicas import Replica, job_uid_of
from poseidon_py.kube.client import JSON, ApiError, ConflictError, NotFoundError, decode_answer
from poseidon_py.kube.objects import Metadata

T = TypeVar("T")


class NotLeadingError(Exception):
    """Another process leads, or is at work: nothing may be written."""


class TakenError(Exception):
    """An object of that name exists, and is not the job's."""


class JobApi(Protocol):
    """The part of kube.Kube that is used here."""

    async def call(
        self, verb: str, path: str, body: bytes = b"", content_type: str = JSON, timeout: float = 30.0
    ) -> bytes: ...
    async def create(self, path: str, body: Mapping[str, Any], timeout: float = 30.0) -> bytes: ...
    async def merge(self, path: str, patch: Mapping[str, Any]) -> bytes: ...


class Writer:
    """`leads` is asked before each write."""

    def __init__(
        self, api: JobApi, cache: Cache, metrics: JobMetrics, leads: Callable[[], bool], concurrency: int = 50
    ) -> None:
        self._api = api
        self._cache = cache
        self._metrics = metrics
        self._leads = leads
        self._slots = asyncio.Semaphore(concurrency)

    async def each(self, writes: Iterable[Coroutine[Any, Any, None]]) -> list[Exception]:
        """Runs writes concurrently; one that fails does not stop the others. Their errors."""

        async def one(write: Coroutine[Any, Any, None]) -> None:
            async with self._slots:
                await write

        results = await asyncio.gather(*(one(write) for write in writes), return_exceptions=True)
        found: list[Exception] = []
        for result in results:
            if isinstance(result, Exception):
                found.append(result)
            elif isinstance(result, BaseException):
                raise result
        return found

    def _check(self) -> None:
        if not self._leads():
            raise NotLeadingError

    # -- the job ----------------------------------------------------------------------------------------------

    async def status(self, job: CachedJob, status: Json) -> None:
        """Replaces the status, unless the job has changed. Raises KubeError; ConflictError if it has."""
        self._check()
        metadata = {"uid": job.owner.uid, "resourceVersion": job.version}
        self._cache.writes_status(job, status)
        patch = {"metadata": metadata, "status": merge_patch(job.status.raw, status)}
        answer = await self._api.merge(f"{job_path(job.owner)}/status", patch)
        self._cache.observe_job(decode_answer(answer, JobObject, "job"), own=True)

    async def delete_job(self, owner: Owner) -> None:
        self._check()
        await self._delete(job_path(owner), {"preconditions": {"uid": owner.uid}, "propagationPolicy": "Background"})

    async def remove_event(self, path: str, uid: str) -> None:
        """Removes the annotation of a custom event from a job or a pod."""
        self._check()
        with contextlib.suppress(NotFoundError, ConflictError):  # it is gone, or another one has its name
            await self._api.merge(path, {"metadata": {"uid": uid, "annotations": {EVENT: None}}})

    async def delete_command(self, namespace: str, name: str, uid: str) -> None:
        self._check()
        path = f"/apis/bus.volcano.sh/v1alpha1/namespaces/{quote(namespace, safe='')}/commands/{quote(name, safe='')}"
        await self._delete(path, {"preconditions": {"uid": uid}})
        self._cache.remove_command(uid)

    async def _delete(self, path: str, options: Json) -> bool:
        """Returns whether it was there."""
        body = msgspec.json.encode({"apiVersion": "v1", "kind": "DeleteOptions", **options})
        try:
            await self._api.call("DELETE", path, body)
        except NotFoundError:
            return False
        return True

    # -- pods -------------------------------------------------------------------------------------------------

    async def create_pod(self, job: CachedJob, body: Json) -> None:
        """Raises KubeError, or TakenError."""
        self._check()
        owner, name = job.owner, body["metadata"]["name"]
        try:
            answer = await self._api.create(_collection("/api/v1/namespaces/{}/pods", owner), body)
            self._metrics.pods.labels("created").inc()
        except ConflictError as error:
            if error.reason != "AlreadyExists":
                raise
            answer = await self._api.call("GET", pod_path(owner.namespace, name))
            found = decode_answer(answer, JobPod, f"pod {name}")
            if job_uid_of(found) != owner.uid:
                raise TakenError(
                    f"pod {name} exists and is not of this job; delete it, or rename the job or its task"
                ) from error
        except ApiError:
            self._metrics.pods.labels("refused").inc()
            raise
        self._cache.observe_pod(decode_answer(answer, JobPod, f"pod {name}"))

    async def mark_pod(self, replica: Replica, retry: int) -> None:
        """Marks a pod as one that a retry deletes."""
        self._check()
        patch = {"metadata": {"uid": replica.uid, "annotations": {names.OUT_OF_SYNC: str(retry)}}}
        try:
            answer = await self._api.merge(pod_path(replica.namespace, replica.name), patch)
        except (NotFoundError, ConflictError):  # it is gone, or another one has its name
            self._cache.deletion_accepted(replica, gone=True)
            return
        self._cache.observe_pod(decode_answer(answer, JobPod, f"pod {replica.name}"))

    async def delete_pod(self, replica: Replica) -> None:
        self._check()
        body = msgspec.json.encode({"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": {"uid": replica.uid}})
        self._cache.deletes(replica)  # its end may be reported before the answer
        try:
            await self._api.call("DELETE", pod_path(replica.namespace, replica.name), body)
        except (NotFoundError, ConflictError):  # it is gone, or another one has its name
            self._cache.deletion_accepted(replica, gone=True)
            return
        self._metrics.pods.labels("deleted").inc()
        self._cache.deletion_accepted(replica)

    # -- other objects ----------------------------------------------------------------------------------------

    async def create_once(self, collection: str, body: Json, owner: Owner) -> None:
        """Creates an object of the job, unless it is there; a ConfigMap gets its newest data. Raises KubeError, or
        TakenError."""
        self._check()
        path = _collection(collection, owner)
        try:
            await self._api.create(path, body)
            return
        except ConflictError as error:
            if error.reason != "AlreadyExists":
                raise
        name = body["metadata"]["name"]
        found: _Owned = decode_answer(await self._api.call("GET", f"{path}/{quote(name, safe='')}"), _Owned, name)
        if not any(each.uid == owner.uid for each in found.metadata.owners or ()):
            raise TakenError(f"{body['kind']} {name} exists and is not of this job; delete it, or rename the job")
        if "data" in body:
            await self._api.merge(f"{path}/{quote(name, safe='')}", {"data": body["data"]})

    async def write_group(self, job: CachedJob, body: Json, group: PodGroup | None) -> None:
        """Creates the PodGroup, or brings its specification up to date. `group`: it as it was observed."""
        path = _collection("/apis/scheduling.volcano.sh/v1beta1/namespaces/{}/podgroups", job.owner)
        if group is None:
            self._check()
            answer = await self._api.create(path, body)  # if it exists, the watch reports it
            self._cache.observe_group(decode_answer(answer, PodGroup, "pod group"))
            return
        expected, present = body["spec"], msgspec.json.decode(bytes(group.spec) or b"{}")
        different = {name: value for name, value in expected.items() if present.get(name) != value}
        if not different:
            return
        self._check()
        tasks = different.get("minTaskMember")
        if tasks is not None:  # a merge keeps what is not named
            different["minTaskMember"] = dict.fromkeys(present.get("minTaskMember") or ()) | tasks
        meta = group.metadata
        patch = {"metadata": {"uid": meta.uid}, "spec": different}
        answer = await self._api.merge(f"{path}/{quote(meta.name, safe='')}", patch)
        self._cache.observe_group(decode_answer(answer, PodGroup, "pod group"))

    async def delete_group(self, group: PodGroup) -> None:
        self._check()
        meta = group.metadata
        path = (
            f"/apis/scheduling.volcano.sh/v1beta1/namespaces/{quote(meta.namespace, safe='')}/podgroups/"
            f"{quote(meta.name, safe='')}"
        )
        await self._delete(path, {"preconditions": {"uid": meta.uid}})
        self._cache.remove_group(meta)


class _Owned(msgspec.Struct):
    metadata: Metadata


def merge_patch(old: Mapping[str, Any], new: Mapping[str, Any]) -> Json:
    """The JSON merge patch that makes `new` of `old`."""
    found: Json = {name: None for name in old if name not in new}
    for name, value in new.items():
        before = old.get(name)
        if isinstance(value, Mapping) and isinstance(before, Mapping):
            inner = merge_patch(before, value)
            if inner:
                found[name] = inner
        elif name not in old or value != before:
            found[name] = value
    return found


def job_path(owner: Owner) -> str:
    namespace, name = quote(owner.namespace, safe=""), quote(owner.name, safe="")
    return f"/apis/batch.volcano.sh/v1alpha1/namespaces/{namespace}/jobs/{name}"


def pod_path(namespace: str, name: str) -> str:
    return f"/api/v1/namespaces/{quote(namespace, safe='')}/pods/{quote(name, safe='')}"


def _collection(path: str, owner: Owner) -> str:
    return path.format(quote(owner.namespace, safe=""))
