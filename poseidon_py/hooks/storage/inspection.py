"""What users see of the stores in a namespace, and what they ask for. Writes to no segment: see config_maps."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from poseidon_py.hooks.clock import Clock
from poseidon_py.hooks.records import TOTALS_KEY, Record, Totals
from poseidon_py.hooks.storage.config_maps import (
    LABEL,
    REQUESTS_LABEL,
    Api,
    config_maps,
    encode_request,
    folder,
    requests_name,
)
from poseidon_py.hooks.storage.store import Request
from poseidon_py.kube.client import JSON, MERGE_PATCH, ConflictError, NotFoundError

_POLL_SECONDS = 0.5
_encode = msgspec.json.Encoder().encode


@dataclass(slots=True)
class Stored:
    """The content of one store."""

    name: str
    records: dict[str, Record] = field(default_factory=dict)
    """By key."""
    dropped: dict[str, int] = field(default_factory=dict)
    """Dead letters that were dropped, by hook."""
    unreadable: int = 0

    @property
    def hooks(self) -> list[str]:
        """Hooks with deliveries, dead letters or dropped ones."""
        return sorted({record.hook for record in self.records.values()} | self.dropped.keys())

    def pending(self, hook: str | None = None) -> list[Record]:
        """Deliveries that wait, in the order of their reports; of one hook or of all."""
        return self._sorted(hook, dead=False)

    def dead(self, hook: str | None = None) -> list[Record]:
        """Dead letters; of one hook or of all."""
        return self._sorted(hook, dead=True)

    def _sorted(self, hook: str | None, *, dead: bool) -> list[Record]:
        found = (each for each in self.records.values() if bool(each.dead) == dead and hook in (None, each.hook))
        return sorted(found, key=lambda record: (record.hook, record.sequence))


async def read_stores(api: Api, namespace: str) -> list[Stored]:
    """All stores of a namespace by name. Raises KubeError."""
    stores: dict[str, Stored] = {}
    async for found in config_maps(api, namespace, LABEL):
        name = found.metadata.labels[LABEL]
        stored = stores.setdefault(name, Stored(name))
        for key, text in found.data.items():
            try:
                if key == TOTALS_KEY:
                    stored.dropped = msgspec.json.decode(text, type=Totals).dropped
                else:
                    stored.records[key] = msgspec.json.decode(text, type=Record)
            except (ValueError, RecursionError):
                stored.unreadable += 1
    return [stores[name] for name in sorted(stores)]


async def ask(api: Api, namespace: str, store: str, requests: list[Request]) -> None:
    """Ask the process that delivers to carry out these requests. Raises KubeError."""
    data = {encode_request(request): "" for request in requests}
    name = requests_name(store)
    body: Mapping[str, Any] = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": name,
            "namespace": namespace,
            "labels": {REQUESTS_LABEL: store, "app.kubernetes.io/managed-by": "poseidon"},
        },
        "data": data,
    }
    try:
        await api.call("POST", folder(namespace), _encode(body), JSON)
    except ConflictError:
        await api.call("PATCH", f"{folder(namespace)}/{name}", _encode({"data": data}), MERGE_PATCH)


async def carried_out(
    api: Api, namespace: str, store: str, requests: list[Request], seconds: float, clock: Clock | None = None
) -> bool:
    """Whether all requests are carried out within `seconds`. Raises KubeError."""
    clock = clock or Clock()
    names = {encode_request(request) for request in requests}
    end = clock.monotonic() + seconds
    while True:
        try:
            body = await api.call("GET", f"{folder(namespace)}/{requests_name(store)}")
        except NotFoundError:
            return True
        found = msgspec.json.decode(body)
        if not names & (found.get("data") or {}).keys():
            return True
        if clock.monotonic() >= end:
            return False
        await clock.sleep(_POLL_SECONDS)
