"""Expressions of the tests of Kubernetes, of cel-go and of cel-spec, with what Kubernetes 1.36 makes of them."""

import pytest

from tests.poseidon_py.devices.cel.outcomes import TABLES, device_from, outcome, rows


@pytest.mark.parametrize("table", sorted(path.stem for path in TABLES.glob("*.jsonl")))
def test_expressions_have_the_results_that_kubernetes_has(table):
    differing = []
    for expression, expected, words, device in rows(table):
        found, message = outcome(expression, device_from(device))
        if found is not expected if isinstance(expected, bool) else found != expected or words not in message:
            differing.append((expression, expected, words, found, message))
    assert differing == []


def test_the_tables_have_their_cases():
    assert sum(1 for path in TABLES.glob("*.jsonl") for _ in rows(path.stem)) > 2400
