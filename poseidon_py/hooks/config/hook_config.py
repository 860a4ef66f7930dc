"""The configuration of hooks, as it is used."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from poseidon_py.hooks.config.sources import Source
from poseidon_py.hooks.transition import Transition

MACHINES = ("job", "task", "replica", "queue", "preemption")


@dataclass(frozen=True, slots=True)
class Selector:
    """Selects transitions; None selects any."""

    machines: frozenset[str] | None = None
    before: frozenset[str] | None = None
    after: frozenset[str] | None = None

    def selects(self, transition: Transition) -> bool:
        return (
            (self.machines is None or transition.machine in self.machines)
            and (self.before is None or transition.before in self.before)
            and (self.after is None or transition.after in self.after)
        )


@dataclass(frozen=True, slots=True)
class Retry:
    """How failed attempts are repeated. Delays in seconds, doubling from `first` to `longest`."""

    attempts: int = 20
    first: float = 1.0
    longest: float = 600.0


@dataclass(frozen=True, slots=True)
class Hook:
    """One endpoint, and the transitions that it is called for."""

    name: str
    url: str
    on: tuple[Selector, ...] = (Selector(),)
    namespaces: frozenset[str] | None = None
    """None: all."""
    secret: Source | None = None
    """The keys of signatures; None: deliveries are not signed."""
    timeout: float = 10.0
    """Seconds for an attempt."""
    retry: Retry = Retry()
    headers: tuple[tuple[str, Source], ...] = ()
    ca: Path | None = None
    """File of the certificates that the endpoint's is verified by; None: those of the system."""
    concurrency: int = 8
    """Attempts at the same time."""
    max_pending: int = 10_000
    """Deliveries that wait; above it the oldest become dead letters."""
    max_dead: int = 1000
    """Dead letters; above it the oldest are dropped."""

    def selects(self, transition: Transition) -> bool:
        if self.namespaces is not None and transition.namespace not in self.namespaces:
            return False
        return any(selector.selects(transition) for selector in self.on)


@dataclass(frozen=True, slots=True)
class HookConfig:
    """All hooks, and where their deliveries are stored."""

    hooks: tuple[Hook, ...] = ()
    namespace: str = ""
    """Namespace of the objects that hold pending deliveries; empty: that of the controller's lease."""

    def selecting(self, transition: Transition) -> Iterator[Hook]:
        """The hooks that are called for a transition."""
        return (hook for hook in self.hooks if hook.selects(transition))


def words(values: Iterable[str]) -> frozenset[str] | None:
    """The values of a selector; None if they have a `*`."""
    found = frozenset(values)
    return None if "*" in found else found
