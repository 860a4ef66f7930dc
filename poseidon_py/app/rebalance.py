"""Plans of moves: asks the engine for them, has one of them carried out, and follows what becomes of its moves.

The engine carries out a plan in its rounds, and forgets it with its epoch; then the moves that have not ended are sent
again. A pod that a plan moves is evicted like any pod that migrates (preempt/migrator.py). When this replica ceases to
lead, the plan is forgotten: the command that sent it sends the moves that have not ended to the new leader.
"""

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from poseidon_py.app.move_plan import Move, Plan, Step, reason
from poseidon_py.app.plan_messages import messages_of, plan_of, request_of
from poseidon_py.app.plan_query import PlanQuery
from poseidon_py.feed.client import Engine, EngineError
from poseidon_py.feed.resync import Session
from poseidon_py.rounds.leadership import Leadership
from poseidon_py.state.store import Store
from poseidon_py.util.backoff import Backoff
from protos.gen import flow_pb2

log = logging.getLogger(__name__)

Json = dict[str, Any]

_POLL_SECONDS = 1.0
_PATIENCE_SECONDS = 30.0
"""For the flow service, when a plan is sent or stopped."""
_STAGES = {
    flow_pb2.MoveProgress.WAITING: "waiting",
    flow_pb2.MoveProgress.LEAVING: "leaving",
    flow_pb2.MoveProgress.AWAITED: "awaited",
    flow_pb2.MoveProgress.DONE: "done",
    flow_pb2.MoveProgress.ELSEWHERE: "elsewhere",
    flow_pb2.MoveProgress.DROPPED: "dropped",
}
_UNDER_WAY = ("waiting", "leaving", "awaited")
STATES = (*_STAGES.values(), "gone")
"""`gone`: the pod had gone before its move was sent. It has ended, like `done`, `elsewhere` and `dropped`."""
NOT_THE_LEADER = "this replica is not the leader; ask the leader, which `poseidon status` names"
_UNSYNCHRONISED = "the flow service is not synchronised; try again in a few seconds"


