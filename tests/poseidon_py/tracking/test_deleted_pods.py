"""Pods whose containers end because they are deleted: times of the API server have whole seconds."""

import pytest

from tests.poseidon_py.tracking.histories import START, Life, Watched

T = START


@pytest.mark.parametrize("after", [0, 1, 20], ids=["in the same second", "a second later", "late"])
@pytest.mark.parametrize("end", ["succeed", "fail"])
def test_a_pod_that_ends_within_its_grace_period_is_deleted(end, after, caplog):
    watched = Watched()
    runs = Life("p").bind(T).start(T + 1)
    deleted = runs.delete(T + 10)
    ended = getattr(deleted, end)(T + 10 + after)
    watched.tell(runs, deleted, ended)
    assert watched.path("replica")[2:] == [("Running", 1), ("Terminating", 10)]
    watched.gone(ended, T + 31)
    assert watched.path("replica")[-1][0] == "Deleted"
    figures = watched.job("p").figures()
    assert (figures.succeeded, figures.failed, figures.deleted) == (0, 0, 1)
    assert figures.run == 9 + after
    assert not caplog.records, "all transitions are in the tables"


def test_a_pod_that_had_ended_before_its_deletion_was_seen_keeps_its_outcome():
    watched = Watched()
    runs = Life("p").bind(T).start(T + 1)
    watched.tell(runs, runs.succeed(T + 9).delete(T + 10))
    assert watched.path("replica")[-1] == ("Succeeded", 9)
