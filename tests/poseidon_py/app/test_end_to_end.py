"""The whole bridge with a real flow service, against the synthetic cluster over HTTP, with faults."""

import asyncio
import json
import os
import signal
import sys
import time

import pytest

from benchmarks.cluster import Rule, WatchFaults
from benchmarks.cluster.store.kinds import LEASES, NODES, PODS
from poseidon_py import __version__
from poseidon_py.app.bridge import Bridge
from poseidon_py.app.serving.http_endpoints import first_problem
from poseidon_py.app.startup import StartError
from poseidon_py.kube.client import KubeError
from tests.listening_sockets import listening_sockets
from tests.poseidon_py.world import World, template, world_of

pytestmark = [pytest.mark.e2e, pytest.mark.slow]


@pytest.fixture
async def world(tmp_path):
    async with world_of(World, tmp_path) as world:
        yield world


async def test_more_pods_than_fit(world):
    await world.bridge()
    world.cluster.add_pods(120, template())
    await world.until(lambda: len(world.bound()) == 100)  # 5 nodes, 20 slots each
    await world.until(lambda: len(world.events("Scheduled")) == 100)
    await world.until(lambda: len(world.events("FailedScheduling")) >= 20)
    left = next(pod for name, pod in world.pods.items() if name not in world.bound())

    def condition():
        found = world.pods[left["metadata"]["name"]]["status"].get("conditions", [])
        return next((c for c in found if c["type"] == "PodScheduled"), {})

    await world.until(lambda: condition().get("reason") == "Unschedulable")
    assert condition()["status"] == "False"
    assert condition()["message"] == "0/5 nodes are available: 5 Too many pods."
    world.cluster.add_nodes(1)
    await world.until(lambda: len(world.bound()) == 120)
    await world.until(lambda: len(world.events("Scheduled")) == 120)
    world.check()


async def test_an_invalid_expectation_is_reported_and_does_not_delay_the_pod(world):
    await world.bridge()
    for name, text in (("good", "1h30m"), ("bad", "soon")):
        annotations = {"poseidon.io/expected-duration": text}
        world.cluster.add_pods(1, {"metadata": {"annotations": annotations}, **template()}, prefix=f"{name}-")
    await world.until(lambda: len(world.bound()) == 2 and world.events("InvalidAnnotation"))
    (event,) = world.events("InvalidAnnotation")
    assert event["involvedObject"]["name"].startswith("bad-")
    assert event["message"] == (
        "metadata.annotations[poseidon.io/expected-duration]: 'soon' is not a duration above 0 and is ignored; "
        "give one like 90s, 1h30m or 5400"
    )
    world.check()


async def test_a_pod_of_thousands_of_terms_is_refused_with_an_event_and_others_are_bound(world):
    await world.bridge()
    terms = [{"topologyKey": f"key{i}", "labelSelector": {"matchLabels": {"app": f"a{i}"}}} for i in range(7000)]
    affinity = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}
    world.cluster.add_pods(1, template(affinity=affinity), prefix="wide-")
    await world.until(lambda: world.events("FailedScheduling"))
    world.cluster.add_pods(5, template(), prefix="good-")
    await world.until(lambda: len(world.bound()) == 5)
    (event,) = world.events("FailedScheduling")
    assert event["involvedObject"]["name"].startswith("wide-")
    assert "affinity: makes 7000 terms of affinity, anti-affinity and spread; give at most 256" in event["message"]
    world.check()


async def test_faults_of_every_kind_at_once(world):
    bind = Rule(
        ("create",), ("pods/binding",), rate_429=0.1, rate_500=0.1, rate_reset=0.1, rate_lost=0.15, retry_after_s=0
    )
    world.cluster.faults.set(bind, watch=WatchFaults(drop_every_s=0.3))
    await world.bridge()
    for batch in range(5):
        world.cluster.add_pods(18, template(), prefix=f"b{batch}-")
        await asyncio.sleep(0.2)
        world.cluster.compact()
        world.cluster.drop_watches()
    await world.until(lambda: len(world.bound()) == 90)
    world.check()


