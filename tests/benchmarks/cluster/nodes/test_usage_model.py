"""The load of the synthetic cluster: plausible, the same for the same seed, and served as metrics-server does."""

import statistics
from urllib.parse import quote

import pytest

from benchmarks.cluster import Cluster, ClusterSettings, NodeShape
from benchmarks.cluster.api.binding import bind
from benchmarks.cluster.nodes.usage_model import Amounts, profile
from benchmarks.cluster.store.kinds import PODS
from benchmarks.cluster.store.quantities import parse, units
from tests.benchmarks.cluster.builders import pod, until

METRICS = "/apis/metrics.k8s.io/v1beta1"
START = 1_767_225_600.0  # 2026-01-01


def running(name="p", *, owner="", uid=None, cpu="1", memory="1Gi", load=None):
    """A pod that runs since START."""
    made = pod(name, resources={"requests": {"cpu": cpu, "memory": memory}})
    made["metadata"] |= {"uid": uid or f"uid-{name}", "creationTimestamp": "2026-01-01T00:00:00Z"}
    made["metadata"]["annotations"] = {f"poseidon.io/load-{key}": value for key, value in (load or {}).items()}
    if owner:
        made["metadata"]["ownerReferences"] = [{"uid": owner, "controller": True}]
    made["status"] = {"phase": "Running", "startTime": "2026-01-01T00:00:00Z"}
    return made


def test_usage_stays_within_plausible_bounds():
    for i in range(200):
        made = profile(running(f"p{i}"), 1, seed=0)
        for minute in range(0, 60, 7):
            use = made.uses(START + 60 * minute)
            assert 0 <= use.cpu <= 1000 * 1.35
            assert 0 <= use.memory <= 2**30 * 1.02
            assert min(use.rx, use.tx) >= 0


def test_usage_is_a_function_of_pod_seed_and_time():
    made = running("a")
    assert profile(made, 1, 0).uses(START + 100) == profile(made, 2, 0).uses(START + 100)
    assert profile(made, 1, 0).uses(START + 100) != profile(made, 1, 1).uses(START + 100)
    assert profile(made, 1, 0).uses(START + 100) != profile(running("a", uid="other"), 1, 0).uses(START + 100)


def test_replicas_are_more_alike_than_applications():
    def mean(owner):
        return statistics.fmean(profile(running(f"{owner}-{i}", owner=owner), 1, 0).base.cpu for i in range(60))

    means = [mean(f"owner-{i}") for i in range(20)]
    within = statistics.fmean(
        statistics.pstdev(profile(running(f"o{o}-{i}", owner=f"o{o}"), 1, 0).base.cpu for i in range(60))
        for o in range(20)
    )
    assert max(means) - min(means) > 0.3
    assert within < statistics.pstdev(means) * 1.5


def test_memory_ramps_up_and_cpu_waves():
    made = profile(running("a"), 1, 0)
    memory = [made.uses(START + s).memory for s in (0, 60, 300, 900)]
    assert memory[0] < 0.5 * memory[3]
    assert memory[1] < memory[2]
    cpu = [made.uses(START + 15 * i).cpu for i in range(40)]
    assert max(cpu) > 1.3 * min(cpu)


@pytest.mark.parametrize(
    ("annotations", "expected"),
    [
        ({"cpu": "0.5", "memory": "0.25", "rx": "10M", "tx": "0"}, Amounts(500.0, 2**28, 1e7, 0.0)),
        ({"cpu": "2", "memory": "1", "rx": "1", "tx": "1"}, Amounts(2000.0, 2**30, 1.0, 1.0)),
    ],
)
def test_annotations_state_figures_exactly(annotations, expected):
    made = profile(running("a", load=annotations), 1, 0)
    assert made.uses(START) == made.uses(START + 1000) == expected


@pytest.mark.parametrize("value", ["much", "-1", ""])
def test_an_invalid_annotation_is_ignored(value):
    plain = profile(running("a"), 1, 0)
    for name in Amounts._fields:
        assert profile(running("a", load={name: value}), 1, 0).uses(START) == plain.uses(START)


# -- served -------------------------------------------------------------------------------------------------------


