"""What each feature is for, queues aside."""

from __future__ import annotations

import itertools
import ssl
import threading
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import yaml

from poseidon_py.hooks.storage.config_maps import LABEL
from tests.e2e.api import PATIENCE, Json
from tests.e2e.backends import bound, home_of
from tests.e2e.jobs.manifests import BATCH, job
from tests.e2e.objects import node, pod
from tests.e2e.processes import Scheduler
from tests.e2e.real_backend import Real
from tests.e2e.rights_by_feature.chart_account import NAMESPACE
from tests.e2e.rights_by_feature.world import World, eventually
from tests.e2e.test_migration import POLICY
from tests.e2e.test_restarts import LEASE
from tests.e2e.test_rights import (
    CUSTOM,
    NATIVE,
    devices,
    gangs_by_object,
    gangs_by_owner,
    gangs_without_marks,
    half_a_gang,
    members,
    native_gang,
    owner,
    preemption,
    reports,
    until,
    volumes,
)

_LEASES = f"/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases"


def all_that_is_always_on(world: World) -> None:
    backend = world.backend
    backend.create(*(node(f"n{at}", cpu="8", pods=40) for at in range(3)), node("small", cpu="2"))
    kinds = ",".join(each.resource.plural for each in CUSTOM)
    scheduler = world.run("--gang-timeout", "1", "--gangs-from", kinds)
    for scenario in (reports, gangs_by_owner, gangs_without_marks, gangs_by_object, volumes):
        scenario(backend)
    if serves_pod_groups(world.server):
        native_gang(backend)
    _ask_secure_port(scheduler)
    _bind_too_late(world)


def serves_pod_groups(server: Real) -> bool:
    return "v1alpha2" in [each["version"] for each in server.api("GET", f"/apis/{NATIVE}")["versions"]]


def _ask_secure_port(scheduler: Scheduler) -> None:
    """For metrics, with the token of the administrator."""
    url = scheduler.until_says(r"metrics and state on (https://[\w.:]+)", after=0)[1]
    request = urllib.request.Request(f"{url}/metrics", headers={"Authorization": "Bearer e2e"})
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    with urllib.request.urlopen(request, context=context, timeout=PATIENCE) as answer:
        assert answer.status == 200


def _bind_too_late(world: World) -> None:
    """Two schedulers without an election have the same pods: whose bind is refused, that one looks at the pod."""
    world.backend.create(node("large", cpu="64", pods=600))
    world.run()
    names = (f"both-{number}" for number in itertools.count())

    def looked() -> bool:
        batch = [*itertools.islice(names, 20)]
        world.backend.create(*map(pod, batch))
        world.backend.pods.until(lambda pods: bound(pods).keys() >= {*batch}, "a batch is bound")
        return world.account.requests(world.server).use(("", "", "pods", "get", ""))

    eventually(looked, "a bind is refused")


def one_pod(world: World) -> None:
    world.one_pod()


def leads(world: World) -> None:
    """The lease is renewed."""
    world.one_pod(*LEASE[1:])
    first = world.server.api("GET", f"{_LEASES}/poseidon")["spec"]["renewTime"]
    until(world.backend, _LEASES, lambda items: [i for i in items if i["spec"].get("renewTime", first) > first])


def gives_devices(world: World) -> None:
    world.backend.create(node("n", cpu="8"))
    world.run()
    devices(world.backend, "n")


def preempts(world: World) -> None:
    world.run()
    preemption(world.backend)


def unwinds(world: World) -> None:
    """Two of three members are bound, and the third does not fit."""
    world.backend.create(node("small", cpu="2"))
    half_a_gang(world.backend)
    world.run("--gang-timeout", "1")
    world.until_gone("half-0", "half-1")


def moves_for_a_waiting_pod(world: World) -> None:
    """Two nodes of two cores with one core in use each; one pod moves, so that a pod of two cores fits."""
    backend = world.backend
    backend.create(node("a", cpu="2"), node("b", cpu="2"))
    _run_movable(world, {"p-0": "a", "p-1": "b"}, cpu="1")
    world.run("--migrate-after", "0")
    backend.create(pod("large", cpu="2"))
    backend.until_bound(1, "large")


def moves_where_it_costs_less(world: World) -> None:
    world.backend.create(node("a"), node("b"))
    _run_movable(world, dict.fromkeys((f"p-{at}" for at in range(6)), "a"))
    world.run("--migrate-after", "0", *POLICY)
    world.backend.pods.until(lambda pods: len(pods) < 6, "a pod leaves for the empty node")


def _run_movable(world: World, nodes: dict[str, str], **requests: str) -> None:
    """Pods p-0, p-1, ... of a ReplicaSet that opted in, each on its node."""
    (found,) = world.backend.create(owner("ReplicaSet", "p"))
    about = {"annotations": {"poseidon.io/movable": "true"}}
    world.backend.create(*members("p", len(nodes), found, about, **requests))
    for name, at in nodes.items():
        world.backend.bind(name, at)


def measures(world: World) -> None:
    world.one_pod("--usage-interval", "1")
    world.until_asked(*(("", "metrics.k8s.io", resource, "list", "") for resource in ("nodes", "pods")))


# -- hooks -----------------------------------------------------------------------------------------------------------


class _Receiver(ThreadingHTTPServer):
    """`closed`: it refuses deliveries, which are stored then."""

    closed = True
    taken = 0


class _Delivery(BaseHTTPRequestHandler):
    server: _Receiver

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(503 if self.server.closed else 200)
        self.send_header("Content-Length", "0")
        self.end_headers()
        self.server.taken += not self.server.closed

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def _receiver() -> Iterator[_Receiver]:
    server = _Receiver(("127.0.0.1", 0), _Delivery)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def _delivers(world: World, store: str, begins: Callable[[], object], goes_on: Callable[[], object]) -> None:
    """There are two objects of the store, of which the first was emptied by a process that ended before it deleted it;
    somebody deletes the second one. Deliveries are stored while the receiver is closed."""
    file = world.folder / "hooks.yaml"
    config = yaml.safe_load(file.read_text())
    folder = config["namespace"], "", "configmaps"
    first, second = (_emptied(folder[0], f"poseidon-hooks-{store}-{at}", store) for at in (1, 2))
    world.backend.create(first, second)
    with _receiver() as receiver:
        url = f"http://127.0.0.1:{receiver.server_address[1]}/"
        config["hooks"] = [{"name": "all", "url": url, "retry": {"attempts": 1000, "first": 0.05, "longest": 0.2}}]
        file.write_text(yaml.safe_dump(config))
        begins()
        world.until_asked((*folder, "delete", first["metadata"]["name"]))
        world.backend.delete(home_of(second), second["metadata"]["name"])
        goes_on()
        world.until_asked((*folder, "create", ""))
        receiver.closed = False
        eventually(lambda: receiver.taken > 1, "deliveries")
        world.until_asked(*((*folder, verb, "") for verb in ("get", "list", "patch")))


def _emptied(namespace: str, name: str, store: str) -> Json:
    metadata = {"name": name, "namespace": namespace, "labels": {LABEL: store}}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}


def calls_hooks(world: World) -> None:
    _delivers(world, "scheduler", world.one_pod, lambda: world.backend.finish_pod("p", "Succeeded"))


def calls_hooks_of_jobs(world: World) -> None:
    def begins() -> None:
        world.run_jobs()
        world.backend.create(job("j"))

    _delivers(world, "jobs", begins, lambda: world.backend.delete(BATCH, "j"))