class RebalanceError(Exception):
    """A request is refused. `status`: that of the HTTP answer; the message has the reason and the remedy."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


@dataclass(slots=True)
class TrackedMove:
    """A move of the plan that is carried out."""

    step: Step
    move: Move
    task: int = 0
    """Id in the engine; 0: it was never sent."""
    state: str = "waiting"
    reason: str = ""

    @property
    def has_ended(self) -> bool:
        return self.state not in _UNDER_WAY


@dataclass(slots=True, eq=False)
class ActivePlan:
    """A plan that is, or was last, carried out."""

    plan: Plan
    moves: dict[str, TrackedMove]
    """By UID of the pod, in the order of the plan."""
    is_stopped: bool = False

    @property
    def is_active(self) -> bool:
        return not all(tracked.has_ended for tracked in self.moves.values())

    def counts(self) -> Counter[str]:
        """Moves by state."""
        return Counter(tracked.state for tracked in self.moves.values())


@dataclass(slots=True)
class Sent:
    """The steps that the engine was sent last."""

    epoch: int
    plan: ActivePlan | None
    """None: no steps, because the plan was forgotten."""
    is_stopped: bool
    is_answered: bool = False


class Rebalancer:
    """`plan`, `carry_out`, `progress`, `stop`; `run` in a separate task."""

    def __init__(
        self,
        store: Store,
        engine: Engine,
        session: Session,
        leadership: Leadership,
        changed: Callable[[], None],
        *,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        now_us: Callable[[], int] = lambda: time.time_ns() // 1000,
    ) -> None:
        """`changed`: asks for a round."""
        self._store = store
        self._engine = engine
        self._session = session
        self._leadership = leadership
        self._changed = changed
        self._sleep = sleep
        self._now_us = now_us
        self._running: ActivePlan | None = None
        self._sent: Sent | None = None
        self._due = asyncio.Event()
        """Set while there is something to send or to follow."""
        self._exchanging = asyncio.Lock()
        self._planning = asyncio.Lock()

    # -- requests ---------------------------------------------------------------------------------------------

    async def plan(self, query: PlanQuery) -> Plan:
        """A plan that is not carried out. Raises EngineError, RebalanceError."""
        if not self._session.ready:
            raise RebalanceError(503, _UNSYNCHRONISED)
        if self._planning.locked():
            raise RebalanceError(503, "another plan is being computed; try again in a minute")
        async with self._planning:
            # outside of a session's call, because a resync must not wait for it
            reply = await self._engine.plan_moves(request_of(query, self._now_us()))
            return plan_of(self._store, reply, query)

    async def carry_out(self, plan: Plan) -> Json:
        """Begins a plan; the same one again, by its id, changes nothing. Returns its progress.

        Raises EngineError, RebalanceError.
        """
        self._require_leadership()
        running = self._running
        if running is not None and plan.id and running.plan.id == plan.id:
            return self.progress()
        if running is not None and running.is_active:
            raise RebalanceError(409, "another plan is being carried out; wait until its moves have ended, or stop it")
        moves = {move.uid: TrackedMove(step, move) for step in plan.steps for move in step.moves}
        self._running = ActivePlan(plan, moves)
        log.info("carrying out a plan of %d moves, goal %s", len(moves), plan.goal)
        try:
            await self._exchange_now()
        except (EngineError, RebalanceError):
            self._forget("the flow service did not take it")
            raise
        return self.progress()

    async def stop(self) -> Json:
        """Begins no further step; moves that are under way go on. Returns the progress.

        Raises EngineError, RebalanceError.
        """
        self._require_leadership()
        if self._running is not None and self._running.is_active:
            self._running.is_stopped = True
            log.info("the plan of moves is stopped")
            await self._exchange_now()
        return self.progress()

    def progress(self) -> Json:
        """The body of /rebalance/progress. An empty goal: this replica has carried out no plan."""
        running = self._running
        return {
            "id": running.plan.id if running is not None else "",
            "goal": running.plan.goal if running is not None else "",
            "active": running is not None and running.is_active,
            "stopped": running is not None and running.is_stopped,
            "moves": [
                {
                    "step": tracked.step.step,
                    "pod": tracked.move.pod,
                    "uid": uid,
                    "from": tracked.move.source,
                    "to": tracked.move.target,
                    "state": tracked.state,
                    "reason": tracked.reason,
                }
                for uid, tracked in (running.moves.items() if running is not None else ())
            ],
        }

    def summary(self) -> Json | None:
        """Number of moves by state, for /status; None: no plan is being carried out."""
        running = self._running
        if running is None or not running.is_active:
            return None
        counts = running.counts()
        moves = {state: counts[state] for state in STATES}
        return {"goal": running.plan.goal, "stopped": running.is_stopped, "moves": moves}

    def _require_leadership(self) -> None:
        if not self._leadership.leads:
            raise RebalanceError(503, NOT_THE_LEADER)

    # -- events -----------------------------------------------------------------------------------------------

    def stand_by(self) -> None:
        """Another replica is, or may be, the leader."""
        self._forget("another replica may be the leader")

    def _forget(self, why: str) -> None:
        running, self._running = self._running, None
        if running is not None and running.is_active:
            log.warning("the plan of moves is forgotten: %s", why)
            for uid in running.moves:
                self._set_reason(uid, "")
        self._due.set()  # the engine may have steps of it

    async def run(self) -> None:
        """Follows the plan that is carried out. Never returns."""
        backoff = Backoff(_POLL_SECONDS, 10.0)
        while True:
            await self._due.wait()
            delay = _POLL_SECONDS
            try:
                await self.exchange()
                backoff.reset()
            except EngineError as error:
                delay = backoff.next()
                log.warning("cannot follow the plan of moves: %s; retry in %.1f s", error, delay)
                if error.code in ("UNAVAILABLE", "CLOSED"):
                    self._session.lost()
            await self._sleep(delay)

    # -- the engine -------------------------------------------------------------------------------------------

    async def _exchange_now(self) -> None:
        """Raises EngineError, or RebalanceError if the flow service is not there."""
        self._due.set()
        if not self._session.ready:
            raise RebalanceError(503, _UNSYNCHRONISED)
        try:
            async with asyncio.timeout(_PATIENCE_SECONDS):
                while not await self.exchange():
                    log.info("the flow service was restarted; sending the plan of moves again")
        except TimeoutError as error:
            raise RebalanceError(503, _UNSYNCHRONISED) from error

    async def exchange(self) -> bool:
        """Sends what the engine does not have yet, or else asks what has become of the moves. False: it has another
        epoch by now. Raises EngineError."""
        async with self._exchanging, self._session.call() as epoch:
            running = self._running
            steps = self._steps_to_send(epoch)
            if steps is not None:
                sent = self._sent = Sent(epoch, running, running is not None and running.is_stopped)
                request = flow_pb2.CarryOutRequest(epoch=epoch, now_us=self._now_us(), steps=steps)
                reply = await self._engine.carry_out(request)
                sent.is_answered = reply.status != flow_pb2.STALE_EPOCH
                self._changed()
            elif running is not None and running.is_active:
                reply = await self._engine.progress(flow_pb2.ProgressRequest(epoch=epoch))
            else:
                self._due.clear()
                return True
            if reply.status == flow_pb2.STALE_EPOCH:
                self._session.stale(epoch)
                return False
            if running is not None and running is self._running:
                self._take(running, reply)
            return True

    def _steps_to_send(self, epoch: int) -> list[flow_pb2.Step] | None:
        """None: the engine has what it should have."""
        running, sent = self._running, self._sent
        has_it = sent is not None and sent.plan is running and sent.epoch == epoch
        if running is not None and not has_it:
            self._settle_missing(running, is_first=sent is None or sent.plan is not running)
        if running is None or not running.is_active:
            is_left = sent is not None and sent.epoch == epoch and not (has_it and sent.is_answered)
            return [] if is_left else None
        if has_it and sent is not None and sent.is_answered and sent.is_stopped == running.is_stopped:
            return None
        if running.is_stopped:
            return []
        unsent = {uid for uid, tracked in running.moves.items() if tracked.state != "waiting"}
        return messages_of(self._store, running.plan.steps, unsent)

    def _settle_missing(self, running: ActivePlan, *, is_first: bool) -> None:
        """Ends the moves whose pods or nodes do not exist. The others get their tasks and reasons; those of pods that
        leave already are under way without the engine."""
        for uid, tracked in running.moves.items():
            if tracked.has_ended:
                continue
            known = self._store.pods.get(uid)
            if known is None and is_first:
                tracked.state, tracked.reason = "gone", "it had gone before"
            elif known is None:
                self._settle_gone(tracked)
            elif tracked.move.target not in self._store.nodes:
                self._set_state(uid, tracked, "dropped", f"there is no node {tracked.move.target}")
            else:
                tracked.task = known.task
                tracked.state, tracked.reason = "leaving" if known.leaving else "waiting", ""
                known.planned = reason(running.plan, tracked.step, tracked.move)

    def _take(self, running: ActivePlan, reply: flow_pb2.PlanProgress) -> None:
        """What the engine says has become of the moves. It does not have those of a plan that was stopped."""
        found = {progress.task_uid: progress for progress in reply.moves}
        for uid, tracked in running.moves.items():
            if tracked.has_ended:
                continue
            progress = found.get(tracked.task)
            if progress is not None and progress.stage in _STAGES:
                self._set_state(uid, tracked, _STAGES[progress.stage], progress.reason)
                continue
            known = self._store.pods.get(uid)
            if known is None:
                self._settle_gone(tracked)
            elif not known.leaving:
                why = "the plan was ended" if tracked.state == "waiting" else "it was not evicted"
                self._set_state(uid, tracked, "dropped", why)
        if not running.is_active:
            counts = ", ".join(f"{count} {state}" for state, count in sorted(running.counts().items()))
            log.info("the plan of moves has ended: %s", counts)

    def _settle_gone(self, tracked: TrackedMove) -> None:
        """The pod is gone, and the engine does not have its move."""
        if tracked.state == "waiting":
            tracked.state, tracked.reason = "dropped", "it has ended by itself"
        else:
            tracked.state, tracked.reason = "done", "it has left; where its successor runs is not known"

    def _set_state(self, uid: str, tracked: TrackedMove, state: str, why: str) -> None:
        known = self._store.pods.get(uid)
        if state == "dropped" and known is not None and known.migration_refused:
            why = f"its eviction was refused: {known.refusal}"
        tracked.state, tracked.reason = state, why
        if tracked.has_ended:
            self._set_reason(uid, "")

    def _set_reason(self, uid: str, why: str) -> None:
        known = self._store.pods.get(uid)
        if known is not None:
            known.planned = why
