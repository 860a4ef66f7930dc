"""Custom resource definitions: a new one serves its resource, a deleted one deletes all its objects."""

from __future__ import annotations

from typing import Any

from benchmarks.cluster.api.verbs import Api
from benchmarks.cluster.store.clock import Agenda, now_text
from benchmarks.cluster.store.kinds import DEFINITIONS, Kind, Kinds
from benchmarks.cluster.store.store import Change

Json = dict[str, Any]


class Definitions:
    """Keeps the table of kinds consistent with the definitions."""

    def __init__(self, api: Api, kinds: Kinds, agenda: Agenda) -> None:
        self._api = api
        self._kinds = kinds
        self._agenda = agenda
        self._served: dict[str, list[Kind]] = {}
        api.store.subscribe(DEFINITIONS, self._changed)

    def _changed(self, change: Change) -> None:
        name = change.record.name
        if change.type == "DELETED":
            self._agenda.call_soon(lambda: self._end(name))
        elif change.type == "ADDED":
            self._serve(change.record.parse())  # at once, so that the next request finds it
            self._agenda.call_soon(lambda: self._accept(name))
        elif change.before is None or change.before.raw != change.record.raw:
            self._serve(change.record.parse())

    def _serve(self, definition: Json) -> None:
        spec = definition["spec"]
        name = definition["metadata"]["name"]
        names = spec["names"]
        before = {kind.version: kind for kind in self._served.get(name, ())}
        stored: Kind | None = next((kind for kind in before.values() if kind.stored_as is None), None)
        kinds: list[Kind] = []
        for version in sorted(spec["versions"], key=lambda one: not one.get("storage")):
            if not version.get("served", True) and not version.get("storage"):
                continue
            subresources = version.get("subresources") or {}
            desired = Kind(
                spec["group"],
                version["name"],
                names["plural"],
                names["kind"],
                spec.get("scope") == "Namespaced",
                tuple(names.get("shortNames") or ()),
                tuple(names.get("categories") or ()),
                tuple(one for one in ("status", "scale") if one in subresources),
                extra_columns=tuple(version.get("additionalPrinterColumns") or ()),
                custom=True,
                stored_as=stored if stored is not None and stored.version != version["name"] else None,
            )
            known = before.get(version["name"])
            if known is not None and _same(known, desired):
                desired = known  # a new Kind would be a new, empty collection
            if stored is None:
                stored = desired
            kinds.append(desired)
        for kind in kinds:
            self._kinds.add(kind)
        self._served[name] = kinds

    def _accept(self, name: str) -> None:
        record = self._api.store.get(DEFINITIONS, "", name)
        if record is None:
            return
        definition = record.parse()
        now = now_text()
        definition["status"] = {
            "acceptedNames": definition["spec"]["names"],
            "storedVersions": [one["name"] for one in definition["spec"]["versions"] if one.get("storage")],
            "conditions": [
                {
                    "type": type_,
                    "status": "True",
                    "reason": reason,
                    "message": message,
                    "lastTransitionTime": now,
                }
                for type_, reason, message in (
                    ("NamesAccepted", "NoConflicts", "no conflicts found"),
                    ("Established", "InitialNamesAccepted", "the initial names have been accepted"),
                )
            ],
        }
        self._api.store.put(DEFINITIONS, definition, record)

    def _end(self, name: str) -> None:
        if self._api.store.get(DEFINITIONS, "", name) is not None:
            return  # created again meanwhile
        for kind in self._served.pop(name, ()):
            self._kinds.remove(kind)
            if kind.stored_as is None:
                for record in list(self._api.store.collection(kind).records()):
                    self._api.remove(kind, record)
                self._api.store.drop(kind)


def _same(one: Kind, other: Kind) -> bool:
    return (one.namespaced, one.subresources, one.short, one.extra_columns, one.stored_as) == (
        other.namespaced,
        other.subresources,
        other.short,
        other.extra_columns,
        other.stored_as,
    )
