"""One resource that a server may or may not serve, and what is known of it."""

import asyncio
import math
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from poseidon_py.kube.informers.resource import Resource
from poseidon_py.kube.list_watch import Handler


class ClearedHandler(Handler[Any], Protocol):
    """The handler of a watch of a resource that can disappear."""

    def clear(self) -> None:
        """Forget all objects: the resource is not served any more, or in versions that are not supported."""


def _nobody() -> None:
    pass


class Informer:
    """Its objects are known, or it is known why they are not.

    ready   path   unreadable
    no      any    any          it is not known yet, or required and unreadable
    yes     yes    empty        the handler has its objects
    yes     empty  empty        it is not served: there are no objects
    yes     empty  why          it is served, and its objects cannot be read
    """

    def __init__(
        self,
        resource: Resource,
        handler: ClearedHandler,
        item: type[Any],
        without: str,
        *,
        required: bool = False,
        settled: Callable[[], None] = _nobody,
        namespace: str = "",
        selector: str = "",
        labels: str = "",
        metadata_only: bool = False,
        metadata_suffices: bool = False,
        patience: float = math.inf,
    ) -> None:
        """`item`: the type of the objects. `without`: what follows if they cannot be read; `required`: it is not ready
        then. `settled`: called when what is known changes, and when it takes long until something is. `namespace`: the
        one whose objects are read; empty: all. `selector`: of fields; `labels`: of labels. `metadata_only`: the server
        sends nothing but their metadata; `metadata_suffices`: it does where none of the supported versions is served.
        `patience`: seconds after which any error of the server counts as unreadable, not only 403 and 404."""
        self.resource = resource
        self.handler = handler
        self.item = item
        self.without = without
        self.required = required
        self.settled = settled
        self.namespace = namespace
        self.selector = selector
        self.labels = labels
        self.patience = patience
        self.metadata_only = metadata_only
        """Whether metadata is all that is read of its objects now."""
        self._always_metadata = metadata_only
        self._metadata_suffices = metadata_suffices
        self.location = ""
        """API path of its objects; empty: not served in a version that can be read, as far as it is known."""
        self.ready = False
        self.unreadable = ""
        """Why none of its objects is known although it is served, and the remedy."""
        self.unsupported = ""
        """The versions in which it is served, if none of them is supported."""
        self.delayed = ""
        """Why it takes long until it is ready; empty: it does not."""
        self.added_at = 0.0
        """Seconds of the event loop, as those below."""
        self.checked_at = -math.inf
        """When the server was asked whether it is served."""
        self.awaited = True
        """Whether somebody looks for its objects: as long as it is absent, it is then discovered often."""
        self.demanded_at: float | None = None
        """Since when something waits for the next discovery."""
        self.missing_once = False
        """Whether the last discovery missed it although it was served, as happens while a server starts."""
        self.task: asyncio.Task[None] | None = None

    @property
    def path(self) -> str:
        """API path of the objects that are known, or are being listed; empty: there are none, or they cannot be
        read."""
        return "" if self.unreadable else self.location

    @property
    def left_out(self) -> str:
        """Why it is not read, or not in full, and the remedy; empty: it is, or is not served."""
        if not self.unsupported:
            return self.unreadable
        return f"{self.unsupported}, which are supported; serve one of these, or upgrade the scheduler"

    def choose(self, served: Sequence[str]) -> str:
        """The version to read of those that are served; empty: none. Notes what follows from it."""
        supported = self.resource.versions
        version = next((each for each in supported if each in served), "")
        others = bool(served) and not version
        self.unsupported = ""
        if others and supported:
            versions = f"{', '.join(served)}, not in {' or '.join(supported)}"
            self.unsupported = f"{self.resource.label} is served in {versions}"
        any_version = others and (self._metadata_suffices or not supported)
        self.metadata_only = self._always_metadata or any_version
        return served[0] if any_version else version
