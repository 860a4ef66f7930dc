"""The session with the flow service: its epoch, and whether its state is synchronised with the store.

    unsynchronised --(all listed, Hello, Resync)--> ready --stale(), lost()--> unsynchronised

Apply and Round calls are made inside `call()`, which waits until the service is ready and yields its epoch. A resync
waits until no such call is in flight and admits no new one, for two reasons: an Apply must not happen between the write
of a pod's row to the stream and the end of the stream, which replaces all state, and a placement of an earlier Round
must be in the stream.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager

from poseidon_py.feed.client import Engine, EngineError
from poseidon_py.feed.rows import Rows
from poseidon_py.feed.update_rows import describe_pod, node_message, quarantine, quarantine_node, target
from poseidon_py.state.records import PodRecord, SentState
from poseidon_py.state.store import Store
from poseidon_py.util.backoff import Backoff
from protos.gen import flow_pb2

log = logging.getLogger(__name__)

_CHUNK = 5000
_REFUSED_KEPT = 10_000
_ALL_TASKS = "all "
"""Begins the id of a rejection of all tasks of an update; other ids are names of pods, which have a slash."""


class Session:
    """`run` in a separate task."""

    def __init__(
        self,
        engine: Engine,
        store: Store,
        listed: Callable[[], Awaitable[object]],
        *,
        on_ready: Callable[[], None] = lambda: None,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        """`listed`: waits until all objects have been listed once. `on_ready`: called whenever the service is ready."""
        self._engine = engine
        self._store = store
        self.metrics = store.metrics
        self._listed = listed
        self._on_ready = on_ready
        self._sleep = sleep
        self._resync_due = asyncio.Event()
        self._resync_due.set()
        self._ready = asyncio.Event()
        self._calls = 0
        self._quiet = asyncio.Event()
        self._quiet.set()
        self._is_empty = True
        self.epoch = 0
        """The service's epoch; 0 before the first resync."""
        self.policy = ""
        self.wants_usage = False
        """Whether the service uses reports of measured usage."""
        self.classes: set[int] = set()
        """Ids of the classes that were sent in this epoch, and not dropped since."""
        self.profiles: set[int] = set()
        """Ids of the profiles likewise."""
        self.inputs: set[int] = set()
        """Ids of the input sets likewise."""
        self.gangs: dict[int, flow_pb2.Gang] = {}
        """By id, as sent in this epoch."""
        self.refused: dict[int, str] = {}
        """Ids of the classes that the service rejects, and the reasons."""

    @property
    def ready(self) -> bool:
        return self._ready.is_set()

    @asynccontextmanager
    async def call(self) -> AsyncIterator[int]:
        """Waits until the service is ready; yields its epoch."""
        while not self._ready.is_set():
            await self._ready.wait()
        self._calls += 1
        self._quiet.clear()
        try:
            yield self.epoch
        finally:
            self._calls -= 1
            if not self._calls:
                self._quiet.set()

    def stale(self, epoch: int) -> None:
        """A call in `epoch` was answered with STALE_EPOCH, or found another service."""
        if epoch == self.epoch and self._ready.is_set():
            log.warning("the flow service has lost its state; resynchronising")
            self._is_empty = True
            self.lost()

    def lost(self) -> None:
        """The service is unreachable; once it answers again, Hello shows whether it was restarted."""
        self._ready.clear()
        self._resync_due.set()

    def prune(self) -> None:
        """Removes descriptions that no pod uses from the store, and from what was sent: one may be sent twice."""
        store = self._store
        if store.prune():
            self.classes.intersection_update(store.classes.ids)
            self.profiles.intersection_update(store.profiles.ids)
            self.inputs.intersection_update(store.inputs.ids)

    async def run(self) -> None:
        """Resynchronises whenever necessary, after all objects have been listed once."""
        await self._listed()
        backoff = Backoff(0.1, 5.0)
        while True:
            await self._resync_due.wait()
            self._resync_due.clear()
            await self._quiet.wait()
            try:
                await self._resync()
            except EngineError as error:
                delay = backoff.next()
                log.warning("cannot synchronise with the flow service: %s; retry in %.1f s", error, delay)
                self._resync_due.set()
                await self._sleep(delay)
            else:
                backoff.reset()

    async def _resync(self) -> None:
        hello = await self._engine.hello()
        self.wants_usage = hello.wants_usage
        if self._is_empty or not hello.resynced or hello.epoch != self.epoch:
            await self._send_everything(hello.policy)
        if self._resync_due.is_set():
            return  # lost again during the resync
        self._ready.set()
        self._on_ready()

    async def _send_everything(self, policy: str) -> None:
        self.classes.clear()
        self.profiles.clear()
        self.inputs.clear()
        self.gangs.clear()
        self._store.gangs.removed.clear()
        self._store.budgets.removed.clear()
        self.refused.clear()
        queues = self._store.queues.message()
        outgoing = self._store.queues.past_use.attached(queues) if queues is not None else None
        reply = await self._engine.resync(self._everything(outgoing))
        self.epoch, self.policy, self._is_empty = reply.epoch, policy, False
        self.metrics.resyncs.inc()
        for refusal in reply.refused:
            note_refusal(self, refusal)
        self._store.queues.sent(reply.epoch, queues, reply.refused)
        if self.refused:
            for known in self._store.pods.values():
                if known.sent is not None and known.sent.class_id in self.refused:
                    known.dirty = True  # feed/workers.py reports why it is not scheduled
                    self._store.pod_queue.add(known.uid)
        nodes, pods = len(self._store.nodes), len(self._store.pods)
        log.info("synchronised the flow service (policy %s): %d nodes, %d pods", policy, nodes, pods)

    async def _everything(self, queues: flow_pb2.Queues | None) -> AsyncIterator[flow_pb2.Update]:
        store = self._store
        nodes = flow_pb2.Update(
            namespaces=store.namespaces.messages.values(), budgets=store.budgets.messages.values(), queues=queues
        )
        for node in list(store.nodes.values()):
            node.dirty = False
            try:
                message = node_message(store, node)
            except Exception as error:
                quarantine_node(store, node, error)
                message = node.message
            if message is not None:
                nodes.nodes.append(message)
                node.sent = node.key
        yield nodes
        pods = list(store.pods.values())
        for start in range(0, len(pods), _CHUNK):
            for rows in self._described(pods[start : start + _CHUNK]):
                yield rows.update
                self.classes.update(rows.classes)
                self.profiles.update(rows.profiles)
                self.inputs.update(rows.inputs)
                self.gangs.update(rows.gangs)
            await self._sleep(0)
        yield flow_pb2.Update(complete=True)

    def _described(self, pods: list[PodRecord]) -> Iterator[Rows]:
        """Rows of pods. A pod that cannot be described because of a defect is quarantined."""
        try:
            rows = self._rows(pods)
        except Exception as error:
            if len(pods) > 1:
                yield from self._described(pods[: len(pods) // 2])
                yield from self._described(pods[len(pods) // 2 :])
                return
            quarantine(self._store, pods[0], error)
            pods[0].sent = None
            return
        if len(rows):
            yield rows

    def _rows(self, pods: list[PodRecord]) -> Rows:
        store, rows = self._store, Rows()
        for known in pods:
            if store.pods.get(known.uid) is not known:
                continue  # removed since the iteration began
            known.dirty = known.resend = False
            describe_pod(store, known)
            known.sent = target(store, known, fresh=True)
            if known.sent is not None:
                rows.add(known, known.sent)
                store.volumes.sent(known)
        if len(rows):
            rows.finish(store, self.classes, self.profiles, self.gangs, self.inputs)
        return rows


def note_refusal(session: Session, refusal: flow_pb2.Refusal) -> None:
    """Logs and counts a rejection by the service, and records rejected classes."""
    session.metrics.refusals.labels(refusal.kind).inc()
    problem = f"{refusal.field}: {refusal.reason}"
    if refusal.kind == "class" and refusal.id.isdigit():
        if int(refusal.id) in session.refused:
            return
        session.refused[int(refusal.id)] = problem
        if len(session.refused) > _REFUSED_KEPT:  # the service rejects it again if it still has a pod
            del session.refused[next(iter(session.refused))]
    log.warning("the flow service rejected %s %s: %s", refusal.kind, refusal.id, problem)


def check_tasks(session: Session, reply: flow_pb2.UpdateReply) -> None:
    """Raises EngineError if the service has taken none of the update's tasks, because one of them is malformed: smaller
    updates isolate it."""
    for refusal in reply.refused:
        if refusal.kind == "task" and refusal.id.startswith(_ALL_TASKS):
            note_refusal(session, refusal)
            raise EngineError("Apply", "INVALID_ARGUMENT", f"{refusal.field}: {refusal.reason}")


def substitute(session: Session, store: Store, known: PodRecord, goal: SentState) -> SentState | None:
    """The state to send of a pod whose class the service rejects, which is reported on it. None: a pending pod, which
    is not scheduled. The requests of a bound one still have to be counted."""
    problem = session.refused[goal.class_id]
    if known.described.problem != problem:
        known.described.problem = problem
        store.problems.of_pod(known.namespace, known.name, known.uid, problem)
    if not goal.node:
        return None
    class_id = goal.class_id
    for _ in range(2):  # its requests alone, or one pod slot
        if class_id in session.refused:
            class_id = store.classes.of_amounts(class_id)
    return goal._replace(class_id=class_id)
