"""The table of conventions against the schemas of the conventions, and against what happens."""

import json
from importlib import import_module

import pytest

from poseidon_py.conventions.fields import remarks_on
from poseidon_py.conventions.keys import WORDS, remarks_on_object, remarks_on_pod
from poseidon_py.conventions.page import page
from poseidon_py.conventions.table import CONVENTIONS, kind_table
from poseidon_py.conventions.tables.own import PREFIX
from poseidon_py.conventions.verdicts import Effect
from tests.paths import ROOT
from tests.poseidon_py.conventions import schema_files as schemas
from tests.poseidon_py.conventions.case import changed
from tests.poseidon_py.conventions.outcomes import outcome

BY_NAME = {each.name: each for each in CONVENTIONS}
_MODULES = (
    "native",
    "devices",
    "coscheduling",
    "volcano",
    "kai",
    "kueue",
    "yunikorn",
    "own",
    "koordinator",
    "workloads",
    "others",
)


def test_each_schema_has_a_table():
    assert set(schemas.NAMES) == BY_NAME.keys() - {"poseidon"}


@pytest.mark.parametrize("name", schemas.NAMES)
def test_every_field_is_classified_and_no_other(name):
    """A field that nobody classified fails, and so does a row of a field that does not exist."""
    wrong: dict[str, set[str]] = {}
    of_table = {(kind.group, kind.kind, version): kind for each in CONVENTIONS for kind in each.kinds
                for version in kind.versions}  # fmt: skip
    for (group, kind, version), fields in schemas.kinds(name).items():
        table = of_table.get((group, kind, version))
        if table is None or not table.unread:
            rows = set(table.fields) if table is not None else set()
            if fields != rows and not (table is not None and fields < rows and len(table.versions) > 1):
                wrong[f"{kind} {group}/{version}"] = fields ^ rows
    assert wrong == {}


@pytest.mark.parametrize("name", schemas.NAMES)
@pytest.mark.parametrize("what", ["annotations", "labels"])
def test_every_key_is_classified(name, what):
    missing = {}
    for key, places in schemas.keys(name, what).items():
        tables = [getattr(part, what) for each in CONVENTIONS for part in ((each.pods,) if "pod" in places
                  else (each.pods, each.objects))]  # fmt: skip
        if not any(key in table for table in tables):
            missing[key] = places
    assert missing == {}


@pytest.mark.parametrize("name", BY_NAME)
def test_each_key_that_is_reported_or_refused_contains_a_word_that_is_searched_for(name):
    table = BY_NAME[name]
    spoken_of = [
        key
        for part in (table.pods, table.objects)
        for rows in (part.annotations, part.labels)
        for key, verdict in rows.items()
        if verdict.effect in (Effect.REPORTED, Effect.REFUSED)
    ]
    assert [key for key in spoken_of if not any(word in key.encode() for word in WORDS)] == []


def _rows(effect):
    return [
        pytest.param(kind, path, verdict, id=f"{kind.title} {path}")
        for each in CONVENTIONS
        for kind in {(kind.group, kind.kind): kind for kind in each.kinds}.values()
        if (merged := kind_table(kind.group, kind.kind)) is not None
        for path, verdict in merged.fields.items()
        if verdict.effect is effect
    ]


def _some_value(path):
    return {"x": "y"} if path.endswith("{}") else ["x"] if path.endswith("[]") else "x"


def _remarks(kind, path, value):
    table = kind_table(kind.group, kind.kind)
    assert table is not None
    return remarks_on(table, changed({}, path, value))


@pytest.mark.parametrize(("kind", "path", "verdict"), [*_rows(Effect.REPORTED), *_rows(Effect.REFUSED)])
def test_what_is_told_or_refused_is_said_of_an_object_with_that_field_alone(kind, path, verdict):
    value = _some_value(path)
    found = _remarks(kind, path, value)
    message = f"{path.removesuffix('{}').removesuffix('[]')}: {verdict.text}"
    assert (found.reported, found.refused) == (
        ((message,), ()) if verdict.effect is Effect.REPORTED else ((), (message,))
    )
    for neutral in verdict.neutral:
        assert _remarks(kind, path, neutral) == ((), ())


@pytest.mark.parametrize(
    ("kind", "path", "verdict"), [*_rows(Effect.HONOURED), *_rows(Effect.DELEGATED), *_rows(Effect.UNNEEDED)]
)
def test_of_what_is_honoured_or_read_elsewhere_nothing_is_said(kind, path, verdict):
    value = _some_value(path)
    assert _remarks(kind, path, value) == ((), ())


