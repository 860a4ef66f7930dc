"""What an expression comes to for a device, in the form of the tables.

A line of a table is [expression, outcome] or [expression, outcome, words of the message], and the device where one is
needed, as the Go types of resource.k8s.io are written in JSON. Outcomes are true, false, "error" for an error of the
evaluation, "refused" for an expression that the API server does not accept. All are from Kubernetes' own compiler of
selectors; docs/devices.md says which.
"""

import json
from pathlib import Path

from poseidon_py.devices.cel.selector import SelectedDevice, SelectorError, Version, compile_selector

TABLES = Path(__file__).parent / "tables"


def rows(table):
    for line in (TABLES / f"{table}.jsonl").read_text().splitlines():
        expression, outcome, *further = json.loads(line)
        words = "".join(each for each in further if isinstance(each, str))
        yield expression, outcome, words, next((each for each in further if isinstance(each, dict)), {})


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


NO_DEVICE = SelectedDevice("")


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