@pytest.fixture
async def busy(cluster: Cluster, http):
    """Pods a and b of one application and c in another namespace, all running."""
    cluster.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "other"}})
    for name, labels, namespace in (("a", "web", "default"), ("b", "db", "default"), ("c", "web", "other")):
        made = pod(name, labels={"app": labels}, namespace=namespace, cpu="1")
        made["metadata"]["annotations"] = {"poseidon.io/load-cpu": "0.5", "poseidon.io/load-rx": "1000"}
        cluster.create(made, namespace)
        bind(cluster.api, namespace, name, {"target": {"name": "node-00001"}})
    cluster.add_pods(1, pod(), prefix="waits-")
    await until(lambda: [p["status"].get("phase") for p in cluster.objects(PODS)].count("Running") == 3)
    return http


async def names(http, path):
    _, page = await http("GET", METRICS + path)
    return {item["metadata"]["name"] for item in page["items"]}


async def test_lists_by_namespace_label_and_all(busy):
    assert await names(busy, "/pods") == {"a", "b", "c"}, "one that does not run uses nothing"
    assert await names(busy, "/namespaces/default/pods") == {"a", "b"}
    assert await names(busy, "/pods?labelSelector=app%3Dweb") == {"a", "c"}
    assert await names(busy, "/namespaces/default/pods?labelSelector=app%3Dweb") == {"a"}
    assert await names(busy, "/nodes?labelSelector=kubernetes.io%2Fhostname%3Dnode-00001") == {"node-00001"}


async def test_single_objects_and_missing_ones(busy):
    _, one = await busy("GET", METRICS + "/namespaces/default/pods/a")
    assert (one["kind"], one["apiVersion"], one["window"]) == ("PodMetrics", "metrics.k8s.io/v1beta1", "15s")
    assert one["containers"][0]["usage"]["cpu"] == "500000000n"
    assert one["metadata"]["labels"] == {"app": "web"}
    for path in ("/namespaces/default/pods/waits-0000", "/namespaces/default/pods/none", "/nodes/none"):
        code, body = await busy("GET", METRICS + path)
        assert (code, body["reason"]) == (404, "NotFound")
    code, _ = await busy("DELETE", METRICS + "/nodes/node-00001")
    assert code == 405


async def test_a_node_uses_the_sum_of_its_pods_plus_a_constant(busy):
    _, page = await busy("GET", METRICS + "/nodes")
    use = {item["metadata"]["name"]: item["usage"] for item in page["items"]}
    assert {name: units("cpu", used["cpu"]) for name, used in use.items()} == {
        "node-00000": 100,
        "node-00001": 1600,  # 3 x 500 and the system's
        "node-00002": 100,
    }
    assert parse(use["node-00001"]["memory"]) > parse(use["node-00000"]["memory"]) == 512 * 2**20


async def ask(http, query):
    return await http("GET", f"/_prometheus/api/v1/query?query={quote(query)}")


async def test_the_prometheus_api_answers_the_queries_of_the_collector(busy):
    from poseidon_py.usage.prometheus import QUERIES

    figures = {}
    for name, query in QUERIES.items():
        code, answer = await ask(busy, query)
        assert (code, answer["status"], answer["data"]["resultType"]) == (200, "success", "vector")
        figures[name] = {
            tuple(series["metric"].values()): float(series["value"][1]) for series in answer["data"]["result"]
        }
    assert figures["pod-cpu"] == {("default", "a"): 0.5, ("default", "b"): 0.5, ("other", "c"): 0.5}
    assert figures["pod-rx"] == {("default", "a"): 1000.0, ("default", "b"): 1000.0, ("other", "c"): 1000.0}
    assert figures["node-cpu"]["node-00001",] == 1.6
    assert figures["node-rx"]["node-00001",] == 5000.0
    assert set(figures["node-tx"]) == {("node-00000",), ("node-00001",), ("node-00002",)}


@pytest.mark.parametrize("query", ["up", "", "sum by (node) (node_load1)"])
async def test_other_queries_are_rejected_as_by_prometheus(busy, query):
    code, answer = await ask(busy, query)
    assert (code, answer["status"], answer["errorType"]) == (400, "error", "bad_data")


async def test_profiles_are_dropped_with_their_pods():
    settings = ClusterSettings(nodes=1, shapes=(NodeShape(pods=9000),), start_seconds=0.0, stop_seconds=0.0)
    async with Cluster(settings) as cluster:
        usage = cluster.http._usage
        for step in range(3):
            cluster.add_pods(1200, pod(nodeName="node-00000", cpu="1m"), prefix=f"t{step}-")
            await until(lambda: all(p["status"].get("phase") == "Running" for p in cluster.objects(PODS)))
            await usage._nodes(START + step)
            for record in list(cluster.store.collection(PODS).records()):
                cluster.store.remove(PODS, record)
        await usage._nodes(START + 9)
        assert len(usage._profiles) <= 1000
