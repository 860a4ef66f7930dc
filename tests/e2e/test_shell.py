"""The command line: an error is one clear line and an exit code, and queries are answered.

Whole processes; the tables of errors are in tests/poseidon_py/cli/test_mistakes.py.
"""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.e2e.api import ApiError, Json
from tests.e2e.backends import Backend, free_ports
from tests.e2e.conftest import REAL, SYNTHETIC
from tests.e2e.objects import container, node, pod
from tests.e2e.processes import FIRMAMENT, POSEIDON, Process, Scheduler, environment, run

Schedule = Callable[..., Scheduler]


def refuse(*arguments: str, code: int) -> str:
    """Runs `poseidon run` with invalid input; returns the one line of its error."""
    done = run(*POSEIDON, "run", "--no-leader-elect", *arguments)
    assert done.returncode == code, done.stderr
    message = [line for line in done.stderr.splitlines() if line.lower().startswith("error: ")]
    assert len(message) == 1, done.stderr
    assert "Traceback" not in done.stderr
    return message[0]


def kubeconfig(path: Path, url: str, token: str = "") -> str:
    config: Json = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "c", "cluster": {"server": url}}],
        "users": [{"name": "u", "user": {"token": token}}],
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "c",
    }
    path.write_text(json.dumps(config))
    return str(path)


def test_an_unreachable_api_server(tmp_path: Path) -> None:
    (port,) = free_ports(1)
    config = kubeconfig(tmp_path / "kubeconfig", f"http://127.0.0.1:{port}")
    message = refuse("--kubeconfig", config, "--health-port", "-1", "--startup-timeout", "5", code=1)
    assert f"cannot reach the API server at http://127.0.0.1:{port}" in message
    assert "check that it is running" in message


@REAL
def test_a_rejected_token(backend: Backend, tmp_path: Path) -> None:
    text = backend.kubeconfig.read_text().replace("token: e2e", "token: wrong")
    path = tmp_path / "kubeconfig"
    path.write_text(text)
    message = refuse("--kubeconfig", str(path), "--health-port", "-1", "--startup-timeout", "10", code=1)
    assert "rejected our credentials (401): check the token" in message


@SYNTHETIC
def test_an_unreachable_flow_service(synthetic: Backend) -> None:
    (port,) = free_ports(1)
    config = ("--kubeconfig", str(synthetic.kubeconfig), "--health-port", "-1", "--startup-timeout", "5")
    message = refuse(*config, "--firmament-address", f"127.0.0.1:{port}", code=1)
    assert f"no flow service at 127.0.0.1:{port}" in message
    assert "firmament serve" in message


@SYNTHETIC
def test_flags_override_the_configuration_file(synthetic: Backend, schedule: Schedule, tmp_path: Path) -> None:
    path = tmp_path / "poseidon.yaml"
    path.write_text("scheduler-name: [from-file]\nlog-format: json\nlog_level: debug\n")
    synthetic.create(node("n"))
    schedule("--config", str(path), "--log-format", "text")
    synthetic.create(pod("ours", scheduler="from-file"), pod("theirs"))
    synthetic.until_bound(1, "ours")
    assert set(synthetic.bound()) == {"ours"}


# -- invalid objects in the cluster ------------------------------------------------------------------------------------


def test_nodes_without_allocatable_are_counted_and_named(backend: Backend, schedule: Schedule) -> None:
    bare = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "bare"}}
    backend.create(bare, node("good"))
    scheduler = schedule()
    backend.create(*(pod(f"p{at}") for at in range(5)))
    assert set(backend.until_bound(5).values()) == {"good"}
    scheduler.until_says("skipping node bare: status.allocatable")
    assert scheduler.metric("poseidon_nodes_without_allocatable_total") == 1
    backend.resize_node("bare", cpu="4", memory="4Gi", pods="10")
    backend.create(pod("late"))
    backend.until_bound(6)


def only_on(operator: str, value: str) -> Json:
    terms = [{"matchExpressions": [{"key": "a", "operator": operator, "values": [value]}]}]
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}


REFUSED = ("", "")
"""By the API server itself."""


@pytest.mark.parametrize(
    ("odd", "event"),
    [
        pytest.param(
            pod("odd", metadata={"annotations": {"scheduling.k8s.io/group-pod-num": "many", "x": "{"}}),
            ("Scheduled", "Successfully assigned default/odd to n"),
            id="annotation",
        ),
        pytest.param(pod("odd", containers=[container(cpu="-1")]), REFUSED, id="negative request"),
        pytest.param(pod("odd", containers=[container(cpu="lots")]), REFUSED, id="request without a number"),
        pytest.param(
            pod("odd", containers=[container(memory="9999999999999999Ei")]),
            ("FailedScheduling", "0/1 nodes are available: 1 Insufficient memory."),
            id="huge request",
        ),
        pytest.param(
            pod("odd", affinity=only_on("Near", "b")),  # which a real API server refuses
            ("FailedScheduling", "operator 'Near' is not valid; give one of In, NotIn, Exists, DoesNotExist, Gt, Lt"),
            id="unknown operator",
        ),
        pytest.param(
            pod("odd", affinity=only_on("Gt", "b")),
            ("FailedScheduling", "0/1 nodes are available: 1 node(s) didn't match Pod's node affinity/selector."),
            id="Gt of no number",
        ),
        pytest.param(
            pod("odd", tolerations=[{"key": "a", "operator": "Maybe"}]), REFUSED, id="toleration with unknown operator"
        ),
    ],
)
def test_invalid_pods_delay_no_others(
    backend: Backend, scheduler: Scheduler, odd: Json, event: tuple[str, str]
) -> None:
    backend.create(node("n"))
    backend.until_seen_by(scheduler)
    stored = True
    try:
        backend.create(odd)
    except ApiError as error:
        if error.code not in (400, 422):
            raise
        stored = False
    if event == REFUSED:
        assert not stored
    elif backend.name == "synthetic":
        assert stored
    backend.create(*(pod(f"p{at}") for at in range(3)))
    backend.until_bound(3, "p")
    assert scheduler.get("/livez")[0] == 200
    if stored:
        reason, message = event
        backend.until_event(reason, "odd", message)
        code, body = scheduler.get("/explain?pod=default/odd")
        assert code == 200, body
        assert json.loads(body)["state"] in STATES[reason]


