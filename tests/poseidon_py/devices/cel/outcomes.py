"""What an expression comes to for a device, in the form of the tables.

A line of a table is [expression, outcome] or [expression, outcome, words of the message], and the device if it has one
of its own; the first line may be {"device": ...} for all. Outcomes are true, false, "error" for an error of the
evaluation, "refused" for an expression that the API server does not accept. All are from Kubernetes' own compiler of
selectors; docs/devices.md says which.
"""

import json
from pathlib import Path

from poseidon_py.devices.cel.selector import SelectedDevice, SelectorError, Version, compile_selector

TABLES = Path(__file__).parent / "tables"
NO_DEVICE = SelectedDevice("")


def rows(table):
    """Expression, outcome, words of the message, device."""
    device = NO_DEVICE
    for line in map(json.loads, (TABLES / f"{table}.jsonl").read_text().splitlines()):
        if isinstance(line, dict):
            device = device_from(line["device"])
            continue
        expression, outcome, *further = line
        words = "".join(each for each in further if isinstance(each, str))
        own = [device_from(each) for each in further if isinstance(each, dict)]
        yield expression, outcome, words, own[0] if own else device


def _value(attribute):
    [(kind, value)] = attribute.items()
    match kind:
        case "version":
            return Version(value)
        case "versions":
            return tuple(map(Version, value))
        case _:
            return tuple(value) if isinstance(value, list) else value


def device_from(written):
    return SelectedDevice(
        written.get("driver", ""),
        {name: _value(attribute) for name, attribute in written.get("attributes", {}).items()},
        {name: capacity["value"] for name, capacity in written.get("capacity", {}).items()},
        written.get("multiple", False),
    )


def outcome(expression, device=NO_DEVICE):
    """The outcome and the message."""
    try:
        selector = compile_selector(expression)
    except SelectorError as error:
        return "refused", str(error)
    try:
        return selector.matches(device), ""
    except SelectorError as error:
        return "error", str(error)
