"""Compares the bridge's state with the API server: SIGUSR2, as in kube-scheduler.

What differs at first may be on its way in a watch; what still differs a moment later is a defect, and is logged.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Generic, Protocol, TypeVar

from msgspec import Struct, field

from poseidon_py.kube.client import KubeError, decode_answer
from poseidon_py.kube.objects import Metadata
from poseidon_py.state.store import Store

log = logging.getLogger(__name__)

_SETTLING_SECONDS = 5.0
_PAGE = "2000"
_NAMED = 20
"""Objects of each difference that are named in the log."""
_ALIVE = "status.phase!=Succeeded,status.phase!=Failed"


class PageApi(Protocol):
    """The part of kube.client.Kube that lists use."""

    async def page(self, path: str, parameters: Mapping[str, str]) -> bytes: ...


class _Spec(Struct):
    node: str = field(default="", name="nodeName")


class _Listed(Struct):
    metadata: Metadata
    spec: _Spec = field(default_factory=_Spec)


class _Page(Struct):
    token: str = field(default="", name="continue")


T = TypeVar("T")


class _List(Struct, Generic[T]):
    metadata: _Page
    items: list[T]


async def compare(
    store: Store, api: PageApi, *, sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
) -> list[str]:
    """Differences that last, a line each, as they are logged. Raises KubeError."""
    before = await _differences(store, api)
    if any(before.values()):
        await sleep(_SETTLING_SECONDS)
    after = await _differences(store, api) if any(before.values()) else {}
    lines = []
    for what, names in after.items():
        lasting = sorted(names & before[what])
        if lasting:
            others = f" and {len(lasting) - _NAMED} more" if len(lasting) > _NAMED else ""
            lines.append(f"{what}: {', '.join(lasting[:_NAMED])}{others}")
    for line in lines:
        log.error("the state differs from the API server: %s", line)
    if not lines:
        log.info("the state agrees with the API server: %d pods, %d nodes", len(store.pods), len(store.nodes))
    return lines


async def compare_and_log(store: Store, api: PageApi) -> None:
    """`compare`, of which a failure is logged."""
    try:
        await compare(store, api)
    except KubeError as error:
        log.error("the state cannot be compared with the API server: %s", error)


async def _differences(store: Store, api: PageApi) -> dict[str, set[str]]:
    """Names of objects, with the UID where names are used again, by difference."""
    pods = {each.metadata.uid: each for each in await _listed(api, "/api/v1/pods", {"fieldSelector": _ALIVE})}
    nodes = {each.metadata.name for each in await _listed(api, "/api/v1/nodes", {})}
    known = {uid: f"{pod.namespace}/{pod.name} ({uid})" for uid, pod in store.pods.items()}
    there = {uid: f"{pod.metadata.namespace}/{pod.metadata.name} ({uid})" for uid, pod in pods.items()}
    return {
        "pods that the state lacks": {there[uid] for uid in there.keys() - known.keys()},
        "pods that are gone": {known[uid] for uid in known.keys() - there.keys()},
        "pods on another node": {
            f"{known[uid]} is on {pods[uid].spec.node or 'none'}, not on {store.pods[uid].node or 'none'}"
            for uid in known.keys() & there.keys()
            if pods[uid].spec.node != store.pods[uid].node
        },
        "nodes that the state lacks": nodes - store.nodes.keys(),
        "nodes that are gone": set(store.nodes.keys() - nodes),
    }


async def _listed(api: PageApi, path: str, parameters: Mapping[str, str]) -> list[_Listed]:
    found: list[_Listed] = []
    token = ""
    while True:
        asked = {"limit": _PAGE, **parameters, **({"continue": token} if token else {})}
        page = decode_answer(await api.page(path, asked), _List[_Listed], path)
        found += page.items
        token = page.metadata.token
        if not token:
            return found
