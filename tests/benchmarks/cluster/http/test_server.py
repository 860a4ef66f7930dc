"""The server over HTTP: verbs, errors, watches, tables, faults, admin paths."""

from __future__ import annotations

import asyncio
import io

import aiohttp
import orjson
import pytest

from benchmarks.cluster import Cluster, ClusterSettings, Rule, WatchFaults
from benchmarks.cluster.store.kinds import PODS
from tests.benchmarks.cluster.builders import pod, until

PODS_PATH = "/api/v1/namespaces/default/pods"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"


def binding(node: str, **metadata: str):
    return {"apiVersion": "v1", "kind": "Binding", "metadata": metadata, "target": {"kind": "Node", "name": node}}


async def read(response: aiohttp.ClientResponse, count: int):
    return [orjson.loads(await response.content.readline()) for _ in range(count)]


async def test_the_life_of_a_pod_over_http(cluster, http):
    code, made = await http("POST", PODS_PATH, pod())
    assert (code, made["kind"], made["status"]["phase"]) == (201, "Pod", "Pending")
    async with http.watch(f"{PODS_PATH}?watch=1&resourceVersion={made['metadata']['resourceVersion']}") as response:
        code, status = await http("POST", f"{PODS_PATH}/p/binding", binding("node-00000", name="p"))
        assert (code, status["status"]) == (201, "Success")
        bound, running = await read(response, 2)
        assert bound["object"]["spec"]["nodeName"] == "node-00000"
        assert running["object"]["status"]["phase"] == "Running"
        code, _ = await http("DELETE", f"{PODS_PATH}/p")
        assert code == 200
        marked, gone = await read(response, 2)
        assert marked["type"] == "MODIFIED"
        assert "deletionTimestamp" in marked["object"]["metadata"]
        assert gone["type"] == "DELETED"
    assert [entry.what for entry in cluster.audit.entries] == ["bind", "delete", "gone"]
    _, audit = await http("GET", "/_audit")
    assert [(e["what"], e["node"]) for e in audit["entries"]] == [(e.what, e.node) for e in cluster.audit.entries]


async def test_the_bindings_collection_binds_too(http):
    await http("POST", PODS_PATH, pod())
    code, _ = await http("POST", "/api/v1/namespaces/default/bindings", binding("node-00001", name="p"))
    assert code == 201
    code, status = await http("POST", f"{PODS_PATH}/p/binding", binding("node-00002", name="p"))
    assert (code, status["reason"]) == (409, "Conflict")
    assert status["details"] == {"name": "p", "kind": "pods/binding"}


@pytest.mark.parametrize(
    ("method", "path", "body", "code", "reason"),
    [
        ("GET", f"{PODS_PATH}/none", None, 404, "NotFound"),
        ("GET", "/api/v1/frobs", None, 404, "NotFound"),
        ("GET", "/nothing", None, 404, "NotFound"),
        ("GET", f"{PODS_PATH}/none/log", None, 404, "NotFound"),
        ("GET", f"{PODS_PATH}?labelSelector=a+in", None, 400, "BadRequest"),
        ("GET", f"{PODS_PATH}?fieldSelector=spec.foo%3D1", None, 400, "BadRequest"),
        ("GET", f"{PODS_PATH}?limit=x", None, 400, "BadRequest"),
        ("GET", f"{PODS_PATH}?continue=%21", None, 400, "BadRequest"),
        ("GET", f"{PODS_PATH}?watch=1&sendInitialEvents=true", None, 422, "Invalid"),
        ("POST", PODS_PATH, {"spec": 3, "metadata": {"name": "p"}}, 400, "BadRequest"),
        ("POST", PODS_PATH, [], 400, "BadRequest"),
        ("POST", f"{PODS_PATH}?dryRun=Some", pod(), 400, "BadRequest"),
        ("PUT", f"{PODS_PATH}/none", pod("none"), 404, "NotFound"),
        ("PATCH", f"{PODS_PATH}/none", {}, 415, "UnsupportedMediaType"),
        ("POST", f"{PODS_PATH}/none/binding", binding(""), 422, "Invalid"),
        ("TRACE", PODS_PATH, None, 405, "MethodNotAllowed"),
        ("DELETE", "/api/v1/namespaces/default", None, 403, "Forbidden"),
    ],
)
async def test_refusals_are_status_objects(http, method, path, body, code, reason):
    answered, status = await http(method, path, body)
    assert (answered, status["kind"], status["reason"], status["code"]) == (code, "Status", reason, code)
    assert status["message"]


async def test_bodies_that_are_not_json(http):
    for kind, code in (
        ("application/json", 400),
        ("application/vnd.kubernetes.protobuf", 400),
        ("application/cbor", 415),
    ):
        async with http.session.post(http.url + PODS_PATH, data=b"{nope", headers={"Content-Type": kind}) as answer:
            assert answer.status == code


