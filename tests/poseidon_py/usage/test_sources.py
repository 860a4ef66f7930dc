"""metrics.k8s.io and Prometheus over HTTP: valid figures, rejected ones, and messages of failures."""

import asyncio
import json
import math

import pytest
from aiohttp import web
from hypothesis import given
from hypothesis import strategies as st

from poseidon_py.kube import credentials
from poseidon_py.kube.client import Kube
from poseidon_py.kube.quantity import QuantityError, nanos
from poseidon_py.usage.gathered import Gathered, SourceError, billionths
from poseidon_py.usage.metrics_api import MetricsApi
from poseidon_py.usage.prometheus import QUERIES, Prometheus

API = "/apis/metrics.k8s.io/v1beta1"
AT = "2026-01-01T00:00:30Z"
AT_US = 1_767_225_630_000_000


@pytest.fixture
async def kube(server):
    kube = Kube(credentials.at(server.url), 4)
    await kube.start()
    yield kube
    await kube.close()


def node(name, cpu="1500000000n", memory="2097152Ki", at=AT):
    return {"metadata": {"name": name}, "timestamp": at, "window": "15s", "usage": {"cpu": cpu, "memory": memory}}


def pod(name, *containers, namespace="default", at=AT):
    used = [{"name": f"c{i}", "usage": {"cpu": cpu, "memory": memory}} for i, (cpu, memory) in enumerate(containers)]
    metadata = {"name": name, "namespace": namespace}
    return {"metadata": metadata, "timestamp": at, "window": "15s", "containers": used}


def serve(server, nodes=(), pods=()):
    for what, items in (("nodes", nodes), ("pods", pods)):
        answer = items
        if not isinstance(items, web.Response):
            text = json.dumps({"metadata": {}, "items": list(items)}, ensure_ascii=False)
            answer = web.Response(body=text.encode(errors="surrogateescape"))
        server.answers[f"{API}/{what}"] = answer


def rows(found):
    """The row with NaN as None, for comparison."""
    return {key: [None if math.isnan(v) else v for v in row] for key, row in found.items()}


# -- metrics.k8s.io -----------------------------------------------------------------------------------------------


async def test_the_usage_of_containers_is_added_exactly(server, kube):
    many = [("1n", "1Ki")] * 3
    serve(server, [node("n", "1", "1Gi")], [pod("a", ("1500m", "1.5Mi"), ("250u", "100")), pod("b", *many)])
    found = Gathered()
    await MetricsApi(kube).gather(found)
    assert rows(found.nodes) == {"n": [AT_US, 1000.0, 2.0**30, None, None]}
    assert rows(found.pods) == {
        ("default", "a"): [AT_US, 1500.25, 1_572_964.0, None, None],  # 1.5 Mi + 100
        ("default", "b"): [AT_US, 3e-6, 3072.0, None, None],
    }
    assert found.refused == 0


@pytest.mark.parametrize(
    "bad",
    [
        pytest.param(pod("x", ("much", "1Ki")), id="no-quantity"),
        pytest.param(pod("x", ("1n", "1Ki"), at="yesterday"), id="no-time"),
        pytest.param({"metadata": {"name": "x"}}, id="no-timestamp"),
        pytest.param({"metadata": [], "timestamp": AT}, id="another-type"),
        pytest.param(pod("x", ("1n", 5)), id="a-number"),
        pytest.param({**pod("x"), "containers": [{"usage": {"cpu": "\udcff"}}]}, id="not-utf-8"),
        pytest.param(None, id="null"),
    ],
)
async def test_an_invalid_item_is_rejected_alone(server, kube, bad):
    serve(server, [node("n")], [pod("a", ("1n", "1Ki")), bad, pod("b", ("1n", "1Ki"))])
    found = Gathered()
    await MetricsApi(kube).gather(found)
    assert set(found.pods) == {("default", "a"), ("default", "b")}
    assert found.refused == 1


