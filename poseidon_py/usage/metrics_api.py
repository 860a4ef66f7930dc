"""metrics.k8s.io as metrics-server serves it: cpu and memory of all nodes and of the containers of all pods."""

import asyncio
import functools
import math
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import TypeVar

from msgspec import Raw, Struct, field

from poseidon_py.kube.client import (
    ApiError,
    BusyError,
    Kube,
    KubeError,
    MalformedAnswerError,
    NotFoundError,
    decode_answer,
)
from poseidon_py.kube.objects import InvalidField, micros
from poseidon_py.kube.quantity import QuantityError
from poseidon_py.usage.gathered import AT, CPU, MEMORY, Gathered, SourceError, billionths
from poseidon_py.util.decoding import Decoder, MalformedError

_API = "/apis/metrics.k8s.io/v1beta1"
_AT_ONCE = 1000  # readings decoded before other tasks of the event loop run


class _Name(Struct, gc=False):
    name: str = ""
    namespace: str = ""


class _Amounts(Struct, gc=False):
    cpu: str | None = None
    memory: str | None = None


class _Container(Struct, gc=False):
    usage: _Amounts = field(default_factory=_Amounts)


class _NodeMetrics(Struct, gc=False):
    metadata: _Name
    timestamp: str
    usage: _Amounts


class _PodMetrics(Struct, gc=False):
    metadata: _Name
    timestamp: str
    containers: list[_Container] | None = None


class _List(Struct):
    items: list[Raw] | None = None


T = TypeVar("T", _NodeMetrics, _PodMetrics)

_node: Decoder[_NodeMetrics] = Decoder(_NodeMetrics, "node metrics")
_pod: Decoder[_PodMetrics] = Decoder(_PodMetrics, "pod metrics")


class MetricsApi:
    """A source of the collector."""

    name = "metrics.k8s.io"

    def __init__(self, kube: Kube, sleep: Callable[[float], Awaitable[object]] = asyncio.sleep) -> None:
        self._kube = kube
        self._sleep = sleep

    async def gather(self, into: Gathered) -> None:
        """Add the usage of nodes and pods. Raises SourceError if a part is missing; the rest is in `into` anyway."""
        problems = []
        for what, read in (("nodes", self._nodes), ("pods", self._pods)):
            try:
                await read(into)
            except (KubeError, TimeoutError) as error:
                problems.append(_explain(what, error))
        if problems:
            raise SourceError(problems[0])

    async def _nodes(self, into: Gathered) -> None:
        async for item in self._items("nodes", _node, into):
            try:
                at, cpu, memory = _micros(item.timestamp), _sum([item.usage.cpu]), _sum([item.usage.memory])
            except (QuantityError, InvalidField):
                into.refused += 1
                continue
            row = into.node(item.metadata.name)
            row[AT], row[CPU], row[MEMORY] = at, cpu / 1e6, memory / 1e9

    async def _pods(self, into: Gathered) -> None:
        async for item in self._items("pods", _pod, into):
            try:
                at = _micros(item.timestamp)
                cpu = _sum([c.usage.cpu for c in item.containers or ()])
                memory = _sum([c.usage.memory for c in item.containers or ()])
            except (QuantityError, InvalidField):
                into.refused += 1
                continue
            if item.containers:
                row = into.pod(item.metadata.namespace, item.metadata.name)
                row[AT], row[CPU], row[MEMORY] = at, cpu / 1e6, memory / 1e9

    async def _items(self, plural: str, decoder: Decoder[T], into: Gathered) -> AsyncIterator[T]:
        """The valid items of a list; invalid ones are counted in `into.refused`."""
        body = await self._kube.page(f"{_API}/{plural}", {})
        for position, raw in enumerate(decode_answer(body, _List, plural).items or ()):
            if position % _AT_ONCE == 0:
                await self._sleep(0)
            try:
                item = decoder.decode(raw)
            except MalformedError:
                into.refused += 1
                continue
            yield item


def _sum(quantities: list[str | None]) -> float:
    """The sum in billionths of a unit; NaN if one is missing: a partial sum is too small. Raises QuantityError."""
    total = 0
    for quantity in quantities:
        if quantity is None:
            return math.nan
        total += billionths(quantity)
    return float(total)


@functools.lru_cache(maxsize=64)
def _micros(timestamp: str) -> int:
    """Microseconds since the epoch; cached, because the readings of one scrape share a timestamp."""
    return micros(timestamp)


def _explain(what: str, error: Exception) -> str:
    if isinstance(error, NotFoundError):
        return "the cluster does not serve it; install metrics-server, or set usage-interval to off"
    if isinstance(error, BusyError):
        return f"{what}: {error}; is metrics-server running?"
    if isinstance(error, ApiError) and error.code in (401, 403):
        return f"{what}: {error}; allow list of nodes and pods in metrics.k8s.io"
    if isinstance(error, MalformedAnswerError):
        return f"the answer cannot be decoded: {error.__cause__ or error}"
    return f"{what}: {error or 'no answer in time'}"
