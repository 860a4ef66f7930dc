"""A pod goes the same path, whichever process observes it: the transitions of all observers together are one path."""

from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from poseidon_py.jobs.hooks.paths import began, steps
from poseidon_py.jobs.rules.machines import REPLICA, ReplicaState
from tests.effort import examples
from tests.poseidon_py.jobs.builders import NOW, replica

R = ReplicaState
PENDING = replica(phase=R.PENDING, created=NOW)
RUNNING = replica(phase=R.RUNNING, created=NOW, started=NOW + 10)
SUCCEEDED = replace(RUNNING, phase=R.SUCCEEDED, ended=NOW + 20)
FAILED = replace(RUNNING, phase=R.FAILED, ended=NOW + 20)
NEVER_RAN = replace(PENDING, phase=R.FAILED)


def deleted(pod, at):
    return replace(pod, deleting=True, deletion_requested=NOW + at)


def chain(*states):
    return list(pairwise(states))


@pytest.mark.parametrize(
    ("old", "pod", "expected"),
    [
        pytest.param(R.ABSENT, PENDING, chain(R.ABSENT, R.PENDING), id="created"),
        pytest.param(R.ABSENT, SUCCEEDED, chain(R.ABSENT, R.PENDING, R.RUNNING, R.SUCCEEDED), id="seen after its end"),
        pytest.param(R.PENDING, FAILED, chain(R.PENDING, R.RUNNING, R.FAILED), id="failed between two observations"),
        pytest.param(R.PENDING, NEVER_RAN, chain(R.PENDING, R.FAILED), id="refused by its kubelet"),
        pytest.param(R.RUNNING, deleted(RUNNING, 15), chain(R.RUNNING, R.TERMINATING), id="deleted"),
        pytest.param(
            R.ABSENT,
            deleted(FAILED, 15),
            chain(R.ABSENT, R.PENDING, R.RUNNING, R.TERMINATING),
            id="failed because it was deleted",
        ),
        pytest.param(
            R.ABSENT,
            deleted(FAILED, 25),
            chain(R.ABSENT, R.PENDING, R.RUNNING, R.FAILED, R.TERMINATING),
            id="deleted after it had failed",
        ),
        pytest.param(R.PENDING, deleted(PENDING, 5), chain(R.PENDING, R.TERMINATING), id="deleted before it ran"),
        pytest.param(R.RUNNING, replace(RUNNING, phase=R.UNKNOWN), chain(R.RUNNING, R.UNKNOWN), id="its node is lost"),
        pytest.param(R.UNKNOWN, RUNNING, chain(R.UNKNOWN, R.RUNNING), id="its node is back"),
    ],
)
def test_what_happened_between_two_observations_is_filled_in(old, pod, expected):
    assert steps(old, pod.state, pod) == expected


def test_a_pod_that_vanishes_has_terminated():
    assert steps(R.RUNNING, R.ABSENT, RUNNING) == chain(R.RUNNING, R.TERMINATING, R.ABSENT)
    assert steps(R.TERMINATING, R.ABSENT, deleted(RUNNING, 15)) == chain(R.TERMINATING, R.ABSENT)


LIVES = [
    [PENDING, RUNNING, SUCCEEDED],
    [PENDING, RUNNING, FAILED, deleted(FAILED, 25)],
    [PENDING, RUNNING, deleted(RUNNING, 15), deleted(FAILED, 15)],
    [PENDING, RUNNING, SUCCEEDED, deleted(SUCCEEDED, 25)],
    [PENDING, NEVER_RAN, deleted(NEVER_RAN, 25)],
    [PENDING, deleted(PENDING, 5)],
]


@examples(300)
@given(st.sampled_from(LIVES), st.data())
def test_all_observers_see_transitions_of_one_path(life, data):
    """Each sees some of a pod's states, from a moment on, and whether it goes; together they see no other transitions
    than the one that sees everything."""
    goes = life[-1].deleting
    whole = seen(life, goes)
    for old, new in whole:
        assert new in REPLICA[old]
    part = sorted(data.draw(st.sets(st.integers(0, len(life) - 1), min_size=1)))
    found = seen([life[at] for at in part], goes and part[-1] == len(life) - 1)
    assert found == whole[: len(found)]
    times = [began(new, life[part[-1]]) for _, new in found if new != R.ABSENT]
    assert times == sorted(times) or life[part[-1]].phase == R.FAILED


def seen(pods, goes):
    state, found = R.ABSENT, []
    for pod in pods:
        found += steps(state, pod.state, pod)
        state = pod.state
    return found + (steps(state, R.ABSENT, pods[-1]) if goes else [])
