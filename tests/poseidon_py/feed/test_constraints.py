"""Profiles, namespaces, claims: what the engine is sent of them, and when."""

import asyncio
import json

import msgspec
import pytest

from poseidon_py.kube.storage_objects import Namespace
from poseidon_py.state.volumes.gate import VolumeError
from tests.poseidon_py.builders import pod, pod_json
from tests.poseidon_py.describe.test_constraints import pod_of
from tests.poseidon_py.rig import Rig
from tests.poseidon_py.state.test_volumes import claim, volume, waiting_class


def with_labels(name, labels, **fields):
    return pod_of(pod_json(name, **fields), labels)


def namespace(name, **labels):
    body = {"metadata": {"name": name, "uid": name, "labels": labels}}
    return msgspec.json.decode(json.dumps(body), type=Namespace)


async def test_profiles_are_sent_once_and_change_with_the_labels():
    async with Rig() as rig:
        rig.confirm = False
        for i in range(3):
            rig.kube.put(f"p{i}")
            rig.store.observe_pod(with_labels(f"p{i}", {"app": "a"}))
        await rig.settle()
        reported = [profile for update in rig.engine.updates for profile in update.profiles]
        assert [dict(profile.labels) for profile in reported].count({"app": "a"}) == 1
        assert dict(rig.task("p0")["profile"].labels) == {"app": "a"}
        rig.store.observe_pod(with_labels("p0", {"app": "b"}, node="n"))
        await rig.settle()
        assert dict(rig.task("p0")["profile"].labels) == {"app": "b"}
        assert dict(rig.task("p1")["profile"].labels) == {"app": "a"}


async def test_a_profile_that_the_engine_lost_is_sent_again():
    async with Rig(nodes=()) as rig:
        rig.pod("a")
        await rig.settle()
        rig.engine.forget_profiles = set(rig.engine.profiles)
        rig.pod("b")
        await rig.settle()
        assert rig.state("a") == rig.state("b") == "waiting"


async def test_a_restarted_engine_learns_profiles_and_namespaces_again():
    async with Rig() as rig:
        rig.store.observe_namespace(namespace("x", team="1"))
        rig.pod("a")
        await rig.settle()
        rig.engine.restart()
        rig.node("m")
        await rig.settle()
        assert rig.agrees()
        assert rig.engine.namespaces == {"x": {"team": "1"}}
        assert rig.engine.profiles


async def test_labels_of_namespaces_are_sent_as_they_change():
    async with Rig() as rig:
        worker = asyncio.create_task(rig.feed.namespace_worker())
        rig.store.observe_namespace(namespace("x", team="1"))
        await rig.settle()
        assert rig.engine.namespaces == {"x": {"team": "1"}}
        calls = rig.engine.calls["apply"]
        rig.store.observe_namespace(namespace("x", team="1"))
        await rig.settle()
        assert rig.engine.calls["apply"] == calls
        rig.store.remove_namespace("x")
        await rig.settle()
        assert rig.engine.namespaces == {"x": {}}
        assert rig.store.namespaces.messages == {}
        worker.cancel()


async def test_a_terminating_pod_is_leaving():
    async with Rig() as rig:
        rig.pod("a", node="n")
        await rig.settle()
        assert not rig.task("a")["leaving"]
        rig.store.observe_pod(pod("a", node="n", deleting=True))
        await rig.settle()
        assert rig.task("a")["leaving"]


async def test_a_pod_is_sent_once_its_claim_is_bound():
    spec = {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}]}
    async with Rig() as rig:
        rig.store.storage.ready = True
        rig.pod("a", spec=spec)
        await rig.settle()
        blocks = rig.problems.blocks
        assert (rig.task("a"), blocks) == (None, [("a", 'persistentvolumeclaim "c" not found')])
        rig.store.storage.put_claim(claim("c"))
        await rig.settle()
        assert (rig.task("a"), blocks[1:]) == (None, [("a", "pod has unbound immediate PersistentVolumeClaims")])
        rig.store.storage.put_volume(volume("v"))
        rig.store.storage.put_claim(claim("c", bound_to="v"))
        await rig.settle()
        assert rig.bound == ["a"]
        assert len(blocks) == 2


async def test_before_storage_is_listed_a_pod_with_a_claim_waits_without_a_report():
    spec = {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}]}
    async with Rig() as rig:
        assert not rig.store.volumes.in_use.is_set()
        rig.pod("a", spec=spec)
        rig.pod("b", spec=spec)
        await rig.settle()
        assert rig.store.volumes.in_use.is_set()
        assert (rig.problems.blocks, rig.task("a")) == ([], None)
        rig.store.storage.put_volume(volume("v"))
        rig.store.storage.put_claim(claim("c", bound_to="v"))
        rig.store.volumes.listed()
        await rig.settle()
        assert sorted(rig.bound) == ["a", "b"]


async def test_pods_of_one_read_write_once_pod_claim_are_sent_one_at_a_time():
    spec = {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}]}
    async with Rig(nodes=()) as rig:
        rig.store.storage.ready = True
        rig.store.storage.put_volume(volume("v"))
        rig.store.storage.put_claim(claim("c", bound_to="v", accessModes=["ReadWriteOncePod"]))
        for name in "ab":
            rig.pod(name, spec=spec)
        await rig.settle()
        assert (rig.state("a"), rig.state("b")) == ("waiting", None)
        rig.gone("a")
        await rig.settle()
        assert rig.state("b") == "waiting"


async def test_a_volume_given_to_another_pod_in_the_same_round():
    spec = {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}]}
    async with Rig(nodes=()) as rig:
        storage, gate = rig.store.storage, rig.store.volumes
        storage.ready = True
        storage.put_class(waiting_class())
        storage.put_volume(volume("v1", on=["a"]))
        storage.put_claim(claim("c"))
        rig.pod("a", spec=spec)
        await rig.settle()
        known = rig.store.pods["uid-a"]
        plan = gate.reserve(known, "a", {"host": "a"})
        assert [v.metadata.name for _, v in plan.pairs] == ["v1"]
        # another pod that was placed on the same node by the same round
        storage.put_claim(claim("d"))
        rig.pod("b", spec={"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "d"}}]})
        await rig.settle()
        other = rig.store.pods["uid-b"]
        with pytest.raises(VolumeError, match="given to other pods"):
            gate.reserve(other, "a", {"host": "a"})
        gate.release(plan)
        assert storage.reserved == {}


async def test_while_a_volume_is_to_be_made_where_a_pod_runs_it_prefers_capacity_for_others():
    spec = {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}]}
    async with Rig(nodes=()) as rig:
        storage = rig.store.storage
        storage.ready = True
        storage.put_class(waiting_class(provisioner="p"))
        storage.put_claim(claim("c"))
        rig.pod("a", spec=spec)
        rig.pod("b")
        await rig.settle()
        assert [class_of(rig, name).prefers_capacity for name in "ab"] == [True, False]
        storage.put_volume(volume("v"))
        storage.put_claim(claim("c", bound_to="v"))
        await rig.settle()
        assert not class_of(rig, "a").prefers_capacity


def class_of(rig, name):
    return rig.store.classes.get(rig.store.pods[f"uid-{name}"].described.class_id)
