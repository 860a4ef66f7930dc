"""docs/events.md, from the table of events and conditions."""

from __future__ import annotations

from poseidon_py.conventions.event_reasons import CONDITIONS, EVENTS, EventReason

_HEAD = """# Events and conditions

<!-- Generated from poseidon_py/conventions/event_reasons.py by `make deploy`. -->

What Poseidon writes on objects, by the reason. `kubectl describe` shows both; `kubectl get events -A --field-selector
reason=GangInvalid` lists those of a reason. [bridge.md](bridge.md#events-and-conditions) says when they are sent.

## Events

| reason | on | type | meaning | what to do |
| --- | --- | --- | --- | --- |
"""
_CONDITIONS = """
## Conditions

| type | of | status | reason | meaning |
| --- | --- | --- | --- | --- |
"""


def events_page() -> str:
    events = (f"| `{each.reason}` | {each.of} | {_type(each)} | {each.meaning} | {each.remedy} |\n" for each in EVENTS)
    conditions = (
        f"| `{each.type}` | {each.of} | {each.status} | `{each.reason}` | {each.meaning} |\n" for each in CONDITIONS
    )
    return _HEAD + "".join(events) + _CONDITIONS + "".join(conditions)


def _type(event: EventReason) -> str:
    return "Warning" if event.warning else "Normal"