async def test_a_killed_flow_service_is_restarted_and_resynchronised(world):
    bridge = await world.bridge(own_service=True)
    world.cluster.add_pods(30, template(), prefix="before-")
    await world.until(lambda: len(world.bound()) == 30)
    pid = bridge.supervisor.pid
    os.kill(pid, signal.SIGKILL)
    world.cluster.add_pods(90, template(), prefix="after-")
    await world.until(lambda: len(world.bound()) == 100)
    assert bridge.supervisor.pid != pid
    status = await bridge.status()
    await world.until(lambda: len(bridge.store.pods) == 120)
    assert status["nodes"] == 5
    world.check()


async def test_a_flow_service_that_is_killed_while_the_bridge_starts_is_started_again(world, monkeypatch):
    """A start waits for both: the service's answer on its policy, and the API server."""
    ask, killed = Bridge._ask_policy, []

    async def kill_first(bridge):
        killed.append(bridge.supervisor.pid)
        os.kill(bridge.supervisor.pid, signal.SIGKILL)
        await bridge.supervisor._process.wait()
        await ask(bridge)

    monkeypatch.setattr(Bridge, "_ask_policy", kill_first)
    bridge = await world.bridge(own_service=True)
    assert bridge.supervisor.pid not in killed
    world.cluster.add_pods(10, template())
    await world.until(lambda: len(world.bound()) == 10)


@pytest.mark.parametrize("name", ["loop", "session", "pod worker 0", "gangs"])
async def test_a_task_that_cancels_itself_stops_the_bridge(world, name):
    bridge = await world.bridge()
    (task,) = [task for task in asyncio.all_tasks() if task.get_name() == name]
    task.cancel()
    async with asyncio.timeout(10):
        assert await bridge.wait() == f"{name} failed: CancelledError()"
    assert bridge.alive() == f"{name} failed: CancelledError()"


async def test_a_task_that_returns_stops_the_bridge(world):
    bridge = await world.bridge()
    bridge.store.node_queue.shut_down()
    async with asyncio.timeout(10):
        assert (await bridge.wait()).removesuffix(" ended") in {"node worker 0", "node worker 1", "node worker 2"}


async def test_a_bridge_that_is_asked_to_stop_is_not_broken(world, caplog):
    bridge = await world.bridge()
    await world.stop(bridge)
    assert bridge.alive() == ""
    assert not [record for record in caplog.records if record.name == "poseidon_py.app.bridge"]


async def test_a_restarted_bridge_continues_the_work_of_its_predecessor(world):
    first = await world.bridge()
    world.cluster.add_pods(150, template())
    await world.until(lambda: len(world.bound()) >= 10)
    await world.stop(first)
    await world.bridge()
    await world.until(lambda: len(world.bound()) == 100)
    world.check()


async def test_of_two_replicas_one_leads_and_the_other_takes_over(world):
    fast = {"leader_elect": True, "lease_duration": 3.0, "renew_deadline": 2.0, "retry_period": 0.2}
    a = await world.bridge(**fast)
    await world.until(lambda: a.election.leading)
    b = await world.bridge(**fast)
    world.cluster.add_pods(40, template(), prefix="a-")
    await world.until(lambda: a.runtime.binder.bound == 40)  # the answers come a little later than the binds
    assert (len(world.bound()), b.runtime.binder.bound) == (40, 0)
    await world.stop(a)
    assert world.cluster.get(LEASES, "poseidon", "kube-system")["spec"].get("holderIdentity") != a.identity
    world.cluster.add_pods(40, template(), prefix="b-")
    await world.until(lambda: b.runtime.binder.bound == 40)
    assert len(world.bound()) == 80
    assert world.cluster.get(LEASES, "poseidon", "kube-system")["spec"]["holderIdentity"] == b.identity
    world.check()


async def test_a_scheduler_without_election_does_not_start_beside_a_leader(world):
    leader = await world.bridge(leader_elect=True)
    await world.until(lambda: leader.election.leading)
    with pytest.raises(StartError) as refusal:
        await world.bridge(leader_elect=False)
    assert str(refusal.value).startswith(
        f"--no-leader-elect: {leader.identity}, scheduler of poseidon, holds lease kube-system/poseidon, renewed at "
    )
    assert "run with --leader-elect" in str(refusal.value)
    await world.bridge(leader_elect=False, lease_name="batch", scheduler_name=("batch",))


