"""Prometheus: network traffic of pods and nodes, and cpu and memory if no other source has them.

One instant query per figure. The labels `namespace` and `pod` identify a pod, `node` a node. The configuration can
replace queries, or disable one by an empty text; a replaced query takes precedence over metrics.k8s.io.
"""

import math
from collections.abc import Collection, Mapping
from pathlib import Path

import msgspec
from msgspec import Raw, Struct

from poseidon_py.kube.client import Kube, KubeError, MalformedAnswerError, UnreachableError, decode_answer
from poseidon_py.kube.credentials import Access
from poseidon_py.usage.gathered import AT, CPU, MEMORY, RX, TX, Gathered, Row, SourceError
from poseidon_py.util.decoding import Decoder

_CONTAINERS = 'container!="",pod!=""'
_NODES = 'id="/"'

QUERIES: Mapping[str, str] = {
    "pod-cpu": f"sum by (namespace, pod) (rate(container_cpu_usage_seconds_total{{{_CONTAINERS}}}[2m]))",
    "pod-memory": f"sum by (namespace, pod) (container_memory_working_set_bytes{{{_CONTAINERS}}})",
    "pod-rx": 'sum by (namespace, pod) (rate(container_network_receive_bytes_total{pod!=""}[2m]))',
    "pod-tx": 'sum by (namespace, pod) (rate(container_network_transmit_bytes_total{pod!=""}[2m]))',
    "node-cpu": f"sum by (node) (rate(container_cpu_usage_seconds_total{{{_NODES}}}[2m]))",
    "node-memory": f"sum by (node) (container_memory_working_set_bytes{{{_NODES}}})",
    "node-rx": f"sum by (node) (rate(container_network_receive_bytes_total{{{_NODES}}}[2m]))",
    "node-tx": f"sum by (node) (rate(container_network_transmit_bytes_total{{{_NODES}}}[2m]))",
}
"""Name -> query; the results are cores, bytes, bytes per second."""

_COLUMN = {"cpu": CPU, "memory": MEMORY, "rx": RX, "tx": TX}


_LAST_SECOND = 2.0**62 / 1e6  # beyond it a time in microseconds is no 64-bit integer


class _Labels(Struct, gc=False):
    namespace: str = ""
    pod: str = ""
    node: str = ""


class _Series(Struct, gc=False):
    metric: _Labels
    value: tuple[float, str]


class _Data(Struct):
    result: list[Raw]
    kind: str = msgspec.field(default="", name="resultType")


class _Answer(Struct):
    data: _Data


_series: Decoder[_Series] = Decoder(_Series, "series")


class Prometheus:
    """A source of the collector. `kube`: a client of the Prometheus server, which uses `access`."""

    name = "prometheus"

    def __init__(self, kube: Kube, access: Access, queries: Mapping[str, str], token_file: Path | None = None) -> None:
        self._kube = kube
        self._access = access
        self._queries = {**QUERIES, **queries}
        self._own = {name for name in queries if queries[name] != QUERIES[name]}
        self._token_file = token_file

    async def gather(self, into: Gathered) -> None:
        """Add what is missing in `into`. Raises SourceError if a part is unavailable; the rest is in `into` anyway."""
        problems: list[str] = []
        self._read_token(problems)
        had = {"pod": _have(into.pods.values()), "node": _have(into.nodes.values())}
        for name, query in self._queries.items():
            what, metric = name.split("-")
            if not query or (metric in had[what] and name not in self._own):
                continue
            try:
                body = await self._kube.page("/api/v1/query", {"query": query})
                self._take(body, what, metric, into)
            except (KubeError, TimeoutError) as error:
                why = error.__cause__ if isinstance(error, UnreachableError) and error.__cause__ else error
                problems.append(f"{name}: {why or 'no answer in time'}")
                if isinstance(error, (UnreachableError, TimeoutError)):
                    break  # the other queries would fail, too
        if problems:
            raise SourceError(f"{problems[0]} (at {self._access.url})")

    def _take(self, body: bytes, what: str, metric: str, into: Gathered) -> None:
        data = decode_answer(body, _Answer, "the query").data
        if data.kind != "vector":
            raise MalformedAnswerError(f"the query gives a {data.kind or 'nothing'}, not an instant vector")
        column, unit = _COLUMN[metric], 1000.0 if metric == "cpu" else 1.0
        for raw in data.result:
            try:
                series = _series.decode(raw)
                at, value = series.value[0], float(series.value[1]) * unit
            except ValueError:
                into.refused += 1
                continue
            if not 0 < at < _LAST_SECOND:
                into.refused += 1
                continue
            labels = series.metric
            if (what == "pod" and not labels.pod) or (what == "node" and not labels.node):
                into.refused += 1
                continue
            row = into.pod(labels.namespace, labels.pod) if what == "pod" else into.node(labels.node)
            row[column] = value
            if not row[AT] and 0 < at < _LAST_SECOND:
                row[AT] = int(at * 1e6)

    def _read_token(self, problems: list[str]) -> None:
        """Read the token for each poll, because tokens rotate."""
        if self._token_file is None:
            return
        try:
            token = self._token_file.read_text().strip()
        except (OSError, UnicodeDecodeError) as error:
            problems.append(f"cannot read the token in {self._token_file}: {getattr(error, 'strerror', None) or error}")
            return
        if not token.isprintable():
            problems.append(f"the token in {self._token_file} is not a single line of text")
            return
        self._access.headers = {"Authorization": f"Bearer {token}"}


def _have(rows: Collection[Row]) -> set[str]:
    """The metrics that some row already has."""
    return {metric for metric, column in _COLUMN.items() if any(not math.isnan(row[column]) for row in rows)}
