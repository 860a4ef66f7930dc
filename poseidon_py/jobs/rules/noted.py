"""Transitions of a job and its tasks that are noted in the status, until the hooks have stored them.

They are written together with the states that they lead to, so whatever interrupts the controller, either both are
there or none is. Each has a number, which rises by one per transition of the job and is never used again.
"""

from collections.abc import Mapping

import msgspec

MAX_NOTED = 64
"""Transitions that a status has; of more the oldest are left out."""
MAX_TEXT = 300
"""Characters of a message that are noted."""


class Noted(msgspec.Struct, array_like=True, frozen=True):
    """One transition. Times are seconds since the epoch."""

    machine: str
    """job or task."""
    task: str
    old: str
    new: str
    time: float
    since: float = 0.0
    """When the state before began; 0: unknown."""
    reason: str = ""
    message: str = ""
    number: int = 0


def read_noted(texts: Mapping[str, str]) -> tuple[Noted, ...]:
    """From number -> text. What cannot be read is left out: somebody else has changed it."""
    found = []
    for number, text in texts.items():
        try:
            noted = msgspec.json.decode(text, type=Noted)
        except (msgspec.DecodeError, RecursionError):
            continue
        if number.isdecimal() and noted.number == int(number) and noted.machine in ("job", "task"):
            found.append(noted)
    return tuple(sorted(found, key=lambda each: each.number))


def write_noted(noted: tuple[Noted, ...]) -> dict[str, str]:
    """Number -> text."""
    return {str(each.number): msgspec.json.encode(each).decode() for each in noted[-MAX_NOTED:]}
