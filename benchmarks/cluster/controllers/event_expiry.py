"""Expiry of events: above a maximum number the oldest are deleted."""

from __future__ import annotations

from collections import deque

from benchmarks.cluster.api.verbs import Api
from benchmarks.cluster.store.clock import Agenda
from benchmarks.cluster.store.kinds import EVENTS
from benchmarks.cluster.store.store import Change


class EventLife:
    """Deletes the oldest events."""

    def __init__(self, api: Api, agenda: Agenda, limit: int) -> None:
        self._api = api
        self._agenda = agenda
        self._limit = limit
        self._oldest: deque[tuple[str, str]] = deque()  # key, UID
        self._cleaning = False
        api.store.subscribe(EVENTS, self._changed)

    def _changed(self, change: Change) -> None:
        if change.type != "ADDED":
            return
        self._oldest.append((change.record.key, change.record.uid))
        if len(self._oldest) > self._limit and not self._cleaning:
            self._cleaning = True
            self._agenda.call_soon(self._clean)

    def _clean(self) -> None:
        self._cleaning = False
        objects = self._api.store.collection(EVENTS).objects
        while len(self._oldest) > self._limit:
            key, uid = self._oldest.popleft()
            record = objects.get(key)
            if record is not None and record.uid == uid:
                self._api.remove(EVENTS, record)
