"""Events about queues that are taken over."""

import asyncio

import pytest

from poseidon_py.report.takeovers import TakeoverEvents
from tests.poseidon_py.report.reporting import Api
from tests.poseidon_py.settling import settle


@pytest.mark.parametrize("leads", [True, False])
async def test_the_leader_reports_it_on_its_lease(leads):
    api = Api()
    events = TakeoverEvents(api, lambda: leads, "kube-system", "poseidon", component="batch", now=lambda: 0.0)
    task = asyncio.create_task(events.run())
    events.add("kueue", "kueue-controller-manager")
    await settle()
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert len(api.created) == int(leads)
    for path, event in api.created:
        assert path == "/api/v1/namespaces/kube-system/events"
        assert (event["reason"], event["type"], event["source"]) == (
            "QueuesTakenOver",
            "Warning",
            {"component": "batch"},
        )
        assert event["message"] == (
            "kueue-controller-manager is gone: its queues, of kind kueue, are in force here from now on"
        )
        assert event["involvedObject"] == {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "name": "poseidon",
            "namespace": "kube-system",
        }
