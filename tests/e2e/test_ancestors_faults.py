"""Regression tests for known faults of the original Poseidon that were never fixed there."""

from collections.abc import Callable

from tests.e2e.api import Json
from tests.e2e.backends import PODS, Backend
from tests.e2e.conftest import SYNTHETIC
from tests.e2e.objects import node, pod
from tests.e2e.processes import Scheduler

Schedule = Callable[..., Scheduler]


def test_pods_beyond_the_capacity_wait_and_are_placed_when_it_is_released(
    backend: Backend, scheduler: Scheduler
) -> None:
    """The original sent pods to full nodes, and left 125 of 300 pending until it was restarted."""
    backend.create(*(node(f"n{at}", cpu="64", memory="64Gi", pods=25) for at in range(7)))
    backend.until_seen_by(scheduler)
    backend.create(*(pod(f"p{at}", cpu="10m") for at in range(300)))
    backend.until_bound(175)
    left = [f"p{at}" for at in range(300) if f"p{at}" not in backend.bound()]
    assert len(left) == 125
    assert backend.until_unschedulable(left[-1]) == "0/7 nodes are available: 7 Too many pods."
    assert backend.new_rejections() == {}
    backend.delete(PODS, *list(backend.bound())[:25])
    backend.create(*(node(f"m{at}", cpu="64", memory="64Gi", pods=25) for at in range(4)))
    backend.pods.until(lambda pods: len(pods) == 275 and all(p["spec"].get("nodeName") for p in pods))
    assert scheduler.status()["pods"].get("waiting", 0) == 0


def test_the_replacement_of_a_failed_pod_of_a_job_is_scheduled(backend: Backend, scheduler: Scheduler) -> None:
    """The original recorded a job as failed and ignored its later pods. The test acts as the job's controller."""
    backend.create(node("n", cpu="1"))
    backend.until_seen_by(scheduler)
    job = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "job"}}
    (owner,) = backend.create(job)
    reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": "job", "uid": owner["metadata"]["uid"]}
    metadata = {"ownerReferences": [reference | {"controller": True}]}
    for attempt in range(4):
        name = f"job-{attempt}"
        backend.create(pod(name, cpu="1", metadata=metadata, restartPolicy="Never"))
        backend.until_bound(1, name)
        backend.finish_pod(name, "Failed")
    backend.create(pod("job-last", cpu="1", metadata=metadata, restartPolicy="Never"))
    backend.until_bound(1, "job-last")


@SYNTHETIC
def test_a_job_whose_first_pods_fail_completes(synthetic: Backend, scheduler: Scheduler) -> None:
    """The same with a job controller and kubelets."""
    synthetic.create(node("n", cpu="1"))
    synthetic.until_seen_by(scheduler)
    template = pod("", cpu="500m", restartPolicy="Never")
    annotations = {"cluster.poseidon.io/fail-first": "2", "cluster.poseidon.io/run-seconds": "0.05"}
    body: Json = {"parallelism": 2, "completions": 4, "backoffLimit": 6}
    body |= {"template": {"metadata": {"annotations": annotations}, "spec": template["spec"]}}
    synthetic.create({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "job"}, "spec": body})

    def done(pods: list[Json]) -> bool:
        return sum(1 for p in pods if p["status"].get("phase") == "Succeeded") == 4

    synthetic.pods.until(done)
    assert sum(item["status"].get("phase") == "Failed" for item in synthetic.pods.objects.values()) == 2


def test_a_batch_that_fits_is_placed_completely(backend: Backend, scheduler: Scheduler) -> None:
    """The original left a part of a batch pending although there was capacity for it."""
    backend.create(*(node(f"n{at}", cpu="2", pods=30) for at in range(4)))
    backend.until_seen_by(scheduler)
    for batch in range(3):
        pods = [pod(f"b{batch}-{at}", cpu=("1", "500m", "250m")[at % 3]) for at in range(9)]
        backend.create(*pods)
        backend.until_bound(9, f"b{batch}-")
        backend.delete(PODS, *(one["metadata"]["name"] for one in pods))


def test_the_whole_capacity_of_every_node_is_used(backend: Backend, scheduler: Scheduler) -> None:
    """Different sizes at once: a single commodity does not represent what fits together."""
    backend.create(*(node(f"n{at}", cpu="4", memory="4Gi") for at in range(3)))
    backend.until_seen_by(scheduler)
    sizes = [("3", "1Gi"), ("1", "3Gi")]  # one of each fills a node in both dimensions
    backend.create(*(pod(f"p{at}", cpu=sizes[at % 2][0], memory=sizes[at % 2][1]) for at in range(6)))
    backend.create(*(pod(f"tiny{at}", cpu="1m", memory="1Ki") for at in range(3)))

    def settled(pods: list[Json]) -> bool:
        decided = [
            p for p in pods if p["spec"].get("nodeName") or any(
                c.get("reason") == "Unschedulable" for c in p["status"].get("conditions", [])
            )
        ]  # fmt: skip
        return len(decided) == 9

    backend.pods.until(settled)
    # for any selection, no pod is left pending that fits alone
    used: dict[str, list[tuple[int, int]]] = {f"n{at}": [] for at in range(3)}
    pods = backend.api("GET", PODS)["items"]
    for item in pods:
        asked = item["spec"]["containers"][0]["resources"]["requests"]
        size = (1000 * int(asked["cpu"]) if "m" not in asked["cpu"] else 1, int(asked["memory"][:-2]))
        size = (size[0], size[1] * (2**20 if asked["memory"].endswith("Gi") else 1))
        if item["spec"].get("nodeName"):
            used[item["spec"]["nodeName"]].append(size)
    free = [(4000 - sum(c for c, _ in on), 4 * 2**20 - sum(m for _, m in on)) for on in used.values()]
    for item in pods:
        if not item["spec"].get("nodeName"):
            cpu, gib = {"3": (3000, 1), "1": (1000, 3), "1m": (1, 0)}[
                item["spec"]["containers"][0]["resources"]["requests"]["cpu"]
            ]
            assert not any(c >= cpu and m >= max(gib * 2**20, 1) for c, m in free), (item["metadata"]["name"], free)


def test_not_found_and_already_exists_answers_do_not_stop_the_bridge(backend: Backend, scheduler: Scheduler) -> None:
    """The original's bridge exited on either."""
    backend.create(node("n", pods=200, cpu="64"))
    backend.until_seen_by(scheduler)
    names = [f"p{at}" for at in range(40)]
    for step in range(3):
        backend.create(*(pod(name, cpu="10m") for name in names))
        if step % 2:
            backend.until_bound(1)
        backend.delete(PODS, *names)
        backend.api("DELETE", "/api/v1/nodes/n")
        backend.create(node("n", pods=200, cpu="64"))
    backend.create(*(pod(name, cpu="10m") for name in names))
    backend.until_bound(40)
    assert scheduler.popen.poll() is None
    assert scheduler.metric("poseidon_firmament_starts_total") == 1