async def test_a_scheduler_without_election_binds_nothing_once_another_one_leads(world):
    """The two commands of a README together over-committed nodes: neither knew of the other."""
    fast = {"lease_duration": 3.0, "renew_deadline": 2.0, "retry_period": 0.2}
    alone = await world.bridge(leader_elect=False, **fast)
    world.cluster.add_pods(10, template(), prefix="a-")
    await world.until(lambda: alone.runtime.binder.bound == 10)
    leader = await world.bridge(leader_elect=True, **fast)
    await world.until(lambda: not alone.election.leading)
    world.cluster.add_pods(10, template(), prefix="b-")
    await world.until(lambda: leader.runtime.binder.bound == 10)
    assert alone.runtime.binder.bound == 10
    status = await alone.status()
    assert (status["leading"], status["leader"]) == (False, leader.identity)
    world.check()


async def test_only_the_leader_reports_an_invalid_pod(world):
    fast = {"leader_elect": True, "lease_duration": 3.0, "renew_deadline": 2.0, "retry_period": 0.2}
    leader = await world.bridge(**fast)
    await world.until(lambda: leader.election.leading)
    standby = await world.bridge(**fast)
    world.cluster.add_pods(1, {"metadata": {"annotations": {"gpu-fraction": "0.5"}}, **template()})
    await world.until(lambda: leader.store.problems.invalid and standby.store.problems.invalid)
    for bridge in (leader, standby):
        await bridge.runtime.reporter.flush(5.0)
    assert len(world.events("FailedScheduling")) == 1
    (pod,) = world.pods.values()
    (condition,) = (c for c in pod["status"]["conditions"] if c["type"] == "PodScheduled")
    assert (condition["status"], condition["reason"]) == ("False", "SchedulerError")
    assert "gpu-fraction" in condition["message"]
    await world.stop(leader)
    await world.until(lambda: len(world.events("FailedScheduling")) == 2)  # its owner may have missed the first


async def test_a_bridge_that_stops_lets_binds_end_and_reports_on_every_pod(world):
    bridge = await world.bridge(event_rate=1.0)
    world.cluster.add_pods(60, template())
    await world.until(lambda: bridge.runtime.binder.bound >= 20)
    await world.stop(bridge)
    assert len(world.events("Scheduled")) == len(world.bound()) == bridge.runtime.binder.bound


async def test_confirmations_are_sent_when_a_burst_of_binds_is_over(world):
    world.cluster.faults.set(Rule(("create",), ("pods/binding",), latency_ms=100.0))
    world.cluster.add_pods(40, template())
    bridge = await world.bridge(bind_concurrency=2)  # two seconds for all of them
    pods = bridge.store.pods

    def sent_as_bound():
        return sum(1 for pod in pods.values() if pod.node and pod.sent.node)

    await world.until(lambda: sum(1 for pod in pods.values() if pod.node) >= 16)
    assert bridge.runtime.slots.saturated
    assert sent_as_bound() == 0
    await world.until(lambda: sent_as_bound() == 40)
    world.check()


async def test_a_leader_whose_lease_has_expired_by_its_clock_neither_binds_nor_evicts(world):
    bridge = await world.bridge(leader_elect=True)
    await world.until(lambda: bridge.election.leading)
    binder, given_back = bridge.runtime.binder, []
    reject = binder._reject

    def rejected(known, *extra):
        given_back.append(known)
        reject(known, *extra)

    binder._reject = rejected
    world.cluster.faults.set(Rule(("update",), ("leases",), latency_ms=1500.0))  # it does not have it back at once
    bridge.election._monotonic = lambda: time.monotonic() + 60  # as if it had been stopped for so long
    world.cluster.add_pods(3, template())
    await world.until(lambda: given_back)
    assert world.bound() == set()
    with pytest.raises(KubeError, match="the lease has run out"):
        await bridge.runtime.gangs._requests.evict(given_back[0])
    assert len(world.pods) == 3
    await world.until(lambda: len(world.bound()) == 3)  # when it has renewed its lease
    await bridge.runtime.gangs._requests.evict(given_back[0])
    await world.until(lambda: given_back[0].name not in world.pods)


