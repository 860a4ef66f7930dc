"""The real kube-scheduler gives the devices of the synthetic cluster away: server, drivers, controllers and kubelets
play together as it expects, and the audit finds nothing."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.api import PATIENCE, Api, Json
from tests.e2e.backends import home_of
from tests.e2e.device_answers.device_requests import CLAIMS, PODS, claim, pod, request, template
from tests.e2e.processes import POSEIDON, Process
from tests.e2e.real_backend import why_not_real
from tests.effort import NO_SERVER

GPU, NIC, PARTITION, SHARED = "gpu.nvidia.com", "rdma.dra.net", "mig.nvidia.com", "shared.nvidia.com"
SHAPES = ("cpu=96,device:a100=3,device:nic=3", "cpu=96,device:a100-mig=1", "cpu=32,device:l4-shared=1")


def needs_scheduler() -> Path:
    if problem := why_not_real():
        pytest.skip(NO_SERVER + problem)
    program = Path(os.environ["KUBEBUILDER_ASSETS"]) / "kube-scheduler"
    if not program.exists():
        pytest.skip(f"{NO_SERVER}there is no kube-scheduler in {program.parent}")
    return program


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    """A cluster of three nodes with devices, and a scheduler."""
    program = needs_scheduler()
    folder = tmp_path_factory.mktemp("devices")
    config = str(folder / "kubeconfig")
    shapes = [f"--shape={shape}" for shape in SHAPES]
    options = ("--nodes=3", "--port=0", "--start-delay=0.01", "--device-pool=fabric=2", f"--kubeconfig-out={config}")
    cluster = Process([*POSEIDON, "cluster", *options, *shapes], folder / "cluster.log")
    url = cluster.until_says(r"synthetic cluster .* at (\S+)")[1]
    scheduler = Process(
        [
            str(program), "--kubeconfig", config, "--authentication-kubeconfig", config,
            "--authorization-kubeconfig", config, "--secure-port=0", "--leader-elect=false",
            "--kube-api-content-type=application/json",
        ],
        folder / "kube-scheduler.log",
    )  # fmt: skip
    yield Api(url)
    scheduler.end(9)
    assert cluster.end() == 0, cluster.output


def create(api: Api, *manifests: Json) -> None:
    for manifest in manifests:
        api("POST", home_of(manifest), manifest)


def with_template(name: str, template_name: str) -> Json:
    return pod(name, [{"name": "dev", "resourceClaimTemplateName": template_name}], [{"name": "dev"}])


def with_claim(name: str, claim_name: str) -> Json:
    return pod(name, [{"name": "dev", "resourceClaimName": claim_name}], [{"name": "dev"}])


def running(api: Api) -> dict[str, str]:
    found = api("GET", PODS)["items"]
    return {one["metadata"]["name"]: one["spec"]["nodeName"] for one in found if one["status"]["phase"] == "Running"}


def until_running(api: Api, *names: str) -> dict[str, str]:
    end = time.monotonic() + PATIENCE
    while True:
        found = running(api)
        if set(names) <= set(found):
            return found
        assert time.monotonic() < end, f"{set(names) - set(found)} do not run"
        time.sleep(0.1)  # nothing to watch: pods become Running one after the other


def drop(api: Api, *names: str) -> None:
    """Deletes pods, and waits until their claims are free again."""
    for name in names:
        api("DELETE", f"{PODS}/{name}")
    end = time.monotonic() + PATIENCE
    while {one["metadata"]["name"] for one in api("GET", PODS)["items"]} & set(names) or any(
        one["status"].get("allocation") for one in api("GET", CLAIMS)["items"]
    ):
        assert time.monotonic() < end, api("GET", CLAIMS)
        time.sleep(0.1)  # as above


@pytest.fixture
def audited(api: Api) -> Iterator[Api]:
    yield api
    assert api("GET", "/_devices")["violations"] == []
    stats = api("GET", "/_stats")
    assert (stats["unprepared"], stats["rejected"]) == ({}, {})


def test_gpus_cards_and_extended_resources(audited: Api) -> None:
    pair = template("pair", request("gpu", deviceClassName=GPU), request("nic", deviceClassName=NIC))
    pair["spec"]["spec"]["devices"]["constraints"] = [{"matchAttribute": "resource.kubernetes.io/pcieRoot"}]
    limits = {"name": "main", "image": "x", "resources": {"limits": {"nvidia.com/gpu": "1"}}}
    extended = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "e"}, "spec": {"containers": [limits]}}
    create(audited, pair, with_template("p", "pair"), with_template("q", "pair"), extended)
    found = until_running(audited, "p", "q", "e")
    assert found["p"] == found["q"] == "node-00000"
    claims = audited("GET", CLAIMS)["items"]
    assert sorted(one["metadata"]["name"][:2] for one in claims) == ["e-", "p-", "q-"]
    for one in claims:
        results = one["status"]["allocation"]["devices"]["results"]
        assert len({result["device"].rpartition("-")[2] for result in results}) == 1
    drop(audited, "p", "q", "e")
    assert audited("GET", CLAIMS)["items"] == []


def test_partitions_and_shares(audited: Api) -> None:
    half = [{"cel": {"expression": f'device.attributes["{GPU}"].profile == "3g.20gb"'}}]
    part = {"requests": {"memory": "5Gi", "cores": "20"}}
    create(
        audited,
        template("half", request(deviceClassName=PARTITION, selectors=half)),
        template("part", request(deviceClassName=SHARED, capacity=part)),
    )
    pods = {f"{kind}-{at}": kind for kind, count in (("half", 2), ("part", 4)) for at in range(count)}
    create(audited, *(with_template(name, kind) for name, kind in pods.items()))
    found = until_running(audited, *pods)  # 2 * 3g.20gb; 4 * 5Gi of 23034Mi
    assert {name: found[name] for name in pods} == {
        name: "node-00001" if kind == "half" else "node-00002" for name, kind in pods.items()
    }
    drop(audited, *pods)


def test_pods_share_a_claim_that_is_freed_after_the_last(audited: Api) -> None:
    create(audited, claim("ports", request(deviceClassName="port.fabric.example.com", count=2)))
    create(audited, *(with_claim(f"s-{at}", "ports") for at in range(3)))
    until_running(audited, "s-0", "s-1", "s-2")
    shared = audited("GET", f"{CLAIMS}/ports")
    assert len(shared["status"]["reservedFor"]) == 3
    assert "nodeSelector" not in shared["status"]["allocation"]
    drop(audited, "s-0", "s-1", "s-2")
    freed = audited("GET", f"{CLAIMS}/ports")
    assert freed["status"] == {}
    assert "finalizers" not in freed["metadata"]
