"""Sends the tree of queues along with what must not be decided without it."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from poseidon_py.state.queues.registry import QueueRegistry
from protos.gen import flow_pb2


class QueueTrees:
    """One tree is on its way at a time, so that an older one does not arrive last."""

    def __init__(self, queues: QueueRegistry) -> None:
        self._queues = queues
        self._lock = asyncio.Lock()

    @asynccontextmanager
    async def with_news(self, update: flow_pb2.Update) -> AsyncIterator[Callable[[flow_pb2.UpdateReply], None]]:
        """Adds the tree to an update if the engine lacks it: no pod is placed by an older one. Yields what takes the
        reply to a successful call."""
        queues, epoch = self._queues, update.epoch
        if not queues.is_news(epoch):
            yield lambda reply: None
            return
        async with self._lock:
            message = queues.message() if queues.is_news(epoch) else None
            if message is None:
                yield lambda reply: None
                return
            update.queues.CopyFrom(queues.past_use.attached(message))
            yield lambda reply: queues.sent(epoch, message, reply.refused)
