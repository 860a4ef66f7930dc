"""Which kind of queues is in force, and why a queue of another kind takes no pods."""

from collections.abc import Callable

from poseidon_py.state.queues.choice import NO_QUEUE, Namespaces, Query, Resolution
from poseidon_py.state.queues.kinds import AUTO, WITH_CONTROLLERS, sources_of
from poseidon_py.state.queues.source import Source

IN_USE = "in use"
"""With a kind: what choices depend on that name a queue of a kind that is not in force."""
_ADMITS = ("kueue",)
"""Kinds whose own controller admits pods before they reach a scheduler, so that quota must not be counted again."""


class InForce:
    """`select` after each change of the objects of `sources`, of `running` or of `unreadable`."""

    def __init__(self, mode: str, namespaces: Namespaces) -> None:
        """`mode`: a kind, auto or off."""
        self.mode = mode
        self.sources: dict[str, Source] = sources_of(mode, namespaces)
        self.running: dict[str, str] = {}
        """Kind -> the name of its own controller or scheduler if that runs, else empty; not in it: not known yet."""
        self.unreadable: dict[str, str] = {}
        """Kinds whose objects cannot be read -> why, and the remedy."""
        self.unchecked: Callable[[], None] = lambda: None
        """Called when it matters whether the controller of a kind runs, and that is not known."""
        self.active: Source | None = None
        """The kind in force; None: no quota is counted."""
        self.select()

    def select(self) -> bool:
        """Chooses the kind in force. Returns whether it has changed."""
        before, self.active = self.active, self._best()
        return self.active is not before

    def _best(self) -> Source | None:
        for kind, source in self.sources.items():
            if self.mode == AUTO and not source.in_use:
                continue
            if (self.mode == AUTO or kind in _ADMITS) and self.running.get(kind):
                continue
            if kind in self.unreadable:
                continue
            if self._is_unchecked(kind):
                self.unchecked()
                continue
            return source
        return self.sources.get("poseidon")

    def _is_unchecked(self, kind: str) -> bool:
        """Whether the kind may be in force or not, depending on who runs, and that is not known yet."""
        decides = kind in WITH_CONTROLLERS and (self.mode == AUTO or kind in _ADMITS)
        return decides and kind not in self.running and self.sources[kind].in_use

    def resolution(self, query: Query) -> Resolution:
        """The queue of a choice. Pods that name a queue of a kind that is not in force wait, unless they are left to
        the scheduler or controller of that kind."""
        found = self.active.resolve(query) if self.active is not None else NO_QUEUE
        if found != NO_QUEUE:
            return found
        for kind, source in self.sources.items():
            if source is self.active or self.running.get(kind):
                continue
            named = source.named(query)
            if named.key:
                query.depends_on.add((IN_USE, kind))
                problem = self._why_not(kind, named)
                return Resolution(f"not in force/{named.key}", named.name, named.chosen_by, problem)
        return NO_QUEUE

    def _why_not(self, kind: str, named: Resolution) -> str:
        """Why a queue of a kind that is not in force takes no pods, and the remedy."""
        if kind in self.unreadable:
            return f"queue {named.name} is not known: {self.unreadable[kind]}"
        if self._is_unchecked(kind):
            return f"queue {named.name} waits until it is known whether the controller of kind {kind} runs"
        if named.problem:
            return named.problem
        if not self.sources[kind].in_use:
            return f"queue {named.name} does not exist: create it or change {named.chosen_by}"
        return (
            f"queue {named.name} is of kind {kind}, but {self._standing()}: name one of those, or run the scheduler "
            f"with --queues {kind}"
        )

    def _standing(self) -> str:
        kind = f"queues of kind {self.active.kind}" if self.active is not None else "no queues"
        return f"{kind} are in force"

    def why(self) -> str:
        """Which queues are in force, and why."""
        others = [
            f"{name} runs and admits by its own queues, so those of kind {kind} are not counted again"
            if kind in _ADMITS
            else f"{name} runs, so the queues of kind {kind} are left to it; --queues {kind} counts them here, too"
            for kind, name in self.running.items()
            if name and self.sources[kind].in_use and self.sources[kind] is not self.active
        ]
        idle = [kind for kind, each in self.sources.items() if each.in_use and each is not self.active]
        if unchecked := [kind for kind in idle if self._is_unchecked(kind)]:
            others.append(f"pods wait until it is known whether the controller of kind {', '.join(unchecked)} runs")
        if unused := [kind for kind in idle if not (kind in unchecked or self.running.get(kind))]:
            others.append(
                f"queues of kind {', '.join(unused)} are not used, so pods that name them wait; --queues names the "
                "kind to use"
            )
        others += [f"queues of kind {kind} are not known: {why}" for kind, why in self.unreadable.items()]
        return "; ".join([self._standing(), *others])

    @property
    def admits_workloads(self) -> bool:
        """Whether the queues in force admit workloads, not pods, and nobody else admits these."""
        return self.active is not None and self.active.kind in _ADMITS and not self.running.get(self.active.kind)

    @property
    def writes_status(self) -> bool:
        """Whether no controller of the kind in force writes the status of its objects."""
        if self.active is None:
            return False
        kind = self.active.kind
        return kind not in WITH_CONTROLLERS or self.running.get(kind) == ""
