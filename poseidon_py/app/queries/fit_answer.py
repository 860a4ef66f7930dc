"""The answer to POST /fits, from the state of the bridge."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any

from poseidon_py.app.devices.supposed_claims import claim_specs
from poseidon_py.app.queries.would_fit import Fitting, question_of
from poseidon_py.devices.objects import DeviceClaimSpec
from poseidon_py.feed.client import Engine
from poseidon_py.state.devices.claim_cache import ClaimKey
from poseidon_py.state.devices.supposed import SupposedPods
from poseidon_py.state.gangs.model import Unknown
from poseidon_py.state.store import Store
from protos.gen import firmament_pb2

_FEED_SECONDS = 5.0
"""Wait for nodes to be described anew, if the question is about devices that nothing has asked for so far."""
_OFFER_SECONDS = 60.0
"""Nodes that take longer go on to be described for so long, so that a question that is asked again has its answer."""


async def fits_answer(
    store: Store,
    engine: Engine,
    added: firmament_pb2.NodeSelector | None,
    body: dict[str, Any],
    template: Callable[[ClaimKey], Awaitable[DeviceClaimSpec | None]],
) -> dict[str, Any]:
    """`added`: node affinity of every pod. `template`: what a template of device claims asks for; None: there is none.
    Raises EngineError, InvalidField, Unknown."""
    question = question_of(body)
    specs = await claim_specs(question.objects, question.namespace, template)
    pods = SupposedPods(store.devices, specs, in_queue=bool(question.queue))
    forget_after = 0.0
    try:
        fitting = Fitting(
            question,
            store.gangs.objects,
            without_marks=store.gangs.without_marks,
            added=added,
            bandwidth=store.classes.bandwidth,
            now_us=time.time_ns() // 1000,
            queues=store.queues.built.taking_by_name,
            devices=pods.columns_of,
        )
        if fitting.asks_for_devices and not await _are_described(store):
            forget_after = _OFFER_SECONDS
            raise Unknown("how many such pods fit on each node")
        answer = fitting.answer(await engine.would_fit(fitting.request))
        if pods.shared and answer["pods"] > 1:
            names = ", ".join(pods.shared)
            answer["notes"].append(f"pods that share claim {names} are counted as if each had one of its own")
        return answer
    finally:
        asyncio.get_running_loop().call_later(forget_after, pods.forget)


async def _are_described(store: Store) -> bool:
    """Waits until the engine has all nodes as they are; False: it takes too long."""
    try:
        async with asyncio.timeout(_FEED_SECONDS):
            while len(store.node_queue) or store.node_queue.working:  # noqa: ASYNC110 - the queue has no event for it
                await asyncio.sleep(0.02)
    except TimeoutError:
        return False
    return True