async def test_a_body_that_is_too_large_is_a_413(http):
    body = io.BytesIO(orjson.dumps(pod(annotations={"a": "x" * 2**21})))
    async with http.session.post(http.url + PODS_PATH, data=body) as response:
        assert response.status == 413
        assert (await response.json())["reason"] == "RequestEntityTooLarge"


async def test_lists_of_all_sizes_are_sent_without_warnings(cluster, http):
    cluster.add_pods(3, pod(annotations={"a": "x" * 2**19}))
    assert len((await http("GET", PODS_PATH))[1]["items"]) == 3


async def test_lists_page_and_select(cluster, http):
    cluster.add_pods(7, pod(labels={"app": "x"}))
    code, page = await http("GET", f"{PODS_PATH}?limit=3&labelSelector=app%3Dx")
    names = [item["metadata"]["name"] for item in page["items"]]
    assert (code, len(names), page["kind"]) == (200, 3, "PodList")
    while page["metadata"].get("continue"):
        _, page = await http("GET", f"{PODS_PATH}?limit=3&continue={page['metadata']['continue']}")
        names += [item["metadata"]["name"] for item in page["items"]]
    assert names == [f"pod-{i:04d}" for i in range(7)]


@pytest.mark.slow
async def test_large_lists_are_complete(cluster, http):
    cluster.add_pods(6000, pod(annotations={"note": "x" * 400}))
    _, page = await http("GET", "/api/v1/pods")
    assert len({item["metadata"]["uid"] for item in page["items"]}) == 6000


async def test_watches_follow_a_selector(cluster, http):
    version = cluster.store.version
    async with http.watch(f"{PODS_PATH}?watch=true&resourceVersion={version}&labelSelector=app%3Dx") as response:
        await http("POST", PODS_PATH, pod("other"))
        await http("POST", PODS_PATH, pod("p", labels={"app": "x"}))
        label = {"metadata": {"labels": {"app": "y"}}}
        merge = "application/merge-patch+json"
        _, left = await http("PATCH", f"{PODS_PATH}/p", label, kind=merge)
        await http("PATCH", f"{PODS_PATH}/p", {"metadata": {"labels": {"app": "x"}}}, kind=merge)
        events = await read(response, 3)
        assert [event["type"] for event in events] == ["ADDED", "DELETED", "ADDED"]
        # Out of sight in the last state that was in sight, at the version that took it out.
        assert events[1]["object"]["metadata"]["labels"] == {"app": "x"}
        assert events[1]["object"]["metadata"]["resourceVersion"] == left["metadata"]["resourceVersion"]


async def test_a_bookmark_ends_the_initial_events_of_a_watch_list(cluster, http):
    cluster.add_pods(3, pod())
    query = "watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"
    async with http.watch(f"{PODS_PATH}?{query}") as response:
        events = await read(response, 4)
        assert [event["type"] for event in events] == ["ADDED", "ADDED", "ADDED", "BOOKMARK"]
        metadata = events[3]["object"]["metadata"]
        assert metadata["annotations"] == {"k8s.io/initial-events-end": "true"}
        assert metadata["resourceVersion"] == str(cluster.store.version)
        await http("POST", PODS_PATH, pod("late"))
        assert (await read(response, 1))[0]["object"]["metadata"]["name"] == "late"


async def test_bookmarks_advance_with_the_versions_of_other_kinds():
    async with Cluster(ClusterSettings(bookmark_seconds=0.02)) as cluster, aiohttp.ClientSession() as session:
        version = cluster.store.version
        path = f"/api/v1/pods?watch=1&resourceVersion={version}&allowWatchBookmarks=true"
        async with session.get(cluster.url + path) as response:
            cluster.add_nodes(2)
            while True:
                event = orjson.loads(await response.content.readline())
                assert event["type"] == "BOOKMARK"
                if int(event["object"]["metadata"]["resourceVersion"]) >= version + 2:
                    break


@pytest.mark.slow
async def test_a_watch_ends_in_order_after_its_time(http):
    async with http.watch(f"{PODS_PATH}?watch=1&timeoutSeconds=1&allowWatchBookmarks=true") as response:
        lines = await response.content.read()
    assert orjson.loads(lines)["type"] == "BOOKMARK"


async def test_compacted_versions_are_a_410(cluster, http):
    version = cluster.store.version
    cluster.add_pods(2, pod())
    await http("POST", "/_faults", {"compact": True})
    async with http.watch(f"{PODS_PATH}?watch=1&resourceVersion={version}") as response:
        assert response.status == 200
        event = orjson.loads(await response.content.readline())
        assert (event["type"], event["object"]["code"], event["object"]["reason"]) == ("ERROR", 410, "Expired")
        assert await response.content.read() == b""
    cluster.faults.set(watch=WatchFaults(gone_as_status=True))
    async with http.watch(f"{PODS_PATH}?watch=1&resourceVersion={version}") as response:
        assert response.status == 410


