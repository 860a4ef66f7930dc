"""Workers that update the engine: take keys, compare newest and sent state, send the difference, mark done.

All ready keys go into one call, so that a drained queue takes one round trip; a call with changes of pods also runs a
round if one would follow at once. A single event is sent at once; under load a worker pauses after each call, because a
call takes as long as describing some tens of pods. No state is sent twice: most events of a pod do not change it.

A failed call is retried later for all its keys, which is harmless because updates are idempotent. If the service
answers with an error, or the message cannot be built, calls become smaller until the invalid object is isolated. An
object that a defect keeps from being described is quarantined: left out, with an event, until it changes."""

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import TypeVar

from poseidon_py.feed.client import Engine, EngineError
from poseidon_py.feed.queue_trees import QueueTrees
from poseidon_py.feed.resync import Session, check_tasks, note_refusal, substitute
from poseidon_py.feed.rows import Rows
from poseidon_py.feed.update_rows import describe_pod, node_message, quarantine, quarantine_node, target
from poseidon_py.state.node_record import NodeRecord
from poseidon_py.state.records import PodRecord, SentState
from poseidon_py.state.store import Store
from poseidon_py.util.duty_cycle import DutyCycle
from poseidon_py.util.work_queue import KeyedQueue
from protos.gen import flow_pb2

log = logging.getLogger(__name__)

Key = TypeVar("Key", str, int)

_SHARE, _MEMORY_SECONDS = 1 / 3, 0.25  # of the time that a worker spends in calls

RoundWith = Callable[[flow_pb2.Update], AbstractAsyncContextManager[Callable[[flow_pb2.UpdateReply], None]]]
"""Adds a round to an update, if one is due; yields what takes the reply, at the end of the block."""


