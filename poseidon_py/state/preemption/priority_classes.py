"""What PriorityClasses say about the preemption of their pods. Their values are not read here: pods have them.

    unread --listed--> known <--changed, deleted--+
       |                                          |
       +--may not be read: pods that name a class are not preempted until it may

A class that is deleted counts for a moment longer: its value can only be changed by creating it anew.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping

from poseidon_py.describe.annotations.class_terms import SILENT_CLASS, UNREAD_CLASS, ClassTerms
from poseidon_py.state.records import PodRecord

log = logging.getLogger(__name__)

DELETED_SECONDS = 10.0
"""For so long a class that is deleted still counts."""


class PriorityClasses:
    """`put` and `drop` what the watch reports; `set_read`; `terms_of` for each pod that is described."""

    def __init__(self, pods: Mapping[str, PodRecord], touch: Callable[[str], None]) -> None:
        """`touch`: called with the UID of each pod whose class says something else now."""
        self.known = asyncio.Event()
        """Set once it is known whether the classes can be read, or that takes long."""
        self.call_later: Callable[[float, Callable[[], None]], object] = lambda seconds, call: (
            asyncio.get_running_loop().call_later(seconds, call)
        )
        self._pods = pods
        self._touch = touch
        self._read = True
        self._terms: dict[str, ClassTerms] = {}
        """By name, of those that say anything."""
        self._deleted: dict[str, object] = {}
        """By name, what stands for the last deletion of a class that still counts."""
        self._touched_at: set[tuple[str, int]] = set()

    def set_read(self, read: bool) -> None:
        """Whether all classes are known."""
        if read != self._read:
            self._read = read
            self._changed(None)

    def put(self, name: str, terms: ClassTerms) -> None:
        """The class exists or has changed."""
        self._deleted.pop(name, None)
        if terms != self._terms.get(name, SILENT_CLASS):
            self._terms[name] = terms
            self._changed(name)

    def drop(self, name: str) -> None:
        """The class is deleted."""
        if name in self._terms:
            deletion = self._deleted[name] = object()
            self.call_later(DELETED_SECONDS, lambda: self._forget(name, deletion))

    def _forget(self, name: str, deletion: object) -> None:
        if self._deleted.get(name) is deletion:
            del self._deleted[name]
            del self._terms[name]
            self._changed(name)

    def touch_at(self, uid: str, when_us: int, now_us: int) -> None:
        """A pod is described again then, in microseconds since the epoch: its own protection ends, and that of its
        class goes on."""
        key = uid, when_us

        def touch() -> None:
            self._touched_at.discard(key)
            self._touch(uid)

        if key not in self._touched_at:
            self._touched_at.add(key)
            self.call_later((when_us - now_us) / 1e6, touch)

    def terms_of(self, name: str) -> ClassTerms:
        """`name`: that of a pod's class; empty: it has none."""
        if not name:
            return SILENT_CLASS
        return self._terms.get(name, SILENT_CLASS) if self._read else UNREAD_CLASS

    def _changed(self, name: str | None) -> None:
        """Pods of the class are described again; None: those of all classes."""
        for known in list(self._pods.values()):
            own = known.described.priority_class
            if own and name in (None, own):
                self._touch(known.uid)