@pytest.mark.parametrize("what", ["cpu", "memory"])
async def test_an_omitted_figure_is_unknown_rather_than_0(server, kube, what):
    part, some = node("n"), pod("a", ("1n", "1Ki"), ("1n", "1Ki"))
    del part["usage"][what], some["containers"][1]["usage"][what]
    serve(server, [part], [some, pod("b", ("1n", "1Ki"))])
    await MetricsApi(kube).gather(found := Gathered())
    cpu = what != "cpu"
    assert rows(found.nodes) == {"n": [AT_US, 1500.0 if cpu else None, None if cpu else 2.0**31, None, None]}
    assert rows(found.pods)["default", "a"] == [AT_US, 2e-6 if cpu else None, None if cpu else 2048.0, None, None]
    assert rows(found.pods)["default", "b"] == [AT_US, 1e-6, 1024.0, None, None]
    assert found.refused == 0


async def test_a_pod_without_containers_uses_nothing_that_is_known(server, kube):
    serve(server, [], [pod("a")])
    await MetricsApi(kube).gather(found := Gathered())
    assert (found.pods, found.refused) == ({}, 0)


def refusal(code, reason, message):
    return web.json_response({"kind": "Status", "reason": reason, "message": message}, status=code)


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        pytest.param(refusal(404, "NotFound", "no"), "install metrics-server, or set usage-interval to off", id="404"),
        pytest.param(refusal(503, "ServiceUnavailable", "no"), "is metrics-server running?", id="503"),
        pytest.param(refusal(403, "Forbidden", "no"), "allow list of nodes and pods", id="403"),
        pytest.param(web.Response(text="<html>"), "cannot be decoded", id="not-json"),
        pytest.param(web.Response(body=b"[" * 5000), "cannot be decoded", id="nested-too-deeply"),
        pytest.param(web.json_response({"items": 5}), "cannot be decoded", id="another-type"),
    ],
)
async def test_a_missing_part_is_explained_and_the_other_is_used(server, kube, answer, says):
    serve(server, answer, [pod("a", ("1n", "1Ki"))])
    found = Gathered()
    with pytest.raises(SourceError) as caught:
        await MetricsApi(kube).gather(found)
    assert says in str(caught.value)
    assert set(found.pods) == {("default", "a")}
    assert "\n" not in str(caught.value)


@given(
    st.one_of(
        st.text("0123456789nmuKkMGiTPE.e+-x ", max_size=12),
        st.integers(0, 2**64).map("{}n".format),
        st.integers(0, 2**64).map("{}Ki".format),
    )
)
def test_the_short_way_with_quantities_gives_what_the_long_one_does(text):
    try:
        expected = nanos(text)
    except QuantityError:
        with pytest.raises(QuantityError):
            billionths(text)
    else:
        assert billionths(text) == expected


# -- Prometheus ---------------------------------------------------------------------------------------------------


def vector(*series):
    result = [{"metric": labels, "value": [AT_US / 1e6, value]} for labels, value in series]
    return {"status": "success", "data": {"resultType": "vector", "result": result}}


def prometheus(server, answers):
    """Answers by the name of the default query."""
    asked = []
    by_query = {QUERIES.get(name, name): body for name, body in answers.items()}

    async def answer(request):
        asked.append((request.query["query"], request.headers.get("Authorization")))
        body = by_query.get(request.query["query"], vector())
        return body if isinstance(body, web.Response) else web.json_response(body)

    server.answers["/prefix/api/v1/query"] = answer
    return asked


@pytest.fixture
async def source(server):
    clients = []

    async def make(queries=None, token_file=None):
        access = credentials.at(f"{server.url}/prefix/")
        kube = Kube(access)
        await kube.start()
        clients.append(kube)
        return Prometheus(kube, access, queries or {}, token_file)

    yield make
    for kube in clients:
        await kube.close()


WEB = {"namespace": "default", "pod": "web"}


async def test_all_figures_of_pods_and_nodes(server, source):
    prometheus(
        server,
        {
            "pod-cpu": vector((WEB, "0.25")),
            "pod-memory": vector((WEB, "1e6")),
            "pod-rx": vector((WEB, "10.5")),
            "pod-tx": vector((WEB, "NaN")),
            "node-cpu": vector(({"node": "n"}, "2")),
            "node-rx": vector(({"node": "n"}, "7")),
        },
    )
    await (await source()).gather(found := Gathered())
    assert rows(found.pods) == {("default", "web"): [AT_US, 250.0, 1e6, 10.5, None]}
    assert rows(found.nodes) == {"n": [AT_US, 2000.0, None, 7.0, None]}


