"""Suspended workloads, which have no pods, in the answers on jobs and queues."""

from typing import Any

import pytest

from poseidon_py.app.queries.answers import jobs_answer, queues_answer
from poseidon_py.app.queries.job_list import UnknownJob
from poseidon_py.cli.job_list import print_suspended
from protos.gen import flow_pb2
from tests.poseidon_py.app.queries.test_job_list import printed
from tests.poseidon_py.state.queues.rig import Rig
from tests.poseidon_py.tracking.histories import Watched

ONE = {"name": "ns/one", "kind": "Job", "queue": "a", "why": "queue a is stopped"}
TWO = {"name": "other/two", "kind": "JobSet", "queue": "b", "why": "waits for its turn"}


async def explain(known):
    raise AssertionError(known)


class Engine:
    async def list_queues(self):
        return flow_pb2.QueuesReply()


@pytest.mark.parametrize(
    ("asked", "shown"),
    [
        ({}, ["ns/one", "other/two"]),
        ({"name": "one"}, ["ns/one"]),
        ({"name": "other/two"}, ["other/two"]),
        ({"namespace": "other"}, ["other/two"]),
        ({"queue": "a"}, ["ns/one"]),
        ({"user": "anna"}, []),
        ({"state": "Running"}, []),
    ],
    ids=str,
)
async def test_jobs(asked, shown):
    rig = Rig("poseidon")
    body = await jobs_answer(rig.store, Watched().tracker, explain, [ONE, TWO], **asked)
    assert [each["name"] for each in body["suspended"]] == shown
    assert body["jobs"] == []


async def test_a_job_that_is_neither_there_nor_suspended_is_unknown():
    with pytest.raises(UnknownJob):
        await jobs_answer(Rig("poseidon").store, Watched().tracker, explain, [ONE], name="three")


async def test_a_queue_has_its_own():
    engine: Any = Engine()
    rig = Rig("poseidon")
    for name in ("a", "b"):
        rig.put("Queue", name, {})
    body = await queues_answer(rig.store, engine, None, explain, [ONE, TWO], "a")
    (queue,) = body["queues"]
    assert (queue["suspended"], queue["more_suspended"]) == ([ONE], 0)


def test_output():
    lines = [line for line in printed(print_suspended, [ONE, TWO]).splitlines() if "│" in line]
    assert [cell.strip() for cell in lines[0].strip("│").split("│")] == list(ONE.values())
    assert printed(print_suspended, []) == ""
