"""Compares the fields of an object with the table."""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from poseidon_py.conventions.verdicts import Effect, KindTable, Rows, Verdict

_MAX_REMARKS = 10
"""Remarks on one object."""


class Remarks(NamedTuple):
    """What is said of an object: each with the field, and what follows."""

    reported: tuple[str, ...] = ()
    refused: tuple[str, ...] = ()


NO_REMARKS = Remarks()


def remarks_on(kind: KindTable, content: Mapping[str, object], part: str = "", place: str = "") -> Remarks:
    """What is said of the fields of an object. `content`: its fields by name, such as spec. If it is a part of the
    object: `part`: its path in the table; `place`: its path in messages."""
    reported: list[str] = []
    refused: list[str] = []
    for row, value, verdict in _rows(kind, content, part):
        path = f"{place}{row.removeprefix(part)}" if part else row
        if verdict is None:
            if kind.selected:
                continue
            reported.append(f"{path}: is not known here and has no effect; remove it, or use a version that knows it")
        elif verdict.effect is Effect.REPORTED and value not in verdict.neutral:
            reported.append(f"{path}: {verdict.text}")
        elif verdict.effect is Effect.REFUSED and value not in verdict.neutral:
            refused.append(f"{path}: {verdict.text}")
    return Remarks(_some(reported), _some(refused)) if reported or refused else NO_REMARKS


def _some(remarks: list[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(remarks))[:_MAX_REMARKS]


def _rows(kind: KindTable, content: Mapping[str, object], part: str) -> Iterator[tuple[str, object, Verdict | None]]:
    """The fields that are set: path, value, verdict; None: the field is not in the table. Empty ones do not count."""
    pending: list[tuple[str, object]] = [
        (f"{part}.{name}" if part else str(name), value) for name, value in content.items()
    ]
    while pending:
        path, value = pending.pop()
        if value is None or value == {} or value == []:
            if f"{path}{{}}" in kind.fields and value == {}:
                yield path, value, kind.fields[f"{path}{{}}"]
            continue
        found = _verdict(kind.fields, path)
        if found is not None:
            yield path, value, found
        elif isinstance(value, dict) and path in kind.parts:
            if f"{path}{{}}" in kind.parts:
                pending += [(f"{path}{{}}", each) for each in value.values()]
            else:
                pending += [(f"{path}.{name}", each) for name, each in value.items()]
        elif isinstance(value, list) and f"{path}[]" in kind.parts:
            pending += [(f"{path}[]", each) for each in value]
        else:
            yield path, value, None


def _verdict(rows: Rows, path: str) -> Verdict | None:
    return next((rows[each] for each in (path, f"{path}{{}}", f"{path}[]", f"{path}{{}}[]") if each in rows), None)
