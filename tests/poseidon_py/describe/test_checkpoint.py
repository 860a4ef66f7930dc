"""The time at which a pod saved its work last."""

import json

import pytest
from msgspec import Raw

from poseidon_py.describe.annotations.checkpoint import checkpoint_us, problem_of
from poseidon_py.feed.rows import Rows
from poseidon_py.feed.update_rows import describe_pod, target
from poseidon_py.state.store import Store
from tests.poseidon_py.builders import node, pod

AT = "2026-01-01T00:00:00Z"
AT_US = 1_767_225_600_000_000


def annotated(**annotations):
    made = pod(node="n1")
    named = {name.replace("_", "/", 1).replace("_", "-"): text for name, text in annotations.items()}
    made.metadata.annotations = Raw(json.dumps(named).encode())
    return made


@pytest.mark.parametrize(
    ("annotations", "expected"),
    [
        ({}, 0),
        ({"poseidon.io_last_checkpoint": AT}, AT_US),
        ({"volcano.sh_last_checkpoint_time": AT}, AT_US),
        ({"poseidon.io_last_checkpoint": AT, "volcano.sh_last_checkpoint_time": "2025-01-01T00:00:00Z"}, AT_US),
        ({"poseidon.io_last_checkpoint": "2026-01-01T01:00:00.5+01:00"}, AT_US + 500_000),
        ({"poseidon.io_last_checkpoint": ""}, 0),
        ({"poseidon.io_last_checkpoint": "1900-01-01T00:00:00Z"}, 0),
        ({"example.com_last_checkpoint": AT}, 0),
    ],
)
def test_the_annotation(annotations, expected):
    made = annotated(**annotations)
    assert (checkpoint_us(made), problem_of(made)) == (expected, "")


def test_an_invalid_time_is_ignored_and_named():
    made = annotated(**{"poseidon.io_last_checkpoint": "yesterday"})
    assert checkpoint_us(made) == 0
    assert problem_of(made) == (
        "metadata.annotations[poseidon.io/last-checkpoint]: 'yesterday' is not a time and is ignored; give one like "
        "2006-01-02T15:04:05Z"
    )


def test_a_new_checkpoint_reaches_the_engine():
    store = Store(["poseidon"])
    store.observe_node(node("n1"))
    made = annotated(**{"poseidon.io_last_checkpoint": AT})
    store.observe_pod(made)
    known = store.pods[made.metadata.uid]
    describe_pod(store, known)
    state = target(store, known)
    assert state is not None
    assert state.checkpoint_us == AT_US
    rows = Rows()
    rows.add(known, state)
    assert list(rows.finish(store, set(), set()).tasks.checkpoint_us) == [AT_US]
