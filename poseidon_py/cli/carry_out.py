"""Has a plan of moves carried out by the leader, and follows it to its end, also over a change of leaders.

A new leader knows nothing of the plan: it is sent the moves that have not ended. Those whose pods have gone meanwhile
are done.
"""

import time
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from poseidon_py.app.move_plan import Plan, encode_plan, without
from poseidon_py.cli.reaching.routes import AskError, Route, ask

_POLL_SECONDS = 1.0
_ANSWER_SECONDS = 5.0
"""How long an answer about the progress is waited for: a replica that is suspended accepts connections."""
_PATIENCE_SECONDS = 60.0
"""How long a leader is looked for once the connection or the leader is lost."""
_TRANSIENT = (0, 503)
"""HTTP statuses; 0: no answer."""
_UNDER_WAY = ("leaving", "awaited")


class Replicas:
    """Schedulers at some addresses, or the leader, wherever it is. `ask` begins with the one that gave the last
    answer."""

    def __init__(self, routes: Sequence[Route], leader: Callable[[], Route] | None = None) -> None:
        """`leader`: finds the way to the leader, also once another process leads; None: there are these routes
        alone."""
        self._routes = list(routes)
        self._leader = leader

    def ask(self, path: str, **request: Any) -> dict[str, Any]:
        """The first answer; see `routes.ask`. Raises AskError: the last one, or one that another replica does not
        change."""
        if not self._routes and self._leader is not None:
            self._routes.append(self._leader())
        for left in reversed(range(len(self._routes))):
            try:
                return ask(self._routes[0], path, **request)
            except AskError as error:
                if error.status in _TRANSIENT and self._leader is not None:
                    self._routes.clear()  # to be found again
                if error.status not in _TRANSIENT or not left:
                    raise
                self._routes.append(self._routes.pop(0))
        raise AskError("no address is given; give --address HOST:PORT")


class Execution:
    """`run` to the end of all moves; `stop` early."""

    def __init__(
        self,
        replicas: Replicas,
        plan: Plan,
        say: Callable[[str], None],
        *,
        sleep: Callable[[float], None] = time.sleep,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        """`plan`: with an id; `say` prints a line."""
        self._replicas = replicas
        self._plan = plan
        self._say = say
        self._sleep = sleep
        self._monotonic = monotonic
        self._moves = {move.uid: move for move in plan.moves}
        self.states: dict[str, tuple[str, str]] = dict.fromkeys(self._moves, ("waiting", ""))
        """State and reason of each move, by UID."""
        self._waits: set[str] = set()
        """Reasons for which moves wait, as reported."""
        self._is_sent_again = False
        self._lost_at: float | None = None

    @property
    def ended(self) -> set[str]:
        """UIDs of the moves that have ended."""
        return {uid for uid, (state, _) in self.states.items() if state not in ("waiting", *_UNDER_WAY)}

    def run(self) -> None:
        """Raises AskError."""
        self._take(self._send())
        while len(self.ended) < len(self.states):
            self._sleep(_POLL_SECONDS)
            self._follow()

    def stop(self) -> None:
        """No further step begins. Raises AskError."""
        self._take(self._replicas.ask("/rebalance", method="DELETE"))
        names = [self._moves[uid].pod for uid, (state, _) in self.states.items() if state in _UNDER_WAY]
        self._say(f"stopped: no further step begins; under way: {', '.join(names) or 'none'}")

    def _send(self) -> dict[str, Any]:
        body = encode_plan(without(self._plan, self.ended))
        return self._replicas.ask("/rebalance", method="POST", body=body)

    def _follow(self) -> None:
        """Raises AskError once there has been no leader for a while."""
        try:
            progress = self._replicas.ask("/rebalance/progress", timeout=_ANSWER_SECONDS)
            if progress.get("id") != self._plan.id:
                self._is_sent_again = True
                progress = self._send()
                self._say(f"sent the remaining {len(self.states) - len(self.ended)} moves to the leader again")
        except AskError as error:
            now = self._monotonic()
            if self._lost_at is None:
                self._lost_at = now
                self._say(f"no leader answers ({error}); retrying for {_PATIENCE_SECONDS:.0f} s")
            if error.status not in _TRANSIENT or now - self._lost_at >= _PATIENCE_SECONDS:
                raise
        else:
            self._lost_at = None
            self._take(progress)

    def _take(self, progress: dict[str, Any]) -> None:
        waits: Counter[str] = Counter()
        for found in progress.get("moves", ()):
            uid, state, why = found["uid"], found["state"], found["reason"]
            if state == "gone":
                state = "done" if self._is_sent_again else "dropped"
            if state == "waiting":
                waits[why] += 1
            before, self.states[uid] = self.states[uid], (state, why)
            if state != "waiting" and before != (state, why):
                self._report(uid)
        for why, count in waits.items():
            if why and why not in self._waits:
                self._say(f"{len(self.ended)}/{len(self.states)}  {count} waiting: {why}")
        self._waits = set(waits)

    def _report(self, uid: str) -> None:
        move, (state, why) = self._moves[uid], self.states[uid]
        number = f"{len(self.ended)}/{len(self.states)}"
        self._say(f"{number}  {move.pod}  {move.source} -> {move.target}  {state}{': ' if why else ''}{why}")