async def test_a_watch_ends_with_the_definition_of_its_kind(http):
    definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    spec = {
        "group": "x.io",
        "scope": "Cluster",
        "names": {"plural": "things", "kind": "Thing"},
        "versions": [{"name": "v1", "served": True, "storage": True}],
    }
    definition = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "things.x.io"},
        "spec": spec,
    }
    assert (await http("POST", definitions, definition))[0] == 201
    async with http.watch("/apis/x.io/v1/things?watch=1") as response:
        assert (await http("DELETE", f"{definitions}/things.x.io"))[0] == 200
        assert await response.content.read() == b""


async def test_open_watches_can_be_broken(cluster, http):
    async with http.watch(f"{PODS_PATH}?watch=1") as response:
        assert cluster.drop_watches() == 1
        with pytest.raises(aiohttp.ClientError):
            await response.content.readline()


@pytest.mark.slow
async def test_a_client_over_http_survives_drops_and_compaction(cluster, http):
    """Writes continue while the client's watches break and its versions are compacted."""
    known: dict[str, str] = {}

    async def reflect() -> None:
        version = ""
        while True:
            try:
                if not version:
                    known.clear()
                    _, page = await http("GET", PODS_PATH)
                    known.update({i["metadata"]["name"]: i["metadata"]["resourceVersion"] for i in page["items"]})
                    version = page["metadata"]["resourceVersion"]
                async with http.watch(f"{PODS_PATH}?watch=1&resourceVersion={version}") as response:
                    while line := await response.content.readline():
                        event = orjson.loads(line)
                        if event["type"] == "ERROR":
                            version = ""
                            break
                        metadata = event["object"]["metadata"]
                        version = metadata["resourceVersion"]
                        if event["type"] == "DELETED":
                            known.pop(metadata["name"])
                        else:
                            known[metadata["name"]] = version
            except aiohttp.ClientError:
                continue

    task = asyncio.create_task(reflect())
    for i in range(60):
        await http("POST", PODS_PATH, pod(f"p{i}"))
        if i % 3 == 0:
            await http("DELETE", f"{PODS_PATH}/p{i}")
        if i % 7 == 0:
            cluster.drop_watches()
        if i % 11 == 0:
            cluster.compact()

    def expected() -> dict[str, str]:
        return {record.name: str(record.version) for record in cluster.store.collection(PODS).records()}

    await until(lambda: known == expected())
    task.cancel()


async def test_faults_follow_the_rules_and_repeat_with_the_seed(http, cluster):
    async def codes(seed: int) -> list[int]:
        cluster.faults.seed = seed
        cluster.faults.__post_init__()
        cluster.faults.set(Rule(verbs=("list",), resources=("pods",), rate_429=0.3, rate_500=0.2, rate_503=0.1))
        return [(await http("GET", PODS_PATH))[0] for _ in range(30)]

    first = await codes(7)
    assert {200, 429, 500} <= set(first)
    assert await codes(7) == first
    assert (await http("GET", "/api/v1/nodes"))[0] == 200
    cluster.faults.clear()
    assert set(await codes_of(http, 10)) == {200}


async def codes_of(http, count: int) -> list[int]:
    return [(await http("GET", PODS_PATH))[0] for _ in range(count)]


async def test_rejected_requests_have_a_retry_after(http, cluster):
    cluster.faults.set(Rule(rate_429=1, retry_after_s=3, first=1))
    async with http.session.get(http.url + PODS_PATH) as response:
        assert (response.status, response.headers["Retry-After"]) == (429, "3")
        assert (await response.json())["details"]["retryAfterSeconds"] == 3
    assert (await http("GET", PODS_PATH))[0] == 200


async def test_an_answer_can_be_lost_after_execution(http, cluster):
    cluster.faults.set(Rule(verbs=("create",), rate_lost=1, first=1))
    with pytest.raises(aiohttp.ClientError):
        await http("POST", PODS_PATH, pod())
    assert cluster.get(PODS, "p")["metadata"]["name"] == "p"
    cluster.faults.set(Rule(verbs=("create",), rate_reset=1, first=1))
    with pytest.raises(aiohttp.ClientError):
        await http("POST", PODS_PATH, pod("q"))
    assert (await http("GET", f"{PODS_PATH}/q"))[0] == 404
    assert cluster.faults.counts == {"lost": 1, "reset": 1}


