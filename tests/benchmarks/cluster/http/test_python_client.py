"""The official Python client against the synthetic cluster."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest
import yaml
from kubernetes import client, config, watch
from kubernetes.client.exceptions import ApiException

from tests.benchmarks.cluster.builders import pod

pytestmark = pytest.mark.slow


@pytest.fixture
def core(cluster) -> Iterator[client.CoreV1Api]:
    api = config.new_client_from_config_dict(yaml.safe_load(cluster.kubeconfig()))
    yield client.CoreV1Api(api)
    api.rest_client.pool_manager.clear()
    api.close()


async def test_pods_and_nodes(cluster, core):
    def use() -> None:
        assert [node.metadata.name for node in core.list_node().items] == ["node-00000", "node-00001", "node-00002"]
        made = core.create_namespaced_pod("default", pod())
        assert made.spec.scheduler_name == "default-scheduler"
        version = core.list_pod_for_all_namespaces().metadata.resource_version
        target = client.V1ObjectReference(kind="Node", name="node-00001")
        binding = client.V1Binding(metadata=client.V1ObjectMeta(name="p", uid=made.metadata.uid), target=target)
        core.create_namespaced_binding("default", binding, _preload_content=False)
        with pytest.raises(ApiException) as refused:
            core.create_namespaced_pod_binding("p", "default", binding)
        assert refused.value.status == 409
        stream = watch.Watch()
        for event in stream.stream(core.list_namespaced_pod, "default", resource_version=version, timeout_seconds=10):
            if event["object"].status.phase == "Running":
                assert event["object"].spec.node_name == "node-00001"
                stream.stop()
        core.patch_namespaced_pod("p", "default", {"metadata": {"labels": {"a": "b"}}})
        assert core.read_namespaced_pod("p", "default").metadata.labels == {"a": "b"}
        core.delete_namespaced_pod("p", "default", grace_period_seconds=0)
        with pytest.raises(ApiException) as gone:
            core.read_namespaced_pod("p", "default")
        assert gone.value.reason == "Not Found"

    await asyncio.to_thread(use)


async def test_a_lease_is_acquired_by_one_of_two(core):
    leases = client.CoordinationV1Api(core.api_client)

    def use() -> None:
        body = client.V1Lease(
            metadata=client.V1ObjectMeta(name="poseidon"), spec=client.V1LeaseSpec(holder_identity="one")
        )
        leases.create_namespaced_lease("kube-system", body)
        first = leases.read_namespaced_lease("poseidon", "kube-system")
        second = leases.read_namespaced_lease("poseidon", "kube-system")
        assert first.spec is not None
        assert second.spec is not None
        first.spec.holder_identity = "two"
        leases.replace_namespaced_lease("poseidon", "kube-system", first)
        second.spec.holder_identity = "three"
        with pytest.raises(ApiException) as refused:
            leases.replace_namespaced_lease("poseidon", "kube-system", second)
        assert refused.value.status == 409

    await asyncio.to_thread(use)
