"""The table of events and conditions names the reasons that the code writes, and no others."""

import ast
from collections.abc import Iterator

from poseidon_py.conventions.event_reasons import CONDITIONS, EVENTS
from poseidon_py.jobs.reconcile import INVALID
from tests.paths import ROOT

SENDING = {"remark", "_remark", "on_object", "on_workload", "about", "send", "Report"}
"""Functions that take the reason of an event, as the first text that begins with a capital letter."""


def trees() -> Iterator[ast.Module]:
    for path in sorted((ROOT / "poseidon_py").rglob("*.py")):
        if path.name != "event_reasons.py":
            yield ast.parse(path.read_text())


def is_reason(node: ast.expr | None) -> bool:
    return (
        isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and node.value.isalpha()
        and node.value[:1].isupper()
    )


def sent() -> Iterator[str]:
    """The reasons in calls that send events."""
    for tree in trees():
        for node in ast.walk(tree):
            if isinstance(node, ast.Call):
                function = node.func
                name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
                if name in SENDING:
                    yield from (each.value for each in node.args if is_reason(each))  # type: ignore[attr-defined]


def texts() -> set[str]:
    """All texts in the code."""
    return {
        node.value
        for tree in trees()
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }


def test_each_event_that_is_sent_is_in_the_table():
    assert {*sent(), INVALID} - {each.reason for each in EVENTS} == set()


def test_what_is_in_the_table_is_in_the_code():
    found = texts()
    named = {each.reason for each in (*EVENTS, *CONDITIONS)} | {
        each.type.removeprefix("poseidon.io/") for each in CONDITIONS
    }
    assert named - found == set()


def test_no_event_is_in_the_table_twice():
    assert len({each.reason for each in EVENTS}) == len(EVENTS)
    assert len({(each.type, each.of, each.status, each.reason) for each in CONDITIONS}) == len(CONDITIONS)
    assert [each.reason for each in EVENTS if not each.meaning.endswith(".")] == []