async def test_figures_of_metrics_k8s_io_are_not_queried_again(server, source):
    asked = prometheus(server, {"pod-rx": vector((WEB, "5"))})
    found = Gathered()
    found.pod("default", "web")[:3] = [AT_US - 1, 100.0, 5.0]
    await (await source()).gather(found)
    assert {query for query, _ in asked} == {QUERIES[q] for q in QUERIES if q not in ("pod-cpu", "pod-memory")}
    assert rows(found.pods) == {("default", "web"): [AT_US - 1, 100.0, 5.0, 5.0, None]}


async def test_a_replaced_query_takes_precedence_and_an_empty_one_is_not_sent(server, source):
    asked = prometheus(server, {"peaks": vector((WEB, "3"))})
    found = Gathered()
    found.pod("default", "web")[:3] = [AT_US, 100.0, 5.0]
    none = dict.fromkeys(QUERIES, "")
    await (await source({**none, "pod-cpu": "peaks"})).gather(found)
    assert [query for query, _ in asked] == ["peaks"]
    assert found.pods["default", "web"][1] == 3000.0


async def test_invalid_series_do_not_affect_others(server, source):
    bad = [({}, "1"), ({"namespace": "default"}, "1"), (WEB, "much"), (WEB, None)]
    prometheus(server, {"pod-cpu": vector(*bad, (WEB, "1"))})
    await (await source()).gather(found := Gathered())
    assert rows(found.pods) == {("default", "web"): [AT_US, 1000.0, None, None, None]}
    assert found.refused == 4


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        pytest.param(
            web.json_response({"status": "error", "error": "parse error at char 5"}, status=400),
            "parse error at char 5",
            id="bad-query",
        ),
        pytest.param({"status": "success", "data": {"resultType": "matrix", "result": []}}, "a matrix", id="a-range"),
        pytest.param({"data": {"resultType": "scalar", "result": [1, "2"]}}, "a scalar", id="a-scalar"),
        pytest.param({"status": "success"}, "data", id="no-data"),
        pytest.param(web.Response(text="<html>"), "pod-cpu", id="not-json"),
        pytest.param(web.Response(body=b'{"data": {"resultType": "\xff"}}'), "pod-cpu", id="not-utf-8"),
        pytest.param(web.Response(body=b"[" * 5000), "pod-cpu", id="nested-too-deeply"),
    ],
)
async def test_a_failed_query_is_named_and_the_others_are_used(server, source, answer, says):
    prometheus(server, {"pod-cpu": answer, "pod-rx": vector((WEB, "5"))})
    found = Gathered()
    with pytest.raises(SourceError) as caught:
        await (await source()).gather(found)
    assert "pod-cpu: " in str(caught.value)
    assert says in str(caught.value)
    assert server.url in str(caught.value)
    assert found.pods["default", "web"][3] == 5.0


async def test_a_server_that_is_unreachable(source, server):
    made = await source()
    await server.runner.cleanup()
    with pytest.raises(SourceError) as caught:
        await made.gather(Gathered())
    assert "API server" not in str(caught.value)
    assert server.url in str(caught.value)


async def test_the_token_is_read_for_each_poll(server, source, tmp_path):
    asked = prometheus(server, {})
    token = tmp_path / "token"
    made = await source({**dict.fromkeys(QUERIES, ""), "pod-cpu": "up"}, token)
    with pytest.raises(SourceError, match="cannot read the token"):
        await made.gather(Gathered())
    for text in ("one\n", "two"):
        token.write_text(text)
        await made.gather(Gathered())
    assert [authorization for _, authorization in asked] == [None, "Bearer one", "Bearer two"]


def test_every_default_query_can_be_answered_by_a_prometheus_in_a_cluster():
    """By their labels: `sum by` gives exactly those that are read."""
    for name, query in QUERIES.items():
        assert query.startswith("sum by (namespace, pod) (" if name.startswith("pod") else "sum by (node) (")
        json.dumps(query)


async def test_the_event_loop_is_not_held_by_a_large_list(server, kube):
    turns = []

    async def count(seconds):
        turns.append(seconds)
        await asyncio.sleep(0)

    serve(server, [], [pod(f"p{i}", ("1n", "1Ki")) for i in range(2500)])
    await MetricsApi(kube, count).gather(found := Gathered())
    assert len(found.pods) == 2500
    assert len(turns) >= 3
