"""A live API server, synthetic or not: filling it, recording when pods are bound, and removing what was created.

The synthetic cluster records the time of each bind in its audit. Any other server is watched, from before the first
creation until the last bind. In both cases only pods created here count: the audit has every bind since the server
started, and a scheduler may also have pods of other users.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import suppress
from urllib.parse import quote

import orjson

from benchmarks.cluster import NodeShape
from benchmarks.cluster.nodes.registration import node_object
from benchmarks.cluster.store.quantities import show
from benchmarks.demo.progress import Progress
from benchmarks.demo.workload import UNIFORM, open_capacity, pod_sorts
from benchmarks.harness.runner import CannotMeasureError
from benchmarks.loads.workloads import GANG, demands
from poseidon_py.kube.client import MERGE_PATCH, ApiError, Kube, LostAnswerError

NAMESPACE = "default"
LABEL = "poseidon-bench"
_AT_ONCE = 64
_SORTS = 10
_FILLS = 0.25
"""Share of the cluster that the pods fill: they are created three times, twice for the blind binder."""
_PODS_A_NODE = 4
"""Pods are sized so that at least this number of them fills the intended share of the cluster."""
_PATH = f"/api/v1/namespaces/{NAMESPACE}/pods"
_POLL_SECONDS = 0.05
_REMOVALS = 20


class Pods:
    """Pods of one scheduler on one server, and when each was created and bound (Unix seconds)."""

    def __init__(
        self, kube: Kube, scheduler: str, nodes: int, pods: int, seed: int, has_audit: bool, workload: str = "basic"
    ) -> None:
        self._kube = kube
        self.scheduler = scheduler
        self._has_audit = has_audit
        self._workload = workload
        # a few pods on many nodes are not enlarged: each has to fit on a node
        sorts = pod_sorts(_SORTS, max(pods, _PODS_A_NODE * nodes), _FILLS, open_capacity(UNIFORM, nodes), seed)
        self._specs = [
            {
                "schedulerName": scheduler,
                "containers": [
                    {
                        "name": "main",
                        "image": "example.com/app:1",
                        "resources": {"requests": {name: show(name, n) for name, n in sort.requests.items()}},
                    }
                ],
            }
            for sort in sorts
        ]
        self.created: dict[str, float] = {}
        """UID -> time of the request to create it."""
        self.answered: dict[str, float] = {}
        """UID -> time of the answer to that request."""
        self._progress = Progress(kube, scheduler)
        self._watching: asyncio.Task[None] | None = None
        self._others = 0
        """Number of counted binds of other pods."""

    async def begin(self) -> None:
        """Starts counting binds. Call it before the first pod is created and before the time starts."""
        if not self._has_audit and self._watching is None:
            self._watching = asyncio.create_task(self._progress.run())
        self._others = await self._counted()

    async def create(
        self, count: int, per_second: float | None = None, others: Sequence[Callable[[], Awaitable[None]]] = ()
    ) -> None:
        """Creates pods as fast as the server accepts them, and what `others` create evenly among them; or pods alone at
        a given rate."""
        assert per_second is None or not others
        began = time.monotonic()

        async def one(number: int) -> None:
            name = f"{self.scheduler}-{len(self.created):05d}-{number:05d}"
            sort = number // GANG % _SORTS
            labels, fields = demands(self._workload, f"{self.scheduler}-{sort}", number)
            metadata = {"name": name, "labels": {LABEL: "true", **labels}}
            body = {"metadata": metadata, "spec": {**self._specs[sort], **fields}}
            asked = time.time()
            answer = orjson.loads(await self._kube.call("POST", _PATH, orjson.dumps(body)))
            uid = answer["metadata"]["uid"]
            self.created[uid], self.answered[uid] = asked, time.time()

        if per_second is None:
            first = sorted([(i / count, i) for i in range(count)] + [(i / len(others), ~i) for i in range(len(others))])
            await in_parallel(lambda i: one(i) if i >= 0 else others[~i](), [i for _, i in first])
            return
        tasks = []
        for number in range(count):
            await asyncio.sleep(max(0.0, began + number / per_second - time.monotonic()))
            tasks.append(asyncio.create_task(one(number)))
        await asyncio.gather(*tasks)

    async def wait_for(self, count: int, patience: float, watch: Callable[[], None] = lambda: None) -> dict[str, float]:
        """The times of bind_times(), as soon as `count` of these pods are bound.

        Raises CannotMeasureError after `patience` seconds without a bind. Counting is cheap but includes binds of other
        pods: UIDs are compared only once the count suffices, and binds of other pods are then subtracted. `watch` is
        called at each poll, before a comparison.
        """
        last, since = -1, time.monotonic()
        while True:
            now = await self._counted() - self._others
            watch()
            if now >= count:
                times = await self.bind_times()
                if len(times) >= count:
                    return times
                self._others += max(now - len(times), 0)
                now = len(times)
            if now != last:
                last, since = now, time.monotonic()
            elif time.monotonic() - since > patience:
                raise CannotMeasureError(f"only {now} of {count} pods were bound, and no more within {patience:.0f} s")
            await asyncio.sleep(_POLL_SECONDS)

    async def bind_times(self) -> dict[str, float]:
        """UID -> time of the bind, for the pods created here."""
        if self._has_audit:
            entries = orjson.loads(await self._kube.page("/_audit", {}))["entries"]
            return {e["uid"]: e["time"] for e in entries if e["what"] == "bind" and e["uid"] in self.created}
        ahead = time.time() - time.monotonic()
        return {
            uid: pod.bound_at + ahead
            for uid, pod in self._progress.pods.items()
            if pod.bound_at is not None and uid in self.created
        }

    async def _counted(self) -> int:
        """Number of binds so far: of the whole server since its start, or of all watched pods of the scheduler."""
        if not self._has_audit:
            return self._progress.bound
        stats = orjson.loads(await self._kube.call("GET", "/_stats"))
        count: int = stats["audit"].get("bind", 0)
        return count

    async def close(self) -> None:
        """Stops watching."""
        if self._watching is not None:
            self._watching.cancel()
            with suppress(asyncio.CancelledError):
                await self._watching


async def has_audit(kube: Kube) -> bool:
    """Whether this is the synthetic cluster."""
    try:
        await kube.call("GET", "/_stats")
    except ApiError:
        return False
    return True


async def add_nodes(kube: Kube, count: int, shape: NodeShape = UNIFORM[0]) -> None:
    """Creates ready nodes on a server without kubelets. Nodes that an earlier run left are reused."""

    async def one(number: int) -> None:
        name = f"{LABEL}-{number:05d}"
        node = {"apiVersion": "v1", "kind": "Node", **node_object(name, number, shape, f"zone-{number % 3}", "")}
        node["metadata"]["labels"][LABEL] = "true"
        with suppress(ApiError):  # it exists
            await kube.call("POST", "/api/v1/nodes", orjson.dumps(node))
        # admission taints a new node until its status is ready
        await kube.call("PATCH", f"/api/v1/nodes/{name}", b'{"spec":{"taints":null}}', MERGE_PATCH)

    await in_parallel(one, range(count))


async def remove(kube: Kube, what: Sequence[str] = ("pods", "nodes")) -> None:
    """Deletes what the benchmark has created, with repeated requests, because a server may time out on a long one."""
    paths = {"pods": _PATH, "nodes": "/api/v1/nodes"}
    for name in what:
        await remove_labelled(kube, paths[name])


async def remove_labelled(kube: Kube, path: str) -> None:
    """Deletes the objects of a collection that the benchmark has created."""
    options = {"kind": "DeleteOptions", "apiVersion": "v1", "gracePeriodSeconds": 0, "propagationPolicy": "Background"}
    own = f"{path}?labelSelector={LABEL}%3Dtrue"
    for _ in range(_REMOVALS):
        with suppress(ApiError, LostAnswerError):
            await kube.call("DELETE", own, orjson.dumps(options), timeout=300.0)
        if not orjson.loads(await kube.call("GET", f"{own}&limit=1"))["items"]:
            break


async def node_names(kube: Kube) -> list[str]:
    """The names of all nodes."""
    names, token = list[str](), ""
    while True:
        page = orjson.loads(await kube.call("GET", f"/api/v1/nodes?limit=500&continue={quote(token)}"))
        names += [item["metadata"]["name"] for item in page["items"]]
        token = page["metadata"].get("continue", "")
        if not token:
            return names


async def in_parallel(one: Callable[[int], Awaitable[None]], numbers: Iterable[int]) -> None:
    """Runs `one` for each number, with bounded concurrency."""
    left = iter(numbers)

    async def worker() -> None:
        for number in left:
            await one(number)

    await asyncio.gather(*(worker() for _ in range(_AT_ONCE)))
