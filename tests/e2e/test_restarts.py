"""Processes are killed during a burst: no pod is lost or bound twice, and no node is over-committed."""

import os
import signal
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.e2e.backends import Backend, Synthetic
from tests.e2e.conftest import SYNTHETIC
from tests.e2e.objects import node, pod
from tests.e2e.processes import FIRMAMENT, Process, Scheduler, kill_and_see, until_gone

Schedule = Callable[..., Scheduler]
BURST = 120
LEASE = ("--leader-elect", "--lease-duration", "2", "--renew-deadline", "1.5", "--retry-period", "0.2")


def burst(backend: Backend, prefix: str, count: int = BURST) -> None:
    backend.create(*(pod(f"{prefix}{at}", cpu="50m") for at in range(count)))


def capacities(backend: Backend) -> None:
    backend.create(*(node(f"n{at}", cpu="16", pods=60) for at in range(5)))  # 300 pods


def test_a_killed_flow_service_is_restarted_and_resynchronised(backend: Backend, schedule: Schedule) -> None:
    capacities(backend)
    scheduler = schedule()
    first = scheduler.firmament_pid
    with ThreadPoolExecutor(1) as pool:
        creating = pool.submit(burst, backend, "p")
        backend.until_bound(BURST // 4)
        kill_and_see(first)
        creating.result()
    backend.until_bound(BURST)
    burst(backend, "after", 5)
    backend.until_bound(5, "after")
    assert scheduler.firmament_pid != first
    assert scheduler.status()["pods"].get("waiting", 0) == 0
    assert scheduler.metric("poseidon_engine_resyncs_total") >= 2
    backend.all_bound_once(BURST + 5)


def test_a_flow_service_killed_with_full_nodes_still_counts_their_pods(backend: Backend, schedule: Schedule) -> None:
    backend.create(node("a", cpu="2"), node("b", cpu="2"))
    scheduler = schedule()
    backend.create(*(pod(f"p{at}", cpu="1") for at in range(6)))
    backend.until_bound(4)
    kill_and_see(scheduler.firmament_pid)
    backend.create(node("c", cpu="1"))
    assert list(backend.until_bound(5, "p").values()).count("c") == 1
    backend.create(pod("tiny", cpu="1m"))
    assert backend.until_unschedulable("tiny") == "0/3 nodes are available: 3 Insufficient cpu."


def test_a_killed_scheduler_leaves_no_process_and_its_successor_continues(backend: Backend, schedule: Schedule) -> None:
    capacities(backend)
    first = schedule()
    first.expected = {-signal.SIGKILL}
    flow_service = first.firmament_pid
    handle = os.pidfd_open(flow_service)
    with ThreadPoolExecutor(1) as pool:
        creating = pool.submit(burst, backend, "p")
        backend.until_bound(BURST // 4)
        first.end(signal.SIGKILL)
        until_gone(flow_service, handle)
        os.close(handle)
        schedule()
        creating.result()
    backend.all_bound_once(BURST)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT], ids=["SIGTERM", "SIGINT"])
def test_a_stopped_scheduler_exits_cleanly_and_its_successor_continues(
    backend: Backend, schedule: Schedule, number: int
) -> None:
    capacities(backend)
    first = schedule()
    flow_service = first.firmament_pid
    handle = os.pidfd_open(flow_service)
    with ThreadPoolExecutor(1) as pool:
        creating = pool.submit(burst, backend, "p")
        backend.until_bound(BURST // 4)
        assert first.end(number) == 0
        until_gone(flow_service, handle)
        os.close(handle)
        creating.result()
    # it has reported all of its binds
    for name in backend.bound():
        backend.until_event("Scheduled", name)
    schedule()
    backend.all_bound_once(BURST)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL], ids=["SIGTERM", "SIGKILL"])
def test_the_other_replica_takes_over(backend: Backend, schedule: Schedule, number: int) -> None:
    capacities(backend)
    leader = schedule(*LEASE)
    leader.until_says("leading: ")
    standby = schedule(*LEASE)
    standby.until_says(r"the leader is \S+")
    assert standby.get("/readyz")[0] == 200
    assert (leader.status()["leading"], standby.status()["leading"]) == (True, False)
    with ThreadPoolExecutor(1) as pool:
        creating = pool.submit(burst, backend, "p")
        backend.until_bound(BURST // 4)
        assert standby.status()["bound"] == 0
        leader.expected = {0} if number == signal.SIGTERM else {-number}
        leader.end(number)
        creating.result()
    burst(backend, "later", 10)
    backend.all_bound_once(BURST + 10)
    assert standby.status()["leading"]
    assert standby.status()["bound"] >= 10


def test_a_paused_leader_stops_binding_when_it_wakes(backend: Backend, schedule: Schedule) -> None:
    capacities(backend)
    leader = schedule(*LEASE)
    leader.until_says("leading: ")
    standby = schedule(*LEASE)
    leader.popen.send_signal(signal.SIGSTOP)
    burst(backend, "p", 40)
    standby.until_says("leading: ")
    backend.until_bound(40)
    leader.popen.send_signal(signal.SIGCONT)
    leader.until_says("standing by")
    burst(backend, "q", 20)
    backend.until_bound(60)
    assert leader.status()["bound"] == 0
    assert standby.status()["bound"] == 60


def test_replicas_survive_the_loss_of_the_lease(backend: Backend, schedule: Schedule) -> None:
    capacities(backend)
    schedule(*LEASE).until_says("leading: ")
    backend.delete("/apis/coordination.k8s.io/v1/namespaces/kube-system/leases", "poseidon")
    burst(backend, "p", 20)
    backend.until_bound(20)


def test_an_external_flow_service_may_be_restarted(backend: Backend, schedule: Schedule) -> None:
    serve = [*FIRMAMENT, "serve", "--address"]
    service = Process([*serve, "127.0.0.1:0"])
    address = "127.0.0.1:" + service.until_says(r"serving on port (\d+)")[1]
    capacities(backend)
    scheduler = schedule("--firmament-address", address)
    assert scheduler.status()["firmament"] == {"address": address, "pid": None}
    burst(backend, "p", 20)
    backend.until_bound(20)
    service.end(signal.SIGKILL)
    burst(backend, "q", 20)
    service = Process([*serve, address])
    try:
        backend.until_bound(40)
        assert scheduler.end() == 0
        assert service.popen.poll() is None, "a flow service that was not started by the scheduler was ended by it"
    finally:
        service.end()
    assert service.popen.returncode == 0


@SYNTHETIC
def test_a_scheduler_killed_during_slow_binds(synthetic: Synthetic, schedule: Schedule) -> None:
    capacities(synthetic)
    synthetic.faults({"rules": [{"verbs": ["create"], "resources": ["pods/binding"], "latency_ms": 300}]})
    first = schedule("--bind-concurrency", "10")
    first.expected = {-signal.SIGKILL}
    burst(synthetic, "p")
    synthetic.until_bound(20)
    first.end(signal.SIGKILL)
    schedule()
    synthetic.all_bound_once(BURST)