class Feed:
    """Start any number of `pod_worker`, `node_worker`, ...; they end when their queues are shut down."""

    def __init__(
        self,
        store: Store,
        engine: Engine,
        session: Session,
        changed: Callable[[], None],
        batch_size: int = 2000,
        *,
        min_pause: float = 0.005,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        """`changed`: called after each call with changes for which a round may be due. `batch_size`: maximum number of
        objects in one call. `min_pause`: minimum seconds between two calls of a worker."""
        self._store = store
        self._metrics = store.metrics
        self._engine = engine
        self._session = session
        self.round_with: RoundWith = self._without_round
        self._changed = changed
        self._batch_size = batch_size
        self._min_pause = min_pause
        self._sleep = sleep
        self._trees = QueueTrees(store.queues)
        self._rejections: dict[str, tuple[int, flow_pb2.Rejection]] = {}
        """By UID, with the epoch of the placement: they are obsolete after a resynchronisation."""

    def reject(self, known: PodRecord, node_id: str, not_before_us: int) -> None:
        """A placement was not carried out; the engine leaves the pod out of rounds until `not_before_us` (epoch)."""
        rejection = flow_pb2.Rejection(task_uid=known.task, node_id=node_id, not_before_us=not_before_us)
        self._rejections[known.uid] = self._session.epoch, rejection
        known.not_before_us, known.dirty = not_before_us, True
        self._store.pod_queue.add(known.uid)

    async def pod_worker(self) -> None:
        await self._work("pods", self._store.pod_queue, self._feed_pods)

    async def node_worker(self) -> None:
        await self._work("nodes", self._store.node_queue, self._feed_nodes)

    async def namespace_worker(self) -> None:
        await self._work("namespaces", self._store.namespaces.queue, self._feed_namespaces)

    async def _work(
        self, name: str, queue: KeyedQueue[Key], feed: Callable[[list[Key], int], Awaitable[Collection[Key] | None]]
    ) -> None:
        """`feed` sends what has changed of some keys, in an epoch, and returns those that are to be retried later."""
        duration, size = self._metrics.queue_work.labels(name), self._metrics.batch.labels(name)
        max_items, duty = self._batch_size, DutyCycle(_SHARE, _MEMORY_SECONDS)
        while keys := await queue.get(max_items):
            try:
                async with self._session.call() as epoch:
                    started = time.monotonic()
                    refused = await feed(keys, epoch) or ()
                    ended = time.monotonic()
                    duty.ended(started, ended)
                    duration.observe(ended - started)
                    size.observe(len(keys))
            except EngineError as error:
                log.warning("cannot send %d %s to the flow service: %s", len(keys), name, error)
                self._mark_dirty(name, keys)
                for key in keys:
                    queue.retry(key)
                if error.code in ("UNAVAILABLE", "CLOSED"):
                    self._session.lost()
                else:
                    max_items = max(1, len(keys) // 2)
            except Exception as error:
                log.exception("cannot send %d %s to the flow service: a defect", len(keys), name)
                max_items = max(1, len(keys) // 2)
                if len(keys) == 1:
                    self._quarantine(name, str(keys[0]), error)
                    queue.forget(keys[0])
                else:
                    self._mark_dirty(name, keys)
                    for key in keys:
                        queue.retry(key)
            else:
                max_items = min(self._batch_size, 2 * max_items)
                for key in keys:
                    if key in refused:
                        queue.retry(key)
                    else:
                        queue.forget(key)
            finally:
                queue.done(keys)
            # more keys become ready meanwhile
            await self._sleep(min(max(self._min_pause, duty.free_at - time.monotonic()), 10 * self._min_pause))

    def _mark_dirty(self, name: str, keys: Iterable[object]) -> None:
        for key in map(str, keys):
            if name == "pods" and (pod := self._store.pods.get(key)) is not None:
                pod.dirty = True
            elif name == "nodes" and (node := self._store.nodes.get(key)) is not None:
                node.dirty = True

    def _quarantine(self, name: str, key: str, error: Exception) -> None:
        if name == "pods" and (pod := self._store.pods.get(key)) is not None:
            quarantine(self._store, pod, error)
        elif name == "nodes" and (node := self._store.nodes.get(key)) is not None:
            quarantine_node(self._store, node, error)

    def _note(self, reply: flow_pb2.UpdateReply) -> None:
        if not reply.quiet:
            self._changed()

    @asynccontextmanager
    async def _without_round(self, update: flow_pb2.Update) -> AsyncIterator[Callable[[flow_pb2.UpdateReply], None]]:
        yield self._note

    # -- pods -------------------------------------------------------------------------------------------------

    async def _feed_pods(self, uids: list[str], epoch: int) -> Collection[str]:
        store, rows = self._store, Rows()
        gone: list[str] = []
        rejected: dict[str, tuple[int, flow_pb2.Rejection]] = {}
        removed: list[PodRecord] = []
        for uid in uids:
            if (task := store.gone_tasks.get(uid)) is not None:
                rows.retire(task, store.outcomes.get(uid))
                gone.append(uid)
                self._rejections.pop(uid, None)
            known = store.pods.get(uid)
            if known is None or not known.dirty:
                continue
            known.dirty = False
            try:
                describe_pod(store, known)
            except Exception as error:
                quarantine(store, known, error)
                if known.sent is not None and not (known.node or known.assumed):  # no placement with the old class
                    rows.update.removed_tasks.append(known.task)
                    removed.append(known)
                    self._rejections.pop(uid, None)
                continue
            self._row(known, rows, removed)
            if (rejection := self._rejections.pop(uid, None)) is not None and rejection[0] == epoch and not known.node:
                rejected[uid] = rejection
        if not (rows.pods or removed or gone or rejected):
            return ()
        rows.update.epoch = epoch
        rows.update.rejections.extend(rejection for _, rejection in rejected.values())
        session = self._session
        update = rows.finish(store, session.classes, session.profiles, session.gangs, session.inputs)
        async with self._trees.with_news(update) as note_tree, self.round_with(update) as take_round:
            try:
                reply = await self._engine.apply(update)
                check_tasks(session, reply)
            except BaseException:
                self._rejections = rejected | self._rejections
                for known in rows.resent:
                    known.resend = True
                raise
            if reply.status == flow_pb2.STALE_EPOCH:
                self._again(uids)  # a resync sends all other state; only removals remain
                self._session.stale(epoch)
                return ()
            refused = self._pods_sent(reply, rows, removed, gone)
            note_tree(reply)
            take_round(reply)
            return refused

    def _pods_sent(
        self, reply: flow_pb2.UpdateReply, rows: Rows, removed: list[PodRecord], gone: list[str]
    ) -> Collection[str]:
        store = self._store
        self._session.classes.update(rows.classes)
        self._session.profiles.update(rows.profiles)
        self._session.inputs.update(rows.inputs)
        self._session.gangs.update(rows.gangs)
        for gang_id in rows.gangs:
            store.gangs.queue.add(gang_id)  # it may have changed while the call was on its way
        store.forget_gone(gone)
        for known in removed:
            known.sent = None
        for known, state in rows.pods:
            known.sent = state
        refused = self._take_refusals(reply, rows.pods)
        for known, state in rows.pods:
            if known.sent is state:
                store.volumes.sent(known)
        self._session.prune()
        return refused

    def _row(self, known: PodRecord, rows: Rows, removed: list[PodRecord]) -> None:
        """Adds the difference between a pod's sent and current state to `rows`, if there is one."""
        goal, sent = target(self._store, known), known.sent
        if goal is not None and goal.class_id in self._session.refused:
            goal = substitute(self._session, self._store, known, goal)
        if goal == sent and not (known.resend and goal is not None):
            return
        if goal is None:
            self._store.nominations.withdraw(known)  # it is blocked: the node need not keep anything for it
            rows.update.removed_tasks.append(known.task)
            removed.append(known)
            return
        if sent is not None and (not sent.class_id or (sent.node and not goal.node)):
            # refused, or sent as bound by a resync while it was being bound, and then the bind failed: tasks of the
            # engine do not leave their nodes, so that one ends and another begins
            rows.update.removed_tasks.append(known.task)
        if known.resend:
            known.resend = False
            rows.resent.append(known)
        rows.add(known, goal)

    def _take_refusals(self, reply: flow_pb2.UpdateReply, pods: list[tuple[PodRecord, SentState]]) -> Collection[str]:
        """Returns the UIDs of the pods whose tasks were refused."""
        for refusal in reply.refused:
            note_refusal(self._session, refusal)
        names = {refusal.id for refusal in reply.refused if refusal.kind == "task"}
        refused = set()
        for known, state in pods:
            if names and known.full_name in names:
                known.sent, known.dirty = state._replace(class_id=0), True  # equal to no goal, see `_row`
                refused.add(known.uid)
        unknown, profiles = set(reply.unknown_classes), set(reply.unknown_profiles)
        gangs, inputs = set(reply.unknown_gangs), set(reply.unknown_inputs)
        if not (unknown or profiles or gangs or inputs):
            return refused
        self._session.classes -= unknown
        self._session.profiles -= profiles
        self._session.inputs -= inputs
        for gang_id in gangs:
            self._session.gangs.pop(gang_id, None)
        for known, state in pods:
            if state.class_id in unknown or state.profile in profiles or state.gang in gangs or state.inputs in inputs:
                known.sent = None
                self._again([known.uid])
        return refused

    def _again(self, uids: list[str]) -> None:
        for uid in uids:
            known = self._store.pods.get(uid)
            if known is not None:
                known.dirty = True
            self._store.pod_queue.add(uid)

    # -- nodes ------------------------------------------------------------------------------------------------

    async def _feed_nodes(self, keys: list[str], epoch: int) -> None:
        store, update = self._store, flow_pb2.Update(epoch=epoch)
        gone: list[str] = []
        sent: list[tuple[NodeRecord, object]] = []
        for key in keys:
            if key in store.gone_nodes:
                update.removed_nodes.append(key)
                gone.append(key)
            known = store.nodes.get(key)
            if known is None or not known.dirty:
                continue
            known.dirty = False
            try:
                message = node_message(store, known)
            except Exception as error:
                quarantine_node(store, known, error)
                continue
            if message is not None and known.key != known.sent:
                update.nodes.append(message)
                sent.append((known, known.key))
        if not (gone or sent):
            return
        reply = await self._engine.apply(update)
        if reply.status == flow_pb2.STALE_EPOCH:
            for key in keys:
                store.node_queue.add(key)
            self._session.stale(epoch)
            return
        store.gone_nodes.difference_update(gone)
        for known, described in sent:
            known.sent = described
        for refusal in reply.refused:
            note_refusal(self._session, refusal)
        self._note(reply)

    # -- namespaces -------------------------------------------------------------------------------------------

    async def _feed_namespaces(self, names: list[str], epoch: int) -> None:
        store = self._store
        sent = [message for name in names if (message := store.namespaces.messages.get(name)) is not None]
        reply = await self._engine.apply(flow_pb2.Update(epoch=epoch, namespaces=sent))
        if reply.status == flow_pb2.STALE_EPOCH:
            for name in names:
                store.namespaces.queue.add(name)
            self._session.stale(epoch)
            return
        for message in sent:
            if not message.labels and store.namespaces.messages.get(message.name) is message:
                del store.namespaces.messages[message.name]  # without labels it is equal to one that was never sent
        self._note(reply)

    # -- disruption budgets -----------------------------------------------------------------------------------

    async def budget_worker(self) -> None:
        await self._work("budgets", self._store.budgets.queue, self._feed_budgets)

    async def _feed_budgets(self, ids: list[int], epoch: int) -> None:
        budgets = self._store.budgets
        news = [message for ident in ids if (message := budgets.messages.get(ident)) is not None]
        gone = [ident for ident in ids if ident in budgets.removed]
        if not (news or gone):
            return
        reply = await self._engine.apply(flow_pb2.Update(epoch=epoch, budgets=news, removed_budgets=gone))
        if reply.status == flow_pb2.STALE_EPOCH:
            for ident in ids:
                budgets.queue.add(ident)
            self._session.stale(epoch)
            return
        for refusal in reply.refused:
            note_refusal(self._session, refusal)
        budgets.removed.difference_update(gone)
        self._note(reply)

    # -- queues -----------------------------------------------------------------------------------------------

    async def queue_worker(self) -> None:
        await self._work("queues", self._store.queues.queue, self._feed_queues)

    async def _feed_queues(self, keys: list[str], epoch: int) -> None:
        """Sends the whole tree: it is small, and its parts depend on each other."""
        update = flow_pb2.Update(epoch=epoch)
        async with self._trees.with_news(update) as note_tree:
            if not update.HasField("queues"):
                return
            reply = await self._engine.apply(update)
            if reply.status == flow_pb2.STALE_EPOCH:
                self._session.stale(epoch)  # a resync sends the tree
                return
            for refusal in reply.refused:
                note_refusal(self._session, refusal)
            note_tree(reply)
        self._note(reply)

    # -- gangs ------------------------------------------------------------------------------------------------

    async def gang_worker(self) -> None:
        await self._work("gangs", self._store.gangs.queue, self._feed_gangs)

    async def _feed_gangs(self, ids: list[int], epoch: int) -> None:
        """Sends changes of gangs that the service has; others are sent with their first member."""
        registry, sent = self._store.gangs, self._session.gangs
        news: dict[int, flow_pb2.Gang] = {}
        for gang_id in ids:
            message = registry.message(gang_id)
            if message is not None and sent.get(gang_id, message) is not message:
                news[gang_id] = message
        gone = [gang_id for gang_id in ids if gang_id in registry.removed]
        if not (news or gone):
            return
        reply = await self._engine.apply(flow_pb2.Update(epoch=epoch, gangs=news.values(), removed_gangs=gone))
        if reply.status == flow_pb2.STALE_EPOCH:
            self._session.stale(epoch)  # a resync sends all other state; only removals remain
            return
        for refusal in reply.refused:
            note_refusal(self._session, refusal)
        sent.update(news)
        for gang_id in gone:
            sent.pop(gang_id, None)
            registry.removed.discard(gang_id)
        self._note(reply)
