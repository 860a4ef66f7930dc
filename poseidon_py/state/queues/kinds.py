"""The kinds of queues, in the order in which `--queues auto` tries them."""

from poseidon_py.state.queues.choice import Namespaces
from poseidon_py.state.queues.elastic_quota import ElasticQuotas
from poseidon_py.state.queues.kai import Kai
from poseidon_py.state.queues.koordinator import Koordinator
from poseidon_py.state.queues.kueue import Kueue
from poseidon_py.state.queues.own import Own
from poseidon_py.state.queues.source import Source
from poseidon_py.state.queues.volcano import Volcano
from poseidon_py.state.queues.yunikorn import YuniKorn

AUTO, OFF = "auto", "off"
_SOURCES: tuple[type[Source], ...] = (Kueue, Kai, Volcano, YuniKorn, ElasticQuotas, Koordinator, Own)
KINDS = tuple(source.kind for source in _SOURCES)
WITH_CONTROLLERS = tuple(source.kind for source in _SOURCES if source is not Own)
"""Kinds that have a controller or scheduler of their own, which may run in the cluster."""


def sources_of(mode: str, namespaces: Namespaces) -> dict[str, Source]:
    """The sources to watch, by kind."""
    return {source.kind: source(namespaces) for source in _SOURCES if mode in (AUTO, source.kind)}
