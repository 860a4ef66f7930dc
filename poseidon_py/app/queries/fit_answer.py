"""The answer to POST /fits, from the state of the bridge."""

import asyncio
import time
from functools import partial
from typing import Any

from poseidon_py.app.queries.would_fit import Fitting, question_of
from poseidon_py.feed.client import Engine
from poseidon_py.state.devices.supposed import supposed_columns
from poseidon_py.state.store import Store
from protos.gen import firmament_pb2

_FEED_SECONDS = 5.0
"""Wait for nodes to be described anew, if the question is about devices that nothing has asked for so far."""


async def fits_answer(
    store: Store, engine: Engine, added: firmament_pb2.NodeSelector | None, body: dict[str, Any]
) -> dict[str, Any]:
    """`added`: node affinity of every pod. Raises EngineError, InvalidField, Unknown."""
    fitting = Fitting(
        question_of(body),
        store.gangs.objects,
        without_marks=store.gangs.without_marks,
        added=added,
        bandwidth=store.classes.bandwidth,
        now_us=time.time_ns() // 1000,
        queues=store.queues.built.taking_by_name,
        devices=partial(supposed_columns, store.devices),
    )
    if fitting.asks_for_devices:
        async with asyncio.timeout(_FEED_SECONDS):
            while len(store.node_queue) or store.node_queue.working:  # noqa: ASYNC110 - the queue has no event for it
                await asyncio.sleep(0.02)
    return fitting.answer(await engine.would_fit(fitting.request))
