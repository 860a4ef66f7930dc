"""What a transition is, and the one place of an observer through which all of them pass to its listeners."""

import logging
from collections.abc import Callable, Mapping
from typing import Any, Generic, Literal, TypeVar

from msgspec import Struct
from prometheus_client import Counter

log = logging.getLogger(__name__)

Machine = Literal["job", "task", "replica"]
Tables = Mapping[Machine, Mapping[Any, frozenset[Any]]]


class AnyTransition(Struct, frozen=True):
    """One transition. `time`: seconds since the epoch; `reason`: the event or action that caused it, if it is known."""

    machine: Machine
    old: str
    new: str
    namespace: str
    job: str
    job_uid: str
    time: float
    task: str = ""
    pod: str = ""
    pod_uid: str = ""
    reason: str = ""
    message: str = ""
    since: float = 0.0
    """When the state before began, in seconds since the epoch; 0: unknown."""

    @property
    def object(self) -> str:
        """For logs."""
        return "/".join(filter(None, (self.namespace, self.job, self.task, self.pod)))


T = TypeVar("T", bound=AnyTransition)


class AnyTransitions(Generic[T]):
    """`listeners` may be added to at any time; they are called in order and must not block."""

    def __init__(self, tables: Tables, passed: Counter, illegal: Counter, job_level: int = logging.INFO) -> None:
        """`passed`: by machine and new state; `illegal`: by machine, old and new state. `job_level`: the level at which
        transitions of jobs are logged; others are logged for debugging."""
        self.listeners: list[Callable[[T], None]] = []
        self._tables = tables
        self._passed = passed
        self._illegal = illegal
        self._children: dict[tuple[str, str], Counter] = {}
        """Of `passed`, by machine and new state: to look one up there takes several times as long."""
        self._job_level = job_level

    def passed(self, transition: T) -> None:
        """A transition has taken place. A listener that fails stops neither the others nor the observer."""
        it = transition
        if it.new not in self._tables[it.machine].get(it.old, frozenset()):
            self._illegal.labels(it.machine, it.old, it.new).inc()
            log.warning(
                "%s %s went from %r to %r, which its machine does not have", it.machine, it.object, it.old, it.new
            )
        child = self._children.get((it.machine, it.new))
        if child is None:
            child = self._children[it.machine, it.new] = self._passed.labels(it.machine, it.new)
        child.inc()
        level = self._job_level if it.machine == "job" else logging.DEBUG
        if log.isEnabledFor(level):
            why = f": {it.message or it.reason}" if it.message or it.reason else ""
            log.log(level, "%s %s: %s -> %s%s", it.machine, it.object, it.old or "new", it.new, why)
        for listener in self.listeners:
            try:
                listener(transition)
            except Exception:
                log.exception("a listener to transitions failed")