@pytest.mark.parametrize(
    "body",
    [
        {"rule": []},
        {"rules": [{"rate_429": 2}]},
        {"rules": [{"rate": 1}]},
        {"rules": {}},
        {"watch": {"delay_ms": -1}},
        {"rules": [{"verbs": "list"}]},
        [],
    ],
)
async def test_invalid_fault_rules_change_nothing(http, cluster, body):
    cluster.faults.set(Rule(latency_ms=1))
    code, status = await http("POST", "/_faults", body)
    assert (code, status["reason"]) == (400, "BadRequest")
    assert cluster.faults.rules == [Rule(latency_ms=1)]


async def test_tables_have_kubectls_columns(cluster, http):
    cluster.add_pods(2, pod())
    _, table = await http("GET", PODS_PATH, Accept=TABLE)
    assert table["kind"] == "Table"
    names = [column["name"] for column in table["columnDefinitions"]]
    assert names == ["Name", "Ready", "Status", "Restarts", "Age", "IP", "Node", "Nominated Node", "Readiness Gates"]
    assert table["rows"][0]["cells"][:4] == ["pod-0000", "0/1", "Pending", "0"]
    assert table["rows"][0]["object"]["kind"] == "PartialObjectMetadata"
    async with http.session.get(f"{http.url}{PODS_PATH}?watch=1", headers={"Accept": TABLE}) as response:
        first, second = await read(response, 2)
        assert first["object"]["columnDefinitions"]
        assert not second["object"]["columnDefinitions"]


async def test_events_are_served_in_both_groups(http):
    new = {
        "metadata": {"name": "e"},
        "regarding": {"kind": "Pod", "name": "p", "namespace": "default"},
        "note": "Successfully assigned",
        "reason": "Scheduled",
        "type": "Normal",
        "reportingController": "poseidon",
        "eventTime": "2024-01-01T00:00:00.000000Z",
    }
    path = "/apis/events.k8s.io/v1/namespaces/default/events"
    code, made = await http("POST", path, new)
    assert (code, made["apiVersion"], made["note"]) == (201, "events.k8s.io/v1", "Successfully assigned")
    _, page = await http("GET", "/api/v1/namespaces/default/events?fieldSelector=involvedObject.name%3Dp")
    core = page["items"][0]
    assert (core["apiVersion"], core["message"], core["involvedObject"]["name"]) == ("v1", "Successfully assigned", "p")
    _, page = await http("GET", path)
    assert page["items"][0]["regarding"]["name"] == "p"


async def test_metrics_follow_the_running_pods(cluster, http):
    cluster.add_pods(1, pod(cpu="2"))
    await http("POST", f"{PODS_PATH}/pod-0000/binding", binding("node-00000", name="pod-0000"))
    metrics = "/apis/metrics.k8s.io/v1beta1"
    await until(lambda: cluster.get(PODS, "pod-0000")["status"]["phase"] == "Running")
    _, page = await http("GET", f"{metrics}/pods")
    used = int(page["items"][0]["containers"][0]["usage"]["cpu"].removesuffix("n"))
    assert 0 < used < 2 * 10**9
    _, node = await http("GET", f"{metrics}/nodes/node-00000")
    _, idle = await http("GET", f"{metrics}/nodes/node-00001")
    assert int(node["usage"]["cpu"].removesuffix("n")) > int(idle["usage"]["cpu"].removesuffix("n"))


async def test_scale_changes_replicas(cluster, http):
    from tests.benchmarks.cluster.builders import replicated

    cluster.create(replicated("ReplicaSet", replicas=1))
    path = "/apis/apps/v1/namespaces/default/replicasets/web/scale"
    _, scale = await http("GET", path)
    assert (scale["kind"], scale["spec"]["replicas"], scale["status"]["selector"]) == ("Scale", 1, "app=web")
    code, scale = await http("PUT", path, {**scale, "metadata": {"name": "web"}, "spec": {"replicas": 4}})
    assert (code, scale["spec"]["replicas"]) == (200, 4)
    await until(lambda: len(cluster.objects(PODS)) == 4)


async def test_discovery_in_both_forms_agrees(http):
    _, groups = await http("GET", "/apis")
    aggregated = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
    _, whole = await http("GET", "/apis", Accept=aggregated)
    assert {g["name"] for g in groups["groups"]} == {g["metadata"]["name"] for g in whole["items"]}
    for group in whole["items"]:
        for version in group["versions"]:
            _, listed = await http("GET", f"/apis/{group['metadata']['name']}/{version['version']}")
            plain = {r["name"] for r in listed["resources"] if "/" not in r["name"]}
            assert plain == {r["resource"] for r in version["resources"]}


async def test_a_configured_token_is_required():
    async with Cluster(ClusterSettings(token="secret")) as cluster, aiohttp.ClientSession() as session:
        async with session.get(f"{cluster.url}/api/v1/nodes") as response:
            assert response.status == 401
        headers = {"Authorization": "Bearer secret"}
        async with session.get(f"{cluster.url}/api/v1/nodes", headers=headers) as response:
            assert response.status == 200
        assert "secret" in cluster.kubeconfig()