def test_an_unknown_field_is_told():
    kind = kind_table("scheduling.volcano.sh", "PodGroup")
    assert kind is not None
    found = remarks_on(kind, {"spec": {"minMember": 2, "colour": "red", "networkTopology": {"shape": {"a": 1}}}})
    assert [text.partition(":")[0] for text in found.reported] == ["spec.networkTopology.shape", "spec.colour"]
    assert all("is not known here and has no effect" in text for text in found.reported)


_KEYS = [
    pytest.param(what, place, key, verdict, id=f"{what} {key} of {place}")
    for each in CONVENTIONS
    for place, table in (("pods", each.pods), ("objects", each.objects))
    for what, rows in (("label", table.labels), ("annotation", table.annotations))
    for key, verdict in rows.items()
]


@pytest.mark.parametrize(("what", "place", "key", "verdict"), _KEYS)
def test_what_is_said_of_each_key(what, place, key, verdict):
    read = remarks_on_pod if place == "pods" else remarks_on_object
    one = key.replace("*", "x")

    def remarks(value):
        raw = json.dumps({one: value}).encode()
        return read(*((raw, b"") if what == "label" else (b"", raw)))

    text = (f"{what} {one}: {verdict.text}",)
    expected = {Effect.REPORTED: (text, ()), Effect.REFUSED: ((), text)}.get(verdict.effect, ((), ()))
    assert remarks("x") == expected
    for neutral in verdict.neutral:
        assert remarks(neutral) == ((), ())
    if verdict.unless[0]:
        both = json.dumps({one: "x", verdict.unless[0]: verdict.unless[1]}).encode()
        assert read(*((both, b"") if what == "label" else (b"", both))) == ((), ())


@pytest.mark.parametrize("place", ["pods", "objects"])
def test_an_unknown_key_with_our_prefix_is_named_with_what_may_be_meant(place):
    read = remarks_on_pod if place == "pods" else remarks_on_object
    raw = json.dumps({f"{PREFIX}gnag": "all", "other.io/gnag": "x"}).encode()
    why = "is not known and has no effect; did you mean poseidon.io/gang?"
    assert read(b"", raw) == ((f"annotation poseidon.io/gnag: {why}",), ())


# -- what is honoured ---------------------------------------------------------------------------------------------

CASES = {name: import_module(f"tests.poseidon_py.conventions.tables.{name}") for name in _MODULES}
_CASES = [
    pytest.param(case, id=f"{name} {what}")
    for name, module in CASES.items()
    for what, case in [
        *((" ".join(key), case) for key, case in getattr(module, "FIELDS", {}).items()),
        *((f"annotation {key}", case) for key, case in getattr(module, "ANNOTATIONS", {}).items()),
        *((f"label {key}", case) for key, case in getattr(module, "LABELS", {}).items()),
    ]
]


@pytest.mark.parametrize("case", _CASES)
def test_changing_a_honoured_field_or_key_alone_changes_the_outcome(case):
    assert outcome(case.one) == outcome(case.one)
    assert outcome(case.one) != outcome(case.other)


def _tested(what):
    return {
        (convention, key)
        for module in CASES.values()
        for convention in module.CONVENTIONS
        for key in getattr(module, what, {})
    }


def test_each_honoured_field_has_a_case():
    honoured = {
        (each.name, (kind.kind, path))
        for each in CONVENTIONS
        for kind in each.kinds
        for path, verdict in kind.fields.items()
        if verdict.effect is Effect.HONOURED
    }
    assert honoured - _tested("FIELDS") == set()
    assert {key for _, key in _tested("FIELDS")} == {key for _, key in honoured}


@pytest.mark.parametrize("what", ["annotations", "labels"])
def test_each_honoured_key_has_a_case(what):
    honoured = {
        (each.name, key)
        for each in CONVENTIONS
        for table in (each.pods, each.objects)
        for key, verdict in getattr(table, what).items()
        if verdict.effect is Effect.HONOURED
    }
    assert honoured - _tested(what.upper()) == set()
    assert {key for _, key in _tested(what.upper())} == {key for _, key in honoured}


def test_the_page_is_the_table():
    assert (ROOT / "docs" / "conventions.md").read_text() == page(), "python -m poseidon_py.conventions.page renews it"
