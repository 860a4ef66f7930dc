"""Decodes objects of resource.k8s.io, and reports what they declare without effect, which only the leader publishes.

A driver writes a slice for each node: what is said of one of them is not said of the others.
"""

from collections.abc import Callable
from typing import Any, Generic, NamedTuple, TypeVar

from msgspec import Struct

from poseidon_py.conventions.fields import NO_REMARKS, Remarks, remarks_on
from poseidon_py.conventions.table import kind_table
from poseidon_py.devices.objects import GROUP, ResourceSlice, WatchedObject
from poseidon_py.kube.objects import InvalidField, Metadata, decode
from poseidon_py.rounds.leadership import Leadership
from poseidon_py.util.unknown_names import has_unknown_names

T = TypeVar("T", bound=Struct)


class _Declaration(NamedTuple):
    version: str
    kind: str
    metadata: Metadata
    texts: tuple[str, ...]


class DeclarationReports:
    """`put` what is said of each object; `gone` when it is deleted; `lead` when this process becomes the leader."""

    def __init__(self, remark: Callable[[str, str, str, str, str, str], None], leadership: Leadership) -> None:
        """`remark`: Reporter.remark_on_object."""
        self._remark = remark
        self._leadership = leadership
        self._declared: dict[tuple[str, object], _Declaration] = {}
        """By kind and key, of objects of which something is said."""
        self._drivers: dict[tuple[str, str], object] = {}
        """Driver, and what is said of a slice of it -> the key of the slice."""

    def put(self, version: str, kind: str, key: object, metadata: Metadata, remarks: Remarks, driver: str = "") -> None:
        """`driver`: of a slice."""
        before = self._declared.pop((kind, key), None)
        texts = remarks.reported + remarks.refused
        if driver:
            texts = tuple(text for text in texts if self._drivers.setdefault((driver, text), key) == key)
        if texts:
            declared = self._declared[kind, key] = _Declaration(version, kind, metadata, texts)
            self._publish(declared, before.texts if before is not None else ())

    def gone(self, kind: str, key: object) -> None:
        if self._declared.pop((kind, key), None) is not None:
            self._drivers = {text: of for text, of in self._drivers.items() if of != key}

    def lead(self) -> None:
        """Reports what was observed while another replica was the leader."""
        for declared in list(self._declared.values()):
            self._publish(declared, ())

    def _publish(self, declared: _Declaration, published: tuple[str, ...]) -> None:
        if not self._leadership.leads:
            return
        about = declared.metadata
        for text in declared.texts:
            if text not in published:
                named = about.namespace, about.name, about.uid
                self._remark(declared.version, declared.kind, *named, text)


class DeclarationReader(Generic[T]):
    """Passes the objects of a kind on, decoded."""

    def __init__(
        self,
        kind: type[T],
        parts: tuple[type[Struct], type[Struct] | None],
        key: Callable[[Metadata], Any],
        put: Callable[[T], None],
        drop: Callable[[Any], None],
        reports: DeclarationReports,
        version: Callable[[], str],
    ) -> None:
        """`parts`: the types of spec and of status, if that is read. `put`, `drop`: take an object, and the key of one
        that is gone. `version`: the API version that is read."""
        table = kind_table(GROUP, kind.__name__)
        if table is None:
            raise ValueError(f"{kind.__name__} is not in the table")
        self._table = table
        self._kind = kind
        self._spec, self._status = parts
        self._key = key
        self._put = put
        self._drop = drop
        self._reports = reports
        self._version = version

    def put(self, item: WatchedObject) -> None:
        """Raises InvalidField for what cannot be decoded, or is refused."""
        spec: Any = decode(item.spec, self._spec, "spec") or self._spec()
        status = decode(item.status, self._status, "status") or self._status() if self._status is not None else None
        remarks = self._remarks(item)
        driver = spec.driver if self._kind is ResourceSlice else ""
        key = self._key(item.metadata)
        self._reports.put(self._version(), self._table.kind, key, item.metadata, remarks, driver)
        if remarks.refused:
            raise InvalidField(*remarks.refused[0].split(": ", 1))
        self._put(self._kind(item.metadata, spec, *(() if status is None else (status,))))

    def drop(self, key: Any) -> None:
        self._reports.gone(self._table.kind, key)
        self._drop(key)

    def _remarks(self, item: WatchedObject) -> Remarks:
        if not has_unknown_names(item.spec, self._spec):
            return NO_REMARKS
        return remarks_on(self._table, {"spec": decode(item.spec, dict[str, Any], "spec") or {}})
