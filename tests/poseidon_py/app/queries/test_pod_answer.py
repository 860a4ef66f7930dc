"""Pods that the store does not have, or that another scheduler places, are explained by name."""

from collections.abc import Iterable
from typing import Any

import pytest

from poseidon_py.app.queries.pod_answer import pod_answer
from poseidon_py.kube.client import NotFoundError
from poseidon_py.kube.objects import Pod
from poseidon_py.state.handlers import PodHandler
from poseidon_py.state.records import PodRecord
from poseidon_py.state.store import Store
from protos.gen import flow_pb2
from tests.poseidon_py.builders import pod

OTHERS = "the scheduler volcano places it, not this one (poseidon, also)"


async def explain(known: PodRecord) -> dict[str, Any]:
    return {"pod": known.full_name, "state": "of the engine", "problem": "", "node": known.node}


async def starts(tasks: Iterable[int]) -> flow_pb2.StartsReply:
    return flow_pb2.StartsReply(made_us=1, uid=tasks, earliest_us=[2], likely_us=[3], latest_us=[4], node=[0])


async def answer(*pods: Pod, name: str = "a", broken: str = "") -> dict[str, Any] | None:
    store = Store(["poseidon", "also"])
    for each in pods:
        store.observe_pod(each)
        if broken:
            PodHandler(store).invalid(each.metadata, broken)

    async def read(namespace: str, name: str) -> Pod:
        for each in pods:
            if (each.metadata.namespace, each.metadata.name) == (namespace, name):
                return each
        raise NotFoundError(404, "NotFound", "not found")

    return await pod_answer(store, read, explain, starts, "default", name, own_names=("poseidon", "also"))


@pytest.mark.parametrize(
    ("fields", "state", "problem"),
    [
        pytest.param({}, "of the engine", "", id="of this scheduler"),
        pytest.param({"phase": "Succeeded", "node": "n"}, "has succeeded", "", id="succeeded"),
        pytest.param({"phase": "Failed", "node": "n"}, "has failed", "", id="failed"),
        pytest.param({"scheduler": "volcano"}, "of the engine", OTHERS, id="waits for another scheduler"),
        pytest.param({"scheduler": "volcano", "node": "n"}, "of the engine", OTHERS, id="bound by another scheduler"),
        pytest.param(
            {"scheduler": "volcano", "node": "n", "phase": "Failed"},
            "has failed",
            OTHERS,
            id="failed elsewhere",
        ),
    ],
)
async def test_states(fields, state, problem):
    found = await answer(pod("a", **fields))
    assert found is not None
    assert (found["pod"], found["state"], found["problem"]) == ("default/a", state, problem)
    assert found["node"] == fields.get("node", "")
    assert bool(found.get("expected")) == (state == "of the engine" and not problem), "of pods of ours that wait"


async def test_a_pod_that_cannot_be_used():
    found = await answer(pod("a", phase="Succeeded"), broken="spec.priority is a text")
    assert found is not None
    assert (found["state"], found["problem"]) == ("invalid", "spec.priority is a text")


async def test_a_pod_that_is_not_there():
    assert await answer(pod("a"), name="b") is None
