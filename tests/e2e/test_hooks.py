"""Hooks on API servers: what is not delivered survives the process, a takeover and an outage of the server."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from poseidon_py.hooks.config.hook_config import Hook, HookConfig, Retry
from poseidon_py.hooks.hooks import Hooks
from poseidon_py.hooks.storage.config_maps import LABEL, ConfigMapStore
from poseidon_py.hooks.storage.inspection import read_stores
from poseidon_py.hooks.storage.store import StoreTakenError
from poseidon_py.hooks.transition import Transition, delivery_id
from poseidon_py.kube import credentials
from poseidon_py.kube.client import Kube
from tests.e2e.backends import Backend
from tests.poseidon_py.hooks.receiver import Receiver
from tests.poseidon_py.hooks.test_delivery import until
from tests.poseidon_py.hooks.world import make_transition

pytestmark = pytest.mark.e2e

LIMIT = 20_000
"""Bytes of a segment: several, for some hundred deliveries."""


@asynccontextmanager
async def client(backend: Backend) -> AsyncIterator[Kube]:
    kube = Kube(await credentials.load(backend.kubeconfig, None))
    await kube.start()
    try:
        yield kube
    finally:
        await kube.close()


def hooks(kube: Kube, url: str, holder: str) -> Hooks:
    hook = Hook("billing", url, retry=Retry(1000, 0.05, 0.2), concurrency=16)
    return Hooks(HookConfig((hook,)), ConfigMapStore(kube, "default", "test", holder, LIMIT))


def transitions(number: int) -> list[Transition]:
    return [make_transition(f"job-{index % 20}", index, details={"text": "\u00e4" * 50}) for index in range(number)]


def in_order(receiver: Receiver, reported: list[Transition]) -> None:
    """Every transition has come, and those of a job in their order, but for duplicates."""
    seen = list(dict.fromkeys(receiver.ids()))
    assert set(seen) == {delivery_id(each) for each in reported}
    for job in {each.job for each in reported}:
        ids = [delivery_id(each) for each in reported if each.job == job]
        assert [each for each in seen if each in set(ids)] == ids


async def test_deliveries_survive_the_process(backend: Backend) -> None:
    reported = transitions(500)
    async with client(backend) as kube, Receiver() as receiver:
        receiver.faults = [503] * 200
        former = hooks(kube, receiver.url, "one")
        await former.start()
        for transition in reported:
            former.transitioned(transition)
        await former.reported()
        await receiver.until(100)
        await former.stop(0)
        (stored,) = await read_stores(kube, "default")
        assert stored.pending()
        objects = backend.api("GET", f"/api/v1/namespaces/default/configmaps?labelSelector={LABEL}")["items"]
        assert len(objects) > 5

        latter = hooks(kube, receiver.url, "two")
        await latter.start()
        await until(lambda: set(receiver.ids()) >= {delivery_id(each) for each in reported})
        await latter.stop(30)
        in_order(receiver, reported)
        (stored,) = await read_stores(kube, "default")
        assert stored.pending() == stored.dead() == []
        objects = backend.api("GET", f"/api/v1/namespaces/default/configmaps?labelSelector={LABEL}")["items"]
        assert len(objects) == 1


async def test_a_former_process_stops_when_another_takes_over(backend: Backend) -> None:
    async with client(backend) as kube, Receiver() as receiver:
        former = hooks(kube, receiver.url, "one")
        await former.start()
        former.transitioned(make_transition("a", 1))
        await former.reported()
        await receiver.until(1)
        latter = hooks(kube, receiver.url, "two")
        await latter.start()
        await latter.reported()
        former.transitioned(make_transition("a", 2))
        assert "two has taken over" in await former.wait()
        latter.transitioned(make_transition("a", 2))
        await receiver.until(2)
        await former.stop()
        await latter.stop()
        with pytest.raises(StoreTakenError):
            await former._store.write({"billing.x": "y"})


async def test_an_outage_of_the_server(backend: Backend) -> None:
    reported = transitions(200)
    async with client(backend) as kube, Receiver() as receiver:
        found = hooks(kube, receiver.url, "one")
        await found.start()
        for transition in reported[:100]:
            found.transitioned(transition)
        await found.reported()
        with backend.outage():
            for transition in reported[100:]:
                found.transitioned(transition)
            await receiver.until(100)
        await found.reported()
        await until(lambda: set(receiver.ids()) >= {delivery_id(each) for each in reported})
        await found.stop(30)
        in_order(receiver, reported)