async def test_the_command_runs_until_it_is_stopped_and_cleans_up(world):
    kubeconfig = world.folder / "kubeconfig"
    kubeconfig.write_text(world.cluster.kubeconfig())
    command = [
        sys.executable,
        "-m",
        "poseidon_py",
        "run",
        "--kubeconfig",
        str(kubeconfig),
        "--health-port",
        "0",
    ]
    log = ["--log-format", "json", "--log-level", "debug"]  # at debug its flow service speaks, too
    errors = world.folder / "log"
    with errors.open("wb") as file:  # a pipe that nobody reads would be full one day
        process = await asyncio.create_subprocess_exec(*command, *log, stderr=file)
    try:
        world.cluster.add_pods(30, template())
        await world.until(lambda: len(world.bound()) == 30)
        listening = listening_sockets(process.pid)
        process.send_signal(signal.SIGTERM)
        await asyncio.wait_for(process.wait(), 30)
    finally:
        if process.returncode is None:
            process.kill()
    assert process.returncode == 0
    messages = [json.loads(line)["message"] for line in errors.read_text().splitlines()]
    assert any(message.startswith("serving on direct:") for message in messages)
    started = next(message for message in messages if message.startswith("flow service started"))
    on_ports = {each for each in listening if not each.startswith("unix:")}
    health = next(message for message in messages if message.startswith("health and metrics on http://"))
    assert on_ports == {health.removeprefix("health and metrics on http://")}
    assert health.startswith("health and metrics on http://127.0.0.1:")
    sockets = started.split("address=")[1]
    assert listening - on_ports == {f"unix:{sockets.removeprefix('direct:')}"}
    with pytest.raises(ProcessLookupError):
        os.kill(int(started.split("pid=")[1].split()[0]), 0)
    assert len(world.events("Scheduled")) == 30


async def test_only_pods_that_name_us_and_beside_another_scheduler_without_overcommit(world):
    await world.bridge()
    world.cluster.add_pods(10, template(scheduler="default-scheduler"), prefix="theirs-")
    nodes = [node["metadata"]["name"] for node in world.cluster.objects(NODES)]
    other = template(cpu="3900m", scheduler="default-scheduler")
    other["spec"]["nodeName"] = nodes[0]
    world.cluster.add_pods(1, other, prefix="static-")
    world.cluster.add_pods(20, template(cpu="1"), prefix="ours-")
    await world.until(lambda: sum(name.startswith("ours-") for name in world.bound()) == 16)  # 4 nodes of 4 cores
    assert not any(name.startswith("theirs-") for name in world.bound())
    world.check()


async def test_a_deleted_and_recreated_pod_is_another_pod(world):
    await world.bridge()
    for _ in range(5):
        world.cluster.add_pods(10, template())
        await asyncio.sleep(0.02)
        for record in list(world.cluster.store.collection(PODS).records("default")):
            from benchmarks.cluster.api.deletion import delete

            delete(world.cluster.api, PODS, "default", record.name, {"gracePeriodSeconds": 0})
        await world.until(lambda: not world.pods)
    world.cluster.add_pods(10, template())
    await world.until(lambda: len(world.bound()) == 10)
    world.check()


async def test_health_status_and_explain(world):
    import aiohttp

    bridge = await world.bridge()
    world.cluster.add_pods(3, template(cpu="100"))
    async with aiohttp.ClientSession(f"http://127.0.0.1:{bridge.health.port}") as http:
        for path in ("/healthz", "/livez"):
            assert (await http.get(path)).status == 200
        await world.until(lambda: not first_problem(bridge.checks()))
        assert (await http.get("/readyz")).status == 200
        await world.until(lambda: bridge.runtime.loop.rounds > 0)
        text = await (await http.get("/metrics")).text()
        for name in ("scheduler_pending_pods", "poseidon_round_duration_seconds_count", '{type="nodes"} 5.0'):
            assert name in text
        status = await (await http.get("/status")).json()
        serves = await (await http.get("/identity")).json()
        assert serves == {
            "server": world.cluster.url,
            "in_cluster": False,
            "scheduler_names": ["poseidon"],
            "identity": bridge.identity,
            "version": __version__,
        }
        assert serves.items() <= status.items()
        assert (status["nodes"], status["pods"]["waiting"], status["leading"]) == (5, 3, True)
        assert (status["leader"], status["not_ready"]) == (bridge.identity, "")
        answer = await (await http.get("/explain?pod=default/pod-0001")).json()
        assert answer["state"] == "waits for a node"
        assert answer["message"] == "0/5 nodes are available: 5 Insufficient cpu."
        assert len(answer["nearest"]) > 0
        assert (await http.get("/explain?pod=default/none")).status == 404
        assert (await http.get("/explain?pod=x")).status == 400
