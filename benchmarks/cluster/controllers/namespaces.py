"""The namespace controller: a default service account for each namespace; deletes the contents of deleted ones."""

from __future__ import annotations

from typing import Any

from benchmarks.cluster.api.deletion import delete
from benchmarks.cluster.api.verbs import Api
from benchmarks.cluster.store.clock import Agenda
from benchmarks.cluster.store.kinds import NAMESPACES, SERVICE_ACCOUNTS
from benchmarks.cluster.store.store import Change

Json = dict[str, Any]

_LOOK_AGAIN_S = 0.1


class Namespaces:
    """Watches namespaces."""

    def __init__(self, api: Api, agenda: Agenda) -> None:
        self._api = api
        self._agenda = agenda
        for record in list(api.store.collection(NAMESPACES).records()):
            self._equip(record.name)
        api.store.subscribe(NAMESPACES, self._changed)

    def _changed(self, change: Change) -> None:
        name = change.record.name
        if change.type == "ADDED":
            self._agenda.call_soon(lambda: self._equip(name))
        elif change.type == "MODIFIED" and change.record.deleting:
            self._agenda.call_soon(lambda: self._empty(name))

    def _equip(self, name: str) -> None:
        home = self._api.store.get(NAMESPACES, "", name)
        if home is None or home.deleting or self._api.store.get(SERVICE_ACCOUNTS, name, "default") is not None:
            return
        self._api.create(SERVICE_ACCOUNTS, name, {"metadata": {"name": "default"}})

    def _empty(self, name: str) -> None:
        home = self._api.store.get(NAMESPACES, "", name)
        if home is None or not home.deleting:
            return
        left = 0
        for collection in self._api.store.collections():
            if not collection.kind.namespaced:
                continue
            for record in list(collection.records(name)):
                if not record.deleting:
                    delete(self._api, collection.kind, name, record.name)
                left += record.key in collection.objects
        if left:
            self._agenda.after(_LOOK_AGAIN_S, lambda: self._empty(name))
            return
        obj = home.parse()
        obj["spec"].pop("finalizers", None)
        if obj["metadata"].get("finalizers"):
            self._api.store.put(NAMESPACES, obj, home)
        else:
            self._api.remove(NAMESPACES, home, obj)
