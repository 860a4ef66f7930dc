"""Expressions of the tests of Kubernetes, cel-go and cel-spec, of drivers, and random ones: as Kubernetes has them."""

import json

import pytest

from tests.poseidon_py.devices.cel.outcomes import TABLES, device_from, outcome, rows


@pytest.mark.slow
@pytest.mark.parametrize("table", sorted(path.stem for path in TABLES.glob("*.jsonl")))
def test_expressions_have_the_results_that_kubernetes_has(table):
    differing = []
    for expression, expected, words, device in rows(table):
        found, message = outcome(expression, device)
        if found is not expected if isinstance(expected, bool) else found != expected or words not in message:
            differing.append((expression, expected, words, found, message))
    assert differing == []


def test_the_tables_have_their_cases():
    assert sum(1 for path in TABLES.glob("*.jsonl") for _ in rows(path.stem)) > 4500


@pytest.mark.slow
def test_expressions_of_drivers_select_the_same_devices():
    """Those in the charts, examples and tests of drivers, each for a device of every driver."""
    found = json.loads((TABLES.parent / "drivers.json").read_text())
    devices = {name: device_from(device) for name, device in found["devices"].items()}
    differing = [
        (expression, name, expected)
        for _, expression, outcomes in found["expressions"]
        for expected, names in outcomes.items()
        for name in names
        if str(outcome(expression, devices[name])[0]).lower() != expected.strip('"')
    ]
    assert differing == []
    assert len(found["expressions"]) > 100
