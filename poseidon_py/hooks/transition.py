"""A transition of a state machine, as a controller reports it, and the ID of its delivery."""

import hashlib
import math
from collections.abc import Mapping

import msgspec

MAX_TEXT = 1024
"""Characters of a field; a longer one is cut. Names in Kubernetes have at most 253."""
MAX_DETAILS = 4096
"""Characters of all details together; those above it are left out."""
_LAST_TIME = 2.5e11  # in the year 9892; timestamps have four digits for the year
TRUNCATED = "truncated"
"""Key of the detail that says that others were left out or cut."""


class Transition(msgspec.Struct, frozen=True):
    """One transition of one state machine."""

    machine: str
    """The kind of the machine: job, task, replica, queue or preemption."""
    id: str
    """Identifies the machine for ever: the UID of its object, and what tells its machines apart."""
    namespace: str
    name: str
    user_id: str
    job: str
    """Transitions with the same key are delivered in the order in which they were reported. Empty: those of `id`."""
    before: str
    """The state before; empty: the machine is new."""
    after: str
    at: float
    """Seconds since the epoch at which it happened."""
    details: Mapping[str, str] = {}
    """Further facts for receivers."""
    occasion: str = ""
    """Tells this transition from an earlier one of the same machine between the same states, and is the same when it is
    reported again: a retry count, the generation or resource version of the object that it follows from. Empty: `at`
    does, which then has to come from the object, not from the clock."""


def order_key(transition: Transition) -> str:
    """Deliveries with the same key are sent one after the other."""
    return transition.job or f"{transition.machine}/{transition.namespace}/{transition.id or transition.name}"


def delivery_id(transition: Transition) -> str:
    """32 hexadecimal digits: the same for the same transition, also when another process reports it."""
    occasion = transition.occasion or f"{round(transition.at * 1e6)}"
    identity = [
        transition.machine,
        transition.id,
        transition.namespace,
        transition.name,
        transition.before,
        transition.after,
        occasion,
    ]
    return hashlib.sha256(msgspec.json.encode(identity)).hexdigest()[:32]


def bounded(transition: Transition, now: float) -> Transition:
    """The transition with texts of bounded size, and `now` for a time that is not a finite number."""
    at = float(transition.at)
    return Transition(
        _cut(transition.machine),
        _cut(transition.id),
        _cut(transition.namespace),
        _cut(transition.name),
        _cut(transition.user_id),
        _cut(transition.job),
        _cut(transition.before),
        _cut(transition.after),
        at if math.isfinite(at) and 0 <= at < _LAST_TIME else now,
        _bounded_details(transition.details or {}),
        _cut(transition.occasion),
    )


def _cut(text: str | None) -> str:
    return "" if text is None else str(text)[:MAX_TEXT]


def _bounded_details(details: Mapping[str, str]) -> dict[str, str]:
    found: dict[str, str] = {}
    left = MAX_DETAILS
    for key, value in details.items():
        key, value = str(key), str(value)
        left -= len(key) + len(value)
        if left < 0:
            found[TRUNCATED] = "true"
            break
        found[key] = value
    return found
