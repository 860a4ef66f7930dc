"""Where measured usage comes from."""

import ssl
from dataclasses import dataclass

from poseidon_py.config import loading
from poseidon_py.config.settings import Settings
from poseidon_py.kube import credentials
from poseidon_py.kube.client import Kube
from poseidon_py.usage.collector import Source
from poseidon_py.usage.metrics_api import MetricsApi
from poseidon_py.usage.prometheus import Prometheus


@dataclass(frozen=True, slots=True)
class UsageSources:
    """interval: seconds between polls, 0: never; None: as the flow service needs it. prometheus: its client, which the
    bridge closes at the end."""

    interval: float | None
    all: list[Source]
    prometheus: Kube | None = None


async def usage_sources(settings: Settings, kube: Kube) -> UsageSources:
    """Those of the settings, connected."""
    interval, sources = loading.usage_interval(settings), list[Source]([MetricsApi(kube)])
    if interval == 0 or not settings.prometheus_url:
        return UsageSources(interval, sources)
    tls = ssl.create_default_context(cafile=settings.prometheus_ca) if settings.prometheus_ca else None
    access = credentials.at(settings.prometheus_url, tls=tls)
    client = Kube(access)
    await client.start()
    queries = settings.prometheus_queries or {}
    sources.append(Prometheus(client, access, queries, settings.prometheus_token_file))
    return UsageSources(interval, sources, client)