STATES = {"Scheduled": {"being bound", "bound"}, "FailedScheduling": {"waits for a node", "invalid"}}


# -- questions -------------------------------------------------------------------------------------------------------


def test_status_and_explain(backend: Backend, schedule: Schedule) -> None:
    backend.create(node("a", cpu="2"), node("b", cpu="4"))
    scheduler = schedule()
    backend.create(pod("fits", cpu="1"), pod("large", cpu="64"))
    backend.until_bound(1)
    assert backend.until_unschedulable("large") == "0/2 nodes are available: 2 Insufficient cpu."
    scheduler.until_says("round placed=")
    ask = [*POSEIDON, "explain", "--address", scheduler.address]
    reported = run(*ask, "default/large").stdout
    for text in ("default/large", "waits for a node", "2 Insufficient cpu", "cpu 64", "lacks"):
        assert text in reported
    found = json.loads(run(*ask, "large", "--json").stdout)
    # what it would take: b lacks the least, 60 cores more than it has left
    assert found["nearest"][0]["node"] == "b"
    assert found["nearest"][0]["lacks"]["cpu"] in (60_000, 61_000)  # milli; depends on where `fits` went
    status = run(*POSEIDON, "status", "--address", scheduler.address)
    assert status.returncode == 0
    for text in ("leader", "load-spreading", "2 nodes", "cpu", "memory", "round"):
        assert text in status.stdout
    body = json.loads(run(*POSEIDON, "status", "--json", "--address", scheduler.address).stdout)
    assert (body["nodes"], body["pods"]["waiting"], body["bound"]) == (2, 1, 1)
    missing = run(*ask, "default/nobody")
    assert (missing.returncode, missing.stderr) == (1, "error: pod default/nobody not found\n")


def test_policies() -> None:
    done = run(*POSEIDON, "policies")
    assert done.returncode == 0
    assert "load-spreading" in done.stdout
    assert "load-spreading" in [each["name"] for each in json.loads(run(*POSEIDON, "policies", "--json").stdout)]


def test_metrics(backend: Backend, schedule: Schedule) -> None:
    backend.create(node("a", cpu="1"))
    scheduler = schedule()
    backend.create(*(pod(f"p{at}", cpu="500m") for at in range(3)))
    backend.until_bound(2)
    for name in set(backend.bound()):
        backend.until_event("Scheduled", name)
    text = scheduler.until_shows('scheduler_pending_pods{queue="unschedulable"} 1.0')  # once it has seen its own binds
    assert 'scheduler_schedule_attempts_total{profile="poseidon",result="scheduled"} 2.0' in text
    assert 'poseidon_schedule_attempts_total{result="scheduled"} 2.0' in text  # its former name
    assert scheduler.metric("scheduler_cache_size", type="pods") == 2
    assert scheduler.metric("scheduler_cache_size", type="nodes") == 1
    assert scheduler.metric("scheduler_unschedulable_pods", plugin="NodeResourcesFit", profile="poseidon") == 1
    assert scheduler.metric("scheduler_pod_scheduling_sli_duration_seconds_count") == 2
    assert scheduler.metric("poseidon_placements_dropped_total") == 0
    assert scheduler.metric("leader_election_master_status") == 1


def test_kubectl_describe_shows_what_happened(backend: Backend, scheduler: Scheduler) -> None:
    kubectl = shutil.which("kubectl")
    if kubectl is None:
        pytest.skip("kubectl is not installed")
    backend.create(node("a", cpu="1"))
    backend.until_seen_by(scheduler)
    backend.create(pod("p", cpu="1"), pod("q", cpu="2"))
    backend.until_event("Scheduled", "p")
    backend.until_event("FailedScheduling", "q")
    for name, words in (
        ("p", ("Normal", "Scheduled", "poseidon", "Successfully assigned default/p to a", "Node:")),
        ("q", ("Warning", "FailedScheduling", "poseidon", "0/1 nodes are available: 1 Insufficient cpu.")),
    ):
        command = [kubectl, "--kubeconfig", str(backend.kubeconfig), "describe", "pod", name]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True, env=environment())
        for word in words:
            assert word in done.stdout, done.stdout


@SYNTHETIC
def test_stopping_during_the_start(synthetic: Backend, schedule: Schedule) -> None:
    synthetic.api("POST", "/_faults", {"rules": [{"verbs": ["get", "list"], "rate_503": 1.0}]})
    scheduler = schedule(ready=False)
    scheduler.until_says("health and metrics on")
    assert scheduler.end(signal.SIGTERM) == 0


def test_the_services_exit_on_sigterm(tmp_path: Path) -> None:
    config = tmp_path / "kubeconfig"
    cluster = Process([*POSEIDON, "cluster", "--nodes=1", "--port=0", f"--kubeconfig-out={config}"])
    service = Process([*FIRMAMENT, "serve", "--address", "127.0.0.1:0"])
    cluster.until_says("synthetic cluster")
    service.until_says("serving on port")
    assert (cluster.end(), service.end()) == (0, 0)
